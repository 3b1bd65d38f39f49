"""Which workloads there are: raybench's own and those of installed plug-ins. Imports no torch.

A plug-in is a distribution with an entry point in the group `raybench.workloads` that names a `Workload`. Built-in
names cannot be taken over, so that a column `workload = encdec` means the same on every machine.
"""

from __future__ import annotations

import dataclasses
import difflib

from raybench.errors import UsageError
from raybench.measure.counts import Counts
from raybench.spec.built_in import PlugIn, plug_ins
from raybench.spec.config import TrialConfig
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



def counts_of(config: TrialConfig) -> Counts:
    """What a step of a config amounts to. Of phase `load` only its samples and tokens: there is no model.

    Raises:
        UsageError: there is no such workload.
    """
    counts = workload(config.workload).counts
    if config.phase != "load":
        return counts(config)
    whole = counts(config.model_copy(update={"phase": "forward"}))
    return Counts(
        parameters=None,
        samples_per_step=whole.samples_per_step,
        tokens_per_step=whole.tokens_per_step,
        model_flops_per_step=None,
        model_flops_causal_per_step=None,
        memory_bytes=None,
    )


def workloads(*, no_plugins: bool = False) -> dict[str, Workload]:
    """Every workload by name: the built-in ones first, then those of plug-ins, which `no_plugins` leaves alone.

    Raises:
        UsageError: a plug-in cannot be loaded.
    """
    return dict(_BUILT_IN) if no_plugins else {**_BUILT_IN, **_plug_ins()}


def _plug_ins() -> dict[str, Workload]:
    loaded = map(_workload, plug_ins())
    return {found.family.name: found for found in reversed(list(loaded)) if found.family.name not in _BUILT_IN}


def _workload(plug_in: PlugIn) -> Workload:
    if not isinstance(plug_in.loaded, Workload):
        raise plug_in.refused("is no Workload")
    return dataclasses.replace(plug_in.loaded, origin=plug_in.origin)


def _unknown(name: str) -> str:
    known = sorted(workloads())
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"unknown workload {name!r}; {hint}"
