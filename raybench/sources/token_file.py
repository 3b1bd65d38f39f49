"""One flat file of tokens without a header, as nanoGPT and its kin keep a corpus: made or described once, then checked.

Beside the file `train.bin` lies `train.bin.json`, which says how its tokens are stored, how many there are and which is
the largest: found once, by reading the whole file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from raybench.errors import DataError
from raybench.sources.checksums import Told, blocks, edges_sha256, nobody, whole_sha256
from raybench.sources.layout import DTYPES, sample_of
from raybench.sources.lock import locked
from raybench.sources.records import samples_at_a_time, smallest_dtype
from raybench.sources.remote import fetch, is_uri, local_folder
from raybench.sources.root import data_root
from raybench.sources.space import check_space
from raybench.sources.tokens import GENERATOR_VERSION, tokens
from raybench.sources.whole_file import whole_file
from raybench.spec.config import TrialConfig, canonical_json
from raybench.spec.samples import TokenSample

FORMAT_VERSION: Final = 1
_SCANNED_BYTES: Final = 64 * 2**20
_FOREIGN: Final = {b"\x93NUMPY": "a NumPy array", b"PK\x03\x04": "a zip archive, as torch.save writes",
                   b"\x80\x02\x8a\n": "a pickle, as torch.save wrote", b"\x80\x04\x95": "a pickle",
                   b"\x80\x05\x95": "a pickle", b"PAR1": "a Parquet file"}  # fmt: skip
"""How files begin that are no tokens; two bytes would be too few, tokens may begin with any."""


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """What is known of a token file. `dtype` is uint16, int32 or int64, little-endian."""

    dtype: str
    num_tokens: int
    max_token: int
    edges_sha256: str
    format_version: int = FORMAT_VERSION
    sha256: str | None = None       # None in descriptions of earlier versions

    @property
    def num_bytes(self) -> int:
        """Size that the file must have."""
        return self.num_tokens * np.dtype(DTYPES[self.dtype]).itemsize


def token_path(config: TrialConfig) -> Path:
    """The file that a config reads: its own, or the one that is prepared for it."""
    assert config.source is not None
    if config.source.path is not None and is_uri(config.source.path):
        return data_root(config.source.data_dir) / local_folder(config.source.path) / "tokens.bin"
    if config.source.path is not None:
        return Path(config.source.path).expanduser()
    facts = {
        "num_samples": config.source.num_samples, "sample": asdict(token_sample(config)), "dtype": _dtype_asked(config),
        "seed": config.seed, "format_version": FORMAT_VERSION, "generator_version": GENERATOR_VERSION,
    }  # fmt: skip
    name = hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:16]
    return data_root(config.source.data_dir) / f"tokens-{name}" / "tokens.bin"


def prepare_tokens(config: TrialConfig, told: Told = nobody) -> None:
    """Make the file, or describe one that somebody else made; and check it, whoever did.

    Raises:
        DataError: it is not what its description says, or cannot serve the config; names the file and the cure.
    """
    assert config.source is not None
    path = token_path(config)
    if config.source.path is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent):
            if not sidecar_path(path).exists():
                _write(path, config, told)
    elif is_uri(config.source.path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent):
            if fetch(config.source.path, path, told):
                sidecar_path(path).unlink(missing_ok=True)
            if not sidecar_path(path).exists():
                describe(path, config.source.dtype or "uint16")
    elif not sidecar_path(path).exists():
        describe(path, config.source.dtype or "uint16")
    _check(path, config)


def verify_tokens(config: TrialConfig) -> None:
    """Hold every byte of the file to its description.

    Raises:
        DataError: it is another, or was described by a version that kept no checksum of the whole.
    """
    path = token_path(config)
    _check(path, config)
    expected = read_sidecar(path).sha256
    if expected is None:
        raise DataError(f"{sidecar_path(path)} is of an earlier version, without a checksum; {_cure(path, config)}")
    if whole_sha256(path) != expected:
        raise DataError(f"{path} was altered: its SHA-256 is not that of what was described; {_cure(path, config)}")


def token_sample(config: TrialConfig) -> TokenSample:
    """What a sample of the config's workload is; a sweep with another kind was refused."""
    sample = sample_of(config)
    assert isinstance(sample, TokenSample)
    return sample


def _dtype_asked(config: TrialConfig) -> str:
    assert config.source is not None
    smallest = smallest_dtype(token_sample(config))
    return config.source.dtype or next(name for name, dtype in DTYPES.items() if dtype == smallest)


def sidecar_path(path: Path) -> Path:
    """Where a token file is described."""
    return path.with_name(f"{path.name}.json")


