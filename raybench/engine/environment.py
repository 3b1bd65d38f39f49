"""The facts of a node, and of what runs on it. Imports no torch, so that a driver may ask about its own node."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import socket
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from raybench.engine.nvml import Gpu, Nvml
from raybench.record.node import Node
from raybench.spec.config import canonical_json
from raybench.version import __version__

_CPU_NAME = re.compile(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", re.MULTILINE)
_TORCH = re.compile(r"^__version__\b[^=]*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)
_CUDA = re.compile(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


def visible_gpus() -> tuple[Gpu, ...]:
    """Every GPU of this node that NVML sees; none, without a word, where there is no NVIDIA driver."""
    return Nvml.load().gpus()


def node_facts(*, sweep_run_id: str, address: str, nvml: Nvml | None = None) -> Node:
    """The facts of this node. `address` is the node's Ray address; `nvml` a stand-in in tests.

    `node_key` is a hash of all but itself, the run, and when they were read.
    """
    facts = {**_machine(), **_gpus(nvml or Nvml.load()), **_software(), "address": address}
    facts["network_interface"] = interface_of(address)
    return Node(
        node_key=hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:16],
        sweep_run_id=sweep_run_id,
        seen_at=datetime.now(timezone.utc),
        **facts,
    )


def interface_of(address: str) -> str | None:
    """The network interface that carries an address of this node; None where none does."""
    import psutil  # here, because `plan` counts this machine's GPUs where nothing but readers' packages are

    for name, entries in psutil.net_if_addrs().items():
        if any(entry.address == address for entry in entries):
            return name
    return None


def cuda_built_for() -> str | None:
    """The CUDA version that torch was built for; None on a CPU build or without torch."""
    found = _CUDA.search(_torch_version_file())
    return found.group(1) if found else None


def torch_version() -> str | None:
    """What `torch.__version__` says, local part included (`+cu130`), which the distribution's own version may lack."""
    found = _TORCH.search(_torch_version_file())
    return found.group(1) if found else None


def version_of(distribution: str) -> str | None:
    """The installed version of a distribution; None when it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _machine() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "os": platform.platform(),
        "python_version": platform.python_version(),
        "cpu_model": _cpu_model(),
        "cpu_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _gpus(nvml: Nvml) -> dict[str, Any]:
    gpus = nvml.gpus()
    return {
        "gpu_count": len(gpus),
        "gpu_models": ";".join(gpu.model for gpu in gpus),
        "gpu_uuids": ";".join(gpu.uuid for gpu in gpus),
        "gpu_memory_bytes": gpus[0].memory_bytes if gpus else None,
        "driver_version": nvml.driver_version() if gpus else None,
    }


def _software() -> dict[str, Any]:
    cuda = cuda_built_for()
    return {
        "torch_version": torch_version(),
        "cuda_version": cuda,
        "nccl_version": version_of(f"nvidia-nccl-cu{cuda.partition('.')[0]}") if cuda else None,
        "ray_version": version_of("ray"),
        "raybench_version": __version__,
    }


def _cpu_model() -> str | None:
    found = _CPU_NAME.search(Path("/proc/cpuinfo").read_text())
    return found.group(1).strip() if found else None


@functools.cache
def _torch_version_file() -> str:
    """`torch/version.py`, read as text: importing it would import torch, which takes seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return ""
    return (Path(spec.origin).parent / "version.py").read_text()
