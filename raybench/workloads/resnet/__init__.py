"""Residual networks that learn to tell random images apart: an image model's step without a data set."""

from __future__ import annotations

from raybench.spec.families.resnet import RESNET
from raybench.workloads.base import Workload
from raybench.workloads.resnet.counts import counts

WORKLOAD = Workload(family=RESNET, counts=counts, code="raybench.workloads.resnet.model:build")