def _write(path: Path, config: TrialConfig, told: Told) -> None:
    """The stream of made-up tokens; its description last, so that a file without one is unfinished."""
    assert config.source is not None
    sample, num_samples, dtype = token_sample(config), config.source.num_samples, _dtype_asked(config)
    total = (num_samples * sample.stride + sample.overlap) * np.dtype(DTYPES[dtype]).itemsize
    check_space(path.parent, total, cure="choose another source.data_dir or a smaller source.num_samples")
    stream = TokenSample((sample.stride,), sample.vocab_size)
    with whole_file(path) as file:
        for first in range(0, num_samples, chunk := samples_at_a_time(stream)):
            told(file.tell(), total)
            indices = np.arange(first, min(first + chunk, num_samples), dtype=np.int64)
            file.write(tokens(config.seed, indices, stream).astype(DTYPES[dtype]).data)
        rest = tokens(config.seed, np.array([num_samples]), stream)[0, : sample.overlap]
        file.write(rest.astype(DTYPES[dtype]).data)
    describe(path, dtype)


def describe(path: Path, dtype: str) -> None:
    """Read the whole file once and write what it holds beside it."""
    _refuse_foreign(path)
    size, itemsize = path.stat().st_size, np.dtype(DTYPES[dtype]).itemsize
    if size == 0 or size % itemsize:
        raise DataError(f"{path} has {size} bytes, which is no number of {dtype} tokens; give its source.dtype")
    largest, sha256 = _scanned(path, dtype)
    found = Sidecar(
        dtype=dtype, num_tokens=size // itemsize, max_token=largest, edges_sha256=edges_sha256(path), sha256=sha256
    )
    try:
        with whole_file(sidecar_path(path)) as file:
            file.write(json.dumps(asdict(found), indent=1).encode())
    except OSError as error:
        place = sidecar_path(path)
        raise DataError(f"{place} cannot be written: {error.strerror}; make the folder writable") from error


def _refuse_foreign(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"{path} is no file; give source.path the flat file of tokens")
    with path.open("rb") as file:
        head = file.read(8)
    what = next((what for magic, what in _FOREIGN.items() if head.startswith(magic)), None)
    if what is not None:
        raise DataError(f"{path} is {what} and no flat file of tokens; write the tokens alone, as numpy's tofile does")


def _scanned(path: Path, dtype: str) -> tuple[int, str]:
    """The largest token and the SHA-256 of all, in one pass."""
    largest, digest = 0, hashlib.sha256()
    for block in blocks(path, _SCANNED_BYTES):
        values: npt.NDArray[Any] = np.frombuffer(block, DTYPES[dtype])
        if int(values.min()) < 0:
            raise DataError(f"{path} holds negative numbers as {dtype}; give its source.dtype")
        largest = max(largest, int(values.max()))
        digest.update(block)
    return largest, digest.hexdigest()


def read_sidecar(path: Path) -> Sidecar:
    """What is said of the file.

    Raises:
        DataError: nothing is, or nothing that can be understood.
    """
    place = sidecar_path(path)
    if not place.exists():
        raise DataError(f"{path} is not prepared on this node; run raybench.sources.prepare first")
    try:
        found = Sidecar(**json.loads(place.read_text()))
        whole = found.dtype in DTYPES and found.format_version == FORMAT_VERSION and found.num_tokens > 0
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{place} cannot be read ({error}); delete it and run again") from error
    if not whole:
        raise DataError(f"{place} describes no token file; delete it and run again")
    return found


def check_described(path: Path, cure: str) -> None:
    """Hold a file to its description: size, first and last MB.

    Raises:
        DataError: it is another; names the cure.
    """
    found = read_sidecar(path)
    if not path.is_file():
        raise DataError(f"{path} {'is no file' if path.exists() else 'is missing'}; {cure}")
    if path.stat().st_size != found.num_bytes:
        raise DataError(f"{path} has {path.stat().st_size} bytes instead of {found.num_bytes}; {cure}")
    if edges_sha256(path) != found.edges_sha256:
        raise DataError(f"{path} was altered: its first or last MB is not what was described; {cure}")


def _check(path: Path, config: TrialConfig) -> None:
    """Hold the file to its description, and both to what the config asks for."""
    assert config.source is not None
    found, sample, asked = read_sidecar(path), token_sample(config), config.source.num_samples
    cure = _cure(path, config)
    check_described(path, cure)
    if config.source.dtype not in (None, found.dtype):
        raise DataError(f"{path} holds {found.dtype} and source.dtype says {config.source.dtype}; {cure}")
    if found.max_token >= sample.vocab_size:
        raise DataError(
            f"{path} holds token {found.max_token}, which vocab_size {sample.vocab_size} does not reach; give "
            f"vocab_size at least {found.max_token + 1}"
        )
    there = (found.num_tokens - sample.overlap) // sample.stride
    if there < asked:
        raise DataError(
            f"{path} holds {there} samples of {sample.length} tokens, and source.num_samples asks for {asked}; give at "
            f"most {there}"
        )


def _cure(path: Path, config: TrialConfig) -> str:
    """A file of one's own is never deleted for a cure."""
    assert config.source is not None
    own = config.source.path is not None and not is_uri(config.source.path)
    what = sidecar_path(path) if own else f"the folder {path.parent}"
    return f"delete {what} and run again"
