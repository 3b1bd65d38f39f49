"""An encoder-decoder transformer that learns random token pairs: a language model's step without a corpus."""

from __future__ import annotations

from raybench.spec.families.encdec import ENCDEC
from raybench.workloads.base import Workload
from raybench.workloads.encdec.counts import counts

WORKLOAD = Workload(family=ENCDEC, counts=counts, code="raybench.workloads.encdec.model:build")
