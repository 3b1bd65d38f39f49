"""From folders of text to one flat file of tokens: documents in their order, an end-of-text token between two.

A document is a `.txt` file, or a line of a `.jsonl` file, whose `text` it is; files go by their paths' order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from raybench.errors import DataError, UsageError
from raybench.sources.checksums import Told, nobody, whole_sha256
from raybench.sources.layout import DTYPES
from raybench.sources.lock import locked
from raybench.sources.root import data_root
from raybench.sources.space import check_space
from raybench.sources.token_file import check_described, describe, read_sidecar, sidecar_path
from raybench.sources.whole_file import whole_file
from raybench.spec.config import canonical_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_TEXT: Final = "<|endoftext|>"
TEXT_FORMAT_VERSION: Final = 1
_DOCUMENTS_AT_ONCE: Final = 1000
_ENDINGS: Final = (".txt", ".jsonl")


@dataclass(frozen=True)
class Tokenized:
    """What became of a folder of text."""

    path: Path
    num_tokens: int
    vocab_size: int
    num_bytes: int
    was_there: bool


def prepare_text(
    folder: Path, tokenizer: str, *, end_of_text: str = END_OF_TEXT, data_dir: str | None = None, told: Told = nobody
) -> Tokenized:
    """Tokenize a folder once: other text, another tokenizer or another end makes another file. `told` hears of text.

    Raises:
        UsageError: there is no text, or no such tokenizer, or it has no such end of text.
        DataError: a document cannot be read, the disk cannot hold the tokens, or the file was altered since.
    """
    files = _files(folder)
    made = _load(tokenizer)
    end, size = _end(made, tokenizer, end_of_text), made.get_vocab_size()
    dtype = "uint16" if size <= 2**16 else "int32"
    facts = {
        "files": [(str(file.relative_to(folder)), whole_sha256(file)) for file in files], "dtype": dtype, "end": end,
        "tokenizer": hashlib.sha256(made.to_str().encode()).hexdigest(), "format_version": TEXT_FORMAT_VERSION,
    }  # fmt: skip
    name = f"text-{hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:16]}"
    path = data_root(data_dir) / name / "tokens.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        was_there = sidecar_path(path).exists()
        if not was_there:
            _write(path, files, made, end, dtype, told)
        check_described(path, f"delete the folder {path.parent} and run again")
    return Tokenized(path, read_sidecar(path).num_tokens, size, path.stat().st_size, was_there)


def _files(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.suffix in _ENDINGS and path.is_file())
    if not found:
        raise UsageError(f"{folder} holds no {' or '.join(_ENDINGS)} files; give --text a folder of text")
    return found


def _load(name: str) -> Tokenizer:
    """A tokenizer.json, or the tokenizer of that name on Hugging Face's hub."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise UsageError("--text needs tokenizers, which is not installed: pip install 'raybench[text]'") from error
    is_file = Path(name).is_file()
    try:
        found = Tokenizer.from_file(name) if is_file else Tokenizer.from_pretrained(name)
    except Exception as error:      # the library raises bare ones, and whatever its downloader raises
        reason = " ".join(str(error).split())[:300]
        if is_file:
            raise UsageError(f"{name} is no tokenizer.json: {reason}") from error
        cure = "where there is no network, give --tokenizer the path of its tokenizer.json"
        raise UsageError(f"tokenizer {name} is no file here and cannot be downloaded ({reason}); {cure}") from error
    found.encode_special_tokens = True       # in a document they are words like others
    return found


def _end(tokenizer: Tokenizer, name: str, end_of_text: str) -> int:
    found = tokenizer.token_to_id(end_of_text)
    if found is None:
        raise UsageError(f"tokenizer {name} has no token {end_of_text}; give --end-of-text the one that it has")
    return int(found)


def _write(path: Path, files: Sequence[Path], tokenizer: Tokenizer, end: int, dtype: str, told: Told) -> None:
    itemsize, total = np.dtype(DTYPES[dtype]).itemsize, sum(file.stat().st_size for file in files)
    # About four bytes of English a token; where there are more tokens a full disk is told, too.
    check_space(path.parent, total * itemsize // 4, cure="choose another RAYBENCH_DATA_DIR or less text")
    done = 0
    with whole_file(path) as file:
        documents = _documents(files)
        while some := list(islice(documents, _DOCUMENTS_AT_ONCE)):
            told(done, total)
            _append(file, [text for text, _ in some], tokenizer, end, dtype)
            done += sum(size for _, size in some)
    if path.stat().st_size == 0:
        path.unlink()
        raise UsageError(f"{files[0].parent} holds no text: its documents are empty")
    describe(path, dtype)
    told(total, total)


def _append(file: IO[bytes], texts: Sequence[str], tokenizer: Tokenizer, end: int, dtype: str) -> None:
    for encoded in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        ids = encoded.ids if file.tell() == 0 else [end, *encoded.ids]
        file.write(np.asarray(ids, dtype=DTYPES[dtype]).tobytes())


def _documents(files: Sequence[Path]) -> Iterator[tuple[str, int]]:
    """Each document that is not empty, with the bytes that it takes in its file."""
    for file in files:
        with file.open("rb") as content:
            if file.suffix == ".txt":
                yield from _document(content.read(), str(file), "UTF-8")
                continue
            for number, line in enumerate(content, start=1):
                yield from _document(line, f"{file}:{number}", 'a JSON object with "text"')


def _document(content: bytes, place: str, form: str) -> Iterator[tuple[str, int]]:
    try:
        text = content.decode() if form == "UTF-8" else json.loads(content)["text"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{place} is not {form}; mend it or leave it out") from error
    if text:
        yield text, len(content)
