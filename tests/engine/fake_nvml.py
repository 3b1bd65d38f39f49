"""A stand-in for the module `pynvml`: made-up GPUs that may refuse to answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class FakeNvml:
    """GPUs by UUID; `refuses` names functions that are not supported."""

    class NVMLError(Exception):
        """What NVML raises."""

    def __init__(self, *uuids: str, refuses: tuple[str, ...] = ()) -> None:
        self.uuids = list(uuids)
        self.processes = [SimpleNamespace(pid=1, usedGpuMemory=500), SimpleNamespace(pid=42, usedGpuMemory=1000)]
        for name in refuses:
            setattr(self, name, self._refuse)

    def _refuse(self, *args: Any) -> Any:
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetCount(self) -> int:
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return self.uuids[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self.uuids:
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return handle

    def nvmlDeviceGetName(self, handle: str) -> bytes:
        return b"NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(total=1000)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.1"

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return SimpleNamespace(gpu=50 if handle == self.uuids[0] else 100)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 700_000

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        return 5_000

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
        return self.processes
