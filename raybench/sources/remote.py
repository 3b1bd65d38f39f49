"""Files in object stores: fetched once a node into the folder of prepared data, and read from there."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from raybench.errors import DataError
from raybench.sources.checksums import Told
from raybench.sources.space import check_space
from raybench.sources.whole_file import whole_file

_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_BLOCK_BYTES: Final = 8 * 2**20
_ORIGIN: Final = "origin.json"


@dataclass(frozen=True)
class Origin:
    """What an object was when it was fetched: its size, and its time in ns since 1970 where the store gives one."""

    uri: str
    size: int
    mtime_ns: int | None


def is_uri(path: str) -> bool:
    """Whether a path is one of an object store, or of another file system by name: `s3://`, `gs://`, `file://`."""
    return _URI.match(path) is not None


def local_folder(uri: str) -> str:
    """The name of the folder that an object is fetched into."""
    return f"remote-{hashlib.sha256(uri.encode()).hexdigest()[:16]}"


def fetch(uri: str, path: Path, told: Told) -> bool:
    """Bring the object to `path`, unless what lies there was fetched from just that object. Whether it was brought.

    Raises:
        DataError: it is not there, cannot be reached, or was cut on its way.
    """
    from pyarrow.fs import FileSystem, FileType

    try:
        store, inside = FileSystem.from_uri(uri)
        info = store.get_file_info(inside)
        if info.type != FileType.File:
            raise DataError(f"{uri} is no object there; give source.path the flat file of tokens")
        origin = Origin(uri, info.size, info.mtime_ns)
        if path.is_file() and _origin(path) == origin:
            return False
        _bring(store, inside, path, origin, told)
    except (OSError, ValueError) as error:      # pyarrow's errors are these
        reason = " ".join(str(error).split())[:500]
        raise DataError(f"{uri} cannot be fetched to {path}: {reason}; see that it can be reached from here") from error
    return True


def _bring(store: Any, inside: str, path: Path, origin: Origin, told: Told) -> None:
    check_space(path.parent, origin.size, cure="choose another source.data_dir")
    told(0, origin.size)
    with store.open_input_stream(inside) as source, whole_file(path) as file:
        shutil.copyfileobj(source, file, _BLOCK_BYTES)
        if file.tell() != origin.size:
            raise DataError(f"{origin.uri} ended after {file.tell()} of {origin.size} bytes; run again")
    with whole_file(path.with_name(_ORIGIN)) as file:
        file.write(json.dumps(asdict(origin)).encode())


def _origin(path: Path) -> Origin | None:
    try:
        return Origin(**json.loads(path.with_name(_ORIGIN).read_text()))
    except (OSError, ValueError, TypeError):
        return None
