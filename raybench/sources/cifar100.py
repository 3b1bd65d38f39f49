"""The `cifar100` source: CIFAR-100's 50 000 training images, from its binary version, which holds no pickle.

A record is two labels, coarse and fine, of a byte each, and 3 x 32 x 32 pixels (www.cs.toronto.edu/~kriz/cifar.html).
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import IO, Final

import numpy as np
import torch

from raybench.errors import DataError
from raybench.sources.files import OpenFile
from raybench.sources.index import Share, runs
from raybench.sources.lock import locked
from raybench.sources.root import data_root
from raybench.sources.space import check_space
from raybench.spec.config import TrialConfig
from raybench.spec.samples import Images

URL = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
ARCHIVE_SHA256 = "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
TRAIN_SHA256 = "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"
_MEMBER: Final = "cifar-100-binary/train.bin"
_SHAPE: Final = (3, 32, 32)
_LABEL_BYTES: Final = 2
RECORD_BYTES: Final = _LABEL_BYTES + 3 * 32 * 32
_ROOM_BYTES: Final = 2 * 50_000 * RECORD_BYTES        # the images, and the archive that they are taken out of
_PATIENCE_S: Final = 30.0            # without a byte from the server


def train_path(config: TrialConfig) -> Path:
    """Where the training images lie on this node."""
    assert config.source is not None
    return data_root(config.source.data_dir) / "cifar100" / "train.bin"


def prepare_cifar100(config: TrialConfig) -> None:
    """Download the archive once, take the training images out of it, and hold them to their checksum each time.

    An archive that somebody has put into the folder is not downloaded.

    Raises:
        DataError: it can be neither found nor downloaded, or is not what was published; names the cure.
    """
    path = train_path(config)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        if not path.exists():
            check_space(path.parent, _ROOM_BYTES, cure="choose another source.data_dir")
            archive = path.with_name(URL.rpartition("/")[2])
            if not archive.exists():
                _download(archive)
            _hold_to(archive, ARCHIVE_SHA256)
            _take_out(archive, path)
        _hold_to(path, TRAIN_SHA256)


class Cifar100Reader:
    """Reads each micro-batch with one call per contiguous run."""

    def __init__(self, share: Share, config: TrialConfig) -> None:
        self._share, self._path = share, train_path(config)
        if not self._path.is_file():
            raise DataError(f"{self._path} is not prepared on this node; run raybench.sources.prepare first")
        self._file = OpenFile()

    def room(self) -> torch.Tensor:
        """Flat memory for the records of a micro step."""
        return torch.from_numpy(np.empty(self._share.micro_batch * RECORD_BYTES, dtype=np.uint8))

    def fill(self, micro_step: int, room: torch.Tensor) -> None:
        """Read that micro step's records, one after the other."""
        view, filled = room.numpy().data.cast("B"), 0
        for first, count in runs(self._share.start(micro_step), self._share.micro_batch, self._share.num_samples):
            size = count * RECORD_BYTES
            self._file.read_into(self._path, view[filled : filled + size], first * RECORD_BYTES)
            filled += size

    def records(self, micro_step: int, filled: torch.Tensor) -> torch.Tensor:
        """The records of that micro step, (B, record bytes)."""
        return filled.view(-1, RECORD_BYTES)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def unpack_cifar100(records: torch.Tensor) -> Images:
    """Images and fine labels; pixels are not copied. They keep their size: resizing is part of the step."""
    return Images(records[:, _LABEL_BYTES:].view(-1, *_SHAPE), records[:, 1].to(torch.int64))


def _download(archive: Path) -> None:
    part = archive.with_name(f"_{archive.name}.part")
    try:
        with urllib.request.urlopen(URL, timeout=_PATIENCE_S) as answer, part.open("wb") as file:
            shutil.copyfileobj(answer, file)
    except (OSError, HTTPException) as error:
        reason = " ".join(str(error).split())
        cure = f"put {archive.name} from elsewhere into {archive.parent} and run again"
        raise DataError(f"{URL} cannot be downloaded ({reason}); {cure}") from error
    part.replace(archive)


def _take_out(archive: Path, path: Path) -> None:
    """The one member that is wanted, read and written here: nothing in the archive chooses a path."""
    part = path.with_name(f"_{path.name}.part")
    try:
        with tarfile.open(archive) as members, part.open("wb") as file:
            member: IO[bytes] | None = members.extractfile(_MEMBER)
            if member is None:
                raise KeyError(_MEMBER)
            shutil.copyfileobj(member, file)
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise DataError(f"{archive} has no {_MEMBER}; delete it and run again") from error
    part.replace(path)


def _hold_to(path: Path, sha256: str) -> None:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(2**22):
            digest.update(block)
    if digest.hexdigest() != sha256:
        raise DataError(f"{path} is not what was published (its SHA-256 differs); delete it and run again")
