"""The facts of a node."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import socket
import subprocess
import sys

import torch

from raybench.engine.environment import cuda_built_for, node_facts, version_of
from raybench.engine.nvml import Nvml
from raybench.version import __version__
from tests.engine.fake_nvml import FakeNvml

NO_GPU = Nvml(None)


def test_the_key_is_a_hash_of_the_facts() -> None:
    """16 hex of SHA-256 over canonical JSON of everything but the key, the run and when it was seen."""
    node = node_facts(sweep_run_id="one", address="10.0.0.1", nvml=NO_GPU)
    facts = dataclasses.asdict(node)
    for name in ("node_key", "sweep_run_id", "seen_at"):
        del facts[name]
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert node.node_key == hashlib.sha256(canonical.encode()).hexdigest()[:16]


def test_only_facts_change_the_key() -> None:
    """Another run sees the same node; another address or GPU is another."""
    one = node_facts(sweep_run_id="one", address="10.0.0.1", nvml=NO_GPU)
    assert node_facts(sweep_run_id="two", address="10.0.0.1", nvml=NO_GPU).node_key == one.node_key
    assert node_facts(sweep_run_id="one", address="10.0.0.2", nvml=NO_GPU).node_key != one.node_key
    with_gpu = node_facts(sweep_run_id="one", address="10.0.0.1", nvml=Nvml(FakeNvml("GPU-a")))
    assert with_gpu.node_key != one.node_key


def test_facts_of_this_machine() -> None:
    """What can be checked by other means."""
    node = node_facts(sweep_run_id="one", address="10.0.0.1", nvml=NO_GPU)
    assert node.host == socket.gethostname()
    assert node.cpu_cores == len(os.sched_getaffinity(0))
    assert node.memory_bytes > 2**28
    assert node.torch_version == str(torch.__version__)
    assert node.raybench_version == __version__
    assert (node.gpu_count, node.gpu_models, node.gpu_uuids, node.driver_version) == (0, "", "", None)


def test_facts_of_gpus() -> None:
    """In NVML's order, joined by semicolons."""
    node = node_facts(sweep_run_id="one", address="10.0.0.1", nvml=Nvml(FakeNvml("GPU-a", "GPU-b")))
    assert (node.gpu_count, node.gpu_models) == (2, "NVIDIA H200;NVIDIA H200")
    assert (node.gpu_uuids, node.gpu_memory_bytes, node.driver_version) == ("GPU-a;GPU-b", 1000, "570.1")


def test_versions() -> None:
    """What torch says of itself, without asking torch; what is not installed has none."""
    assert cuda_built_for() == torch.version.cuda
    assert version_of("raybench-no-such-distribution") is None


def test_no_torch_is_imported() -> None:
    """A driver asks about its own node; importing torch would take it 1.6 s."""
    code = (
        "import sys; from raybench.engine.environment import node_facts, visible_gpus; visible_gpus();"
        "node_facts(sweep_run_id='', address=''); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
