"""Every workload that a sweep may name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from raybench.errors import UsageError
from raybench.spec.families.collective import COLLECTIVE
from raybench.spec.families.decoder import DECODER
from raybench.spec.families.elementwise import ELEMENTWISE
from raybench.spec.families.encdec import ENCDEC
from raybench.spec.families.matmul import MATMUL
from raybench.spec.families.mlp import MLP
from raybench.spec.families.resnet import RESNET
from raybench.spec.family import Family

BUILT_IN = (ENCDEC, DECODER, RESNET, MATMUL, MLP, ELEMENTWISE, COLLECTIVE)
ENTRY_POINT_GROUP = "raybench.workloads"


@dataclass(frozen=True)
class PlugIn:
    """What an installed distribution offers, loaded: `origin` is the distribution's name."""

    name: str
    origin: str
    loaded: Any

    def refused(self, why: str) -> UsageError:
        """The error that says what is wrong with it, and how to do without."""
        return UsageError(f"workload plug-in {self.name} of {self.origin} {why}; --no-plugins does without plug-ins")


@cache      # it is asked once a config, and reading all installed metadata takes milliseconds
def plug_ins() -> tuple[PlugIn, ...]:
    """Every installed plug-in. Loading them runs their code. Raises UsageError for one that cannot be loaded."""
    return tuple(map(_load, entry_points(group=ENTRY_POINT_GROUP)))


def _load(entry: EntryPoint) -> PlugIn:
    origin = entry.dist.name if entry.dist is not None else entry.module
    try:
        return PlugIn(entry.name, origin, entry.load())
    except Exception as error:      # whatever somebody else's code raises while it is imported
        raise PlugIn(entry.name, origin, None).refused(f"cannot be loaded: {error or type(error).__name__}") from error


def families(*, no_plugins: bool = False) -> dict[str, Family]:
    """The built-in workloads by name, then those of installed plug-ins, which `no_plugins` leaves alone.

    A plug-in is an entry point in the group `raybench.workloads` whose object has a `family`.
    """
    found = {family.name: family for family in BUILT_IN}
    for plug_in in () if no_plugins else plug_ins():
        family = getattr(plug_in.loaded, "family", None)
        if not isinstance(family, Family):
            raise plug_in.refused("is no Workload")
        found.setdefault(family.name, family)
    return found


def family(name: str) -> Family:
    """The workload of that name, which some config has already."""
    return next((known for known in BUILT_IN if known.name == name), None) or families()[name]
