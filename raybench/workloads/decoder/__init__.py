"""A decoder-only transformer that learns the next of random tokens: GPT-2's family and its modern successor's."""

from __future__ import annotations

from raybench.spec.families.decoder import DECODER
from raybench.workloads.base import Workload
from raybench.workloads.decoder.counts import counts

WORKLOAD = Workload(family=DECODER, counts=counts, code="raybench.workloads.decoder.model:build")
