"""Folders on storage and in memory: what the page cache does to a file can only be seen on the first."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np
import psutil
import pytest

_IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}


def on_storage(folder: Path) -> Path:
    """The folder, or the test is skipped: its file system has no storage behind it."""
    kind = file_system(folder)
    if kind in _IN_MEMORY:
        pytest.skip(f"{folder} lies in memory ({kind}); --basetemp on a disk shows what a cold cache does")
    return folder


def in_memory() -> Path:
    """A memory file system, or the test is skipped."""
    folder = Path("/dev/shm")
    if not folder.is_dir() or file_system(folder) not in _IN_MEMORY or not os.access(folder, os.W_OK):
        pytest.skip("there is no memory file system at /dev/shm")
    return folder


def file_system(folder: Path) -> str:
    """The type of the file system that holds a folder, as `mount` names it."""
    mounts = {Path(part.mountpoint): part.fstype for part in psutil.disk_partitions(all=True)}
    return next(mounts[parent] for parent in (folder.resolve(), *folder.resolve().parents) if parent in mounts)


def resident_share(path: Path) -> float:
    """How much of a file the page cache holds, 0 to 1, by mincore."""
    size, page = path.stat().st_size, mmap.PAGESIZE
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
        content = np.frombuffer(mapped, np.uint8)
        found = np.zeros(-(-size // page), np.uint8)
        address, answer = ctypes.c_void_p(content.ctypes.data), found.ctypes.data_as(ctypes.c_void_p)
        assert ctypes.CDLL(None).mincore(address, ctypes.c_size_t(size), answer) == 0
        del content
    return float((found & 1).mean())
