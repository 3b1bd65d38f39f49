"""What is told of a node by what it says of itself."""

import subprocess
import sys
from datetime import datetime, timezone

import pytest

from raybench.cluster.checkup import Checkup
from raybench.cluster.doctor import Diagnosis
from raybench.cluster.findings import Finding, between_nodes, of_node
from raybench.record.node import Node

GIB = 2**30


def checkup(node=None, **changes) -> Checkup:
    facts = {
        "node_key": "k", "sweep_run_id": "r", "seen_at": datetime(2026, 3, 1, tzinfo=timezone.utc), "host": "beta",
        "address": "10.0.0.3", "os": "Linux", "python_version": "3.11.7", "cpu_model": "CPU", "cpu_cores": 2,
        "memory_bytes": 8 * GIB, "gpu_count": 0, "gpu_models": "", "gpu_uuids": "", "gpu_memory_bytes": None,
        "driver_version": None, "torch_version": "2.13.0", "cuda_version": None, "nccl_version": None,
        "ray_version": "2.60.0", "raybench_version": "0.1.0", "network_interface": "eth0",
    } | (node or {})  # fmt: skip
    said = {
        "node": Node(**facts), "source_hash": "same", "now_s": 0.0, "token_mode": 0o600, "held_bytes": 0,
        "free_bytes": {"temporary files": 50 * GIB, "data": 50 * GIB, "shared memory": GIB},
    } | changes  # fmt: skip
    return Checkup(**said)


def told(seen: Checkup, ray_gpus: int = 0, skew_s: float = 0.0) -> list[str]:
    return [str(finding) for finding in of_node(seen, own_hash="same", ray_gpus=ray_gpus, skew_s=skew_s)]


def test_a_sound_node_is_told_nothing():
    """A token of its own user, room everywhere, the same raybench."""
    assert told(checkup()) == []


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        (checkup(source_hash="other"), "error: beta: raybench 0.1.0 with other sources than this command's; "),
        (checkup(token_mode=0o644), "warning: beta: the token file can be read by others (mode 644); chmod 600 "),
        (checkup(free_bytes={"temporary files": GIB // 2, "data": 50 * GIB, "shared memory": GIB}),
         "error: beta: 0.50 GiB free for temporary files, 2.00 are needed; "),
        (checkup(held_bytes=3 * GIB), "warning: beta: other processes hold 3.0 GiB on its GPUs; nvidia-smi "),
    ],
)  # fmt: skip
def test_each_fault_is_one_line_with_its_cure(seen, line):
    """One finding for one fault."""
    (found,) = told(seen)
    assert found.startswith(line)


def test_a_container_without_its_gpus():
    """Ray gives out eight that the driver does not show, and torch could not use them."""
    found = told(checkup(), ray_gpus=8)
    assert found[0].startswith("error: beta: Ray gives out 8 GPUs, the NVIDIA driver shows 0; ")
    assert found[1].startswith("error: beta: torch 2.13.0 is a CPU build; ")


@pytest.mark.parametrize(("skew_s", "count"), [(0.9, 0), (-2.5, 1), (1.1, 1)])
def test_a_clock_that_is_off(skew_s, count):
    """More than a second, either way."""
    assert len(told(checkup(), skew_s=skew_s)) == count


def test_nodes_with_different_torch():
    """Named with what each has."""
    (found,) = between_nodes([checkup(), checkup({"host": "gamma", "torch_version": "2.12.0"})])
    assert found.level == "warning"
    assert found.what == "nodes differ in torch_version: 2.13.0 on beta; 2.12.0 on gamma"


def test_exit_codes():
    """Warnings are fatal when asked to be, errors always."""
    warning, error = (Finding(level, "beta", "x", "y") for level in ("warning", "error"))
    assert Diagnosis((), ()).exit_code(strict=True) == 0
    assert [Diagnosis((), (warning,)).exit_code(strict=strict) for strict in (False, True)] == [0, 3]
    assert Diagnosis((), (warning, error)).exit_code(strict=False) == 3


def test_a_checkup_needs_no_torch():
    """Seconds on every node otherwise, and a torch that is broken there must not hide everything else."""
    code = "import sys, raybench.cluster.checkup, raybench.cluster.inventory; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
