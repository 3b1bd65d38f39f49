"""NVML, asked by UUID: it ignores `CUDA_VISIBLE_DEVICES`, so an index would be another GPU. Imports no torch.

Everything it may refuse is None: on many systems a reading is unsupported or forbidden, which is no 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Gpu:
    """One GPU of this node, whoever may use it. `memory_bytes` is None where the driver does not say."""

    uuid: str
    model: str
    memory_bytes: int | None


class Nvml:
    """The library, or nothing: without it (no NVIDIA driver) there are no GPUs and no answers.

    `module` is `pynvml`, or a stand-in in tests.
    """

    def __init__(self, module: Any | None) -> None:
        self._module = module
        self._handles: dict[str, Any] = {}

    @classmethod
    def load(cls) -> Nvml:
        """NVML of this node, initialised; it stays so until the process ends."""
        try:
            import pynvml
        except ImportError:
            return cls(None)
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return cls(None)
        return cls(pynvml)

    def gpus(self) -> tuple[Gpu, ...]:
        """Every GPU that NVML sees, in its order."""
        nvml = self._module
        if nvml is None:
            return ()
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return tuple(self._gpu(handle) for handle in handles)

    def driver_version(self) -> str | None:
        """Version of the GPU driver."""
        nvml = self._module
        return None if nvml is None else self._ask(lambda: _text(nvml.nvmlSystemGetDriverVersion()))

    def utilization(self, uuid: str | None) -> float | None:
        """Share of the last moments (1/6 to 1 s, by chip) in which a kernel ran, 0 to 1."""
        return self._of(uuid, lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100)

    def power_w(self, uuid: str | None) -> float | None:
        """Power draw of the board."""
        return self._of(uuid, lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3)

    def energy_j(self, uuid: str | None) -> float | None:
        """Energy since the driver was loaded."""
        return self._of(uuid, lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1e3)

    def process_bytes(self, uuid: str | None, pid: int) -> int | None:
        """Memory that a process holds on a GPU; None where NVML does not list it (a container hides process ids)."""
        return self.processes(uuid).get(pid)

    def processes(self, uuid: str | None) -> dict[int, int]:
        """Process id and bytes held, of every process that computes on a GPU and whose memory NVML tells."""
        running = self._of(uuid, lambda nvml, gpu: nvml.nvmlDeviceGetComputeRunningProcesses(gpu))
        return {one.pid: one.usedGpuMemory for one in running or () if one.usedGpuMemory is not None}

    def _gpu(self, handle: Any) -> Gpu:
        nvml = self._module
        assert nvml is not None
        return Gpu(
            uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
            model=_text(nvml.nvmlDeviceGetName(handle)),
            memory_bytes=self._ask(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
        )

    def _of(self, uuid: str | None, read: Callable[[Any, Any], Value]) -> Value | None:
        nvml = self._module
        if nvml is None or uuid is None:
            return None
        return self._ask(lambda: read(nvml, self._handle(uuid)))

    def _handle(self, uuid: str) -> Any:
        assert self._module is not None
        if uuid not in self._handles:
            self._handles[uuid] = self._module.nvmlDeviceGetHandleByUUID(uuid)
        return self._handles[uuid]

    def _ask(self, read: Callable[[], Value]) -> Value | None:
        assert self._module is not None
        try:
            return read()
        except self._module.NVMLError:
            return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
