"""The forward pass of a multi-layer perceptron, its batch split over the workers: products with a ReLU between."""

from __future__ import annotations

from raybench.spec.families.mlp import MLP
from raybench.workloads.base import Workload
from raybench.workloads.mlp.counts import counts

WORKLOAD = Workload(family=MLP, counts=counts, code="raybench.workloads.mlp.model:build")
