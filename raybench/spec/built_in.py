"""Every workload that a sweep may name."""

from __future__ import annotations

from importlib.metadata import entry_points

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


def families() -> dict[str, Family]:
    """The built-in workloads by name, then those of installed plug-ins.

    A plug-in is an entry point in the group `raybench.workloads` whose object has a `family`.
    """
    found = {family.name: family for family in BUILT_IN}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        family = entry.load().family
        found.setdefault(family.name, family)
    return found


def family(name: str) -> Family:
    """The workload of that name, which some config has already."""
    return next((known for known in BUILT_IN if known.name == name), None) or families()[name]
