"""NVML asked by UUID, and what becomes of refusals."""

from __future__ import annotations

import sys

import pytest

from raybench.engine.nvml import Gpu, Nvml
from tests.engine.fake_nvml import FakeNvml

READINGS = {
    "utilization": "nvmlDeviceGetUtilizationRates",
    "power_w": "nvmlDeviceGetPowerUsage",
    "energy_j": "nvmlDeviceGetTotalEnergyConsumption",
}


def test_units() -> None:
    """Percent to a ratio, milliwatts to watts, millijoules to joules; bytes to text."""
    nvml = Nvml(FakeNvml("GPU-a", "GPU-b"))
    assert (nvml.utilization("GPU-a"), nvml.power_w("GPU-a"), nvml.energy_j("GPU-a")) == (0.5, 700.0, 5.0)
    assert nvml.gpus()[1] == Gpu("GPU-b", "NVIDIA H200", 1000)
    assert nvml.driver_version() == "570.1"


def test_a_gpu_is_found_by_its_uuid() -> None:
    """The second GPU answers for itself, whichever indices are visible."""
    assert Nvml(FakeNvml("GPU-a", "GPU-b")).utilization("GPU-b") == 1.0


@pytest.mark.parametrize("name", READINGS)
def test_unsupported_is_none(name: str) -> None:
    """Never 0, never -1; nor for a GPU that NVML does not know, nor on CPU, nor without NVML."""
    refusing = Nvml(FakeNvml("GPU-a", refuses=(READINGS[name],)))
    assert getattr(refusing, name)("GPU-a") is None
    working = Nvml(FakeNvml("GPU-a"))
    assert getattr(working, name)("GPU-z") is None
    assert getattr(working, name)(None) is None
    assert getattr(Nvml(None), name)("GPU-a") is None


def test_memory_of_a_process() -> None:
    """That of the process asked for; None where NVML does not list it."""
    nvml = Nvml(FakeNvml("GPU-a"))
    assert nvml.process_bytes("GPU-a", 42) == 1000
    assert nvml.process_bytes("GPU-a", 43) is None


def test_memory_info_may_be_refused() -> None:
    """The GPU is there all the same."""
    refusing = Nvml(FakeNvml("GPU-a", refuses=("nvmlDeviceGetMemoryInfo",)))
    assert refusing.gpus() == (Gpu("GPU-a", "NVIDIA H200", None),)


def test_without_a_driver_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quietly, whether the driver's library or the Python module is missing."""
    fake = FakeNvml(refuses=("nvmlInit",))
    monkeypatch.setitem(sys.modules, "pynvml", fake)  # type: ignore[arg-type]
    assert Nvml.load().gpus() == ()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert Nvml.load().gpus() == ()
    assert Nvml.load().driver_version() is None
