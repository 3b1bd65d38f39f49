"""One exchange between all ranks, over and over: what the links between GPUs can do."""

from __future__ import annotations

from raybench.spec.families.collective import COLLECTIVE
from raybench.workloads.base import Workload
from raybench.workloads.collective.counts import counts

WORKLOAD = Workload(family=COLLECTIVE, counts=counts, code="raybench.workloads.collective.model:build")
