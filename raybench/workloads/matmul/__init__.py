"""One large product of matrices, its rows split over the workers: what the chip can do when nothing else is asked."""

from __future__ import annotations

from raybench.spec.families.matmul import MATMUL
from raybench.workloads.base import Workload
from raybench.workloads.matmul.counts import counts

WORKLOAD = Workload(family=MATMUL, counts=counts, code="raybench.workloads.matmul.model:build")
