"""What a trial may have changed in its process, put back so that the next one starts as the first did."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Switch:
    """One global setting of torch: how it is read and how it is set."""

    read: Callable[[], Any]
    write: Callable[[Any], Any]

    def differs_from(self, value: Any) -> bool:
        """Whether it is set to something else. torch refuses to say when its older and newer switches contradict."""
        try:
            return bool(self.read() != value)
        except RuntimeError:
            return True


def _attribute(owner: Any, name: str) -> Switch:
    return Switch(lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


_cuda = torch.backends.cuda
_HAS_FP32_PRECISION = hasattr(torch.backends, "fp32_precision")

SWITCHES: dict[str, Switch] = {
    # In this order, and without `matmul.allow_tf32`: from torch 2.9 on a switch for all of fp32 lies under the older
    # ones, and these two older ones, written after it, set all that any of them may have changed.
    **({"fp32_precision": _attribute(torch.backends, "fp32_precision")} if _HAS_FP32_PRECISION else {}),
    "float32_matmul_precision": Switch(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "cudnn_tf32": _attribute(torch.backends.cudnn, "allow_tf32"),
    "fp16_reduction": _attribute(_cuda.matmul, "allow_fp16_reduced_precision_reduction"),
    "bf16_reduction": _attribute(_cuda.matmul, "allow_bf16_reduced_precision_reduction"),
    "cudnn_enabled": _attribute(torch.backends.cudnn, "enabled"),
    "cudnn_benchmark": _attribute(torch.backends.cudnn, "benchmark"),
    "cudnn_deterministic": _attribute(torch.backends.cudnn, "deterministic"),
    "deterministic_algorithms": Switch(
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    "default_dtype": Switch(torch.get_default_dtype, torch.set_default_dtype),
    "default_device": Switch(lambda: None, torch.set_default_device),
    "threads": Switch(torch.get_num_threads, torch.set_num_threads),
    "flash_sdp": Switch(_cuda.flash_sdp_enabled, _cuda.enable_flash_sdp),
    "efficient_sdp": Switch(_cuda.mem_efficient_sdp_enabled, _cuda.enable_mem_efficient_sdp),
    "math_sdp": Switch(_cuda.math_sdp_enabled, _cuda.enable_math_sdp),
    "cudnn_sdp": Switch(_cuda.cudnn_sdp_enabled, _cuda.enable_cudnn_sdp),
    "mha_fastpath": Switch(torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled),
    "grad_mode": Switch(torch.is_grad_enabled, torch.set_grad_enabled),
    "anomaly_mode": Switch(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
}  # fmt: skip
"""`default_device` is always put back to none: a group starts without one."""


@dataclass(frozen=True)
class ProcessState:
    """The global switches, and the environment, of a process between trials."""

    switches: dict[str, Any]
    environment: dict[str, str]

    @classmethod
    def now(cls) -> ProcessState:
        """As they are at this moment."""
        return cls({name: switch.read() for name, switch in SWITCHES.items()}, dict(os.environ))

    def restore(self) -> None:
        """Put everything back that is not as it was, and forget compiled graphs."""
        for name, switch in SWITCHES.items():
            if switch.differs_from(self.switches[name]) or name == "default_device":
                switch.write(self.switches[name])
        for name in os.environ.keys() - self.environment.keys():
            del os.environ[name]
        os.environ.update(self.environment)
        forget_compiled()


def forget_compiled() -> None:
    """Drop compiled graphs and what they hold, if anything in this process was ever compiled."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()
