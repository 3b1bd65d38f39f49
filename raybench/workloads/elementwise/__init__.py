"""Arithmetic number by number, its rows split over the workers: what the memory can do, not the chip's arithmetic."""

from __future__ import annotations

from raybench.spec.families.elementwise import ELEMENTWISE
from raybench.workloads.base import Workload
from raybench.workloads.elementwise.counts import counts

WORKLOAD = Workload(family=ELEMENTWISE, counts=counts, code="raybench.workloads.elementwise.model:build")
