"""Every workload that a sweep may name, and what installed plug-ins add: workloads and sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from raybench.spec.options import KNOWN_OPTIONS
from raybench.spec.source_kind import SourceKind

BUILT_IN = (ENCDEC, DECODER, RESNET, MATMUL, MLP, ELEMENTWISE, COLLECTIVE)
ENTRY_POINT_GROUP = "raybench.workloads"
SOURCE_GROUP = "raybench.sources"


@dataclass(frozen=True)
class PlugIn:
    """What an installed distribution offers, loaded: `origin` is the distribution's name."""

    name: str
    origin: str
    loaded: Any
    what: str = "workload"

    def refused(self, why: str) -> UsageError:
        """The error that says what is wrong with it, and how to do without."""
        return UsageError(f"{self.what} plug-in {self.name} of {self.origin} {why}; --no-plugins does without plug-ins")


@cache      # it is asked once a config, and reading all installed metadata takes milliseconds
def plug_ins(group: str = ENTRY_POINT_GROUP) -> tuple[PlugIn, ...]:
    """Every installed plug-in of a group. Loading them runs their code. Raises UsageError where that cannot be done."""
    return tuple(map(_load, entry_points(group=group)))


def _load(entry: EntryPoint) -> PlugIn:
    origin = entry.dist.name if entry.dist is not None else entry.module
    found = PlugIn(entry.name, origin, None, "source" if entry.group == SOURCE_GROUP else "workload")
    try:
        return replace(found, loaded=entry.load())
    except Exception as error:      # whatever somebody else's code raises while it is imported
        raise found.refused(f"cannot be loaded: {error or type(error).__name__}") from error


def source_kinds(*, no_plugins: bool = False) -> dict[str, SourceKind]:
    """The sources of installed plug-ins by name; none with `no_plugins`. A built-in name cannot be taken over.

    A plug-in is an entry point in the group `raybench.sources` whose object is a `SourceKind`.
    """
    found: dict[str, SourceKind] = {}
    for plug_in in () if no_plugins else plug_ins(SOURCE_GROUP):
        if not isinstance(plug_in.loaded, SourceKind):
            raise plug_in.refused("is no SourceKind")
        if plug_in.loaded.name not in KNOWN_OPTIONS["source"]:
            found.setdefault(plug_in.loaded.name, plug_in.loaded)
    return found


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
