"""Which workloads there are: raybench's own and those of installed plug-ins. Imports no torch.

A plug-in is a distribution with an entry point in the group `raybench.workloads` that names a `Workload`. Built-in
names cannot be taken over, so that a column `workload = encdec` means the same on every machine.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from importlib.metadata import EntryPoint, entry_points

from raybench.errors import UsageError
from raybench.spec.built_in import ENTRY_POINT_GROUP
from raybench.workloads import collective, decoder, elementwise, encdec, matmul, mlp, resnet
from raybench.workloads.base import Workload

_FOLDERS = (encdec, decoder, resnet, matmul, mlp, elementwise, collective)
_BUILT_IN = {folder.WORKLOAD.family.name: folder.WORKLOAD for folder in _FOLDERS}


def workload(name: str) -> Workload:
    """The workload of that name.

    Raises:
        UsageError: there is none, or a plug-in cannot be loaded.
    """
    found = _BUILT_IN.get(name) or _plug_ins().get(name)
    if found is None:
        raise UsageError(_unknown(name))
    return found


def workloads() -> dict[str, Workload]:
    """Every workload by name: the built-in ones first, then those of plug-ins.

    Raises:
        UsageError: a plug-in cannot be loaded.
    """
    return {**_BUILT_IN, **_plug_ins()}


@functools.cache      # `plan` asks once a config, and reading all installed metadata takes milliseconds
def _plug_ins() -> dict[str, Workload]:
    loaded = [_load(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)]
    return {found.family.name: found for found in reversed(loaded) if found.family.name not in _BUILT_IN}


def _load(entry: EntryPoint) -> Workload:
    origin = entry.dist.name if entry.dist is not None else entry.module
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"workload plug-in {entry.name} of {origin} cannot be loaded: {error}") from error
    if not isinstance(loaded, Workload):
        raise UsageError(f"workload plug-in {entry.name} of {origin} is no Workload: {entry.value}")
    return dataclasses.replace(loaded, origin=origin)


def _unknown(name: str) -> str:
    known = sorted(workloads())
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"unknown workload {name!r}; {hint}"
