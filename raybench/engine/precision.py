"""What a precision means in torch, and where it cannot run."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from raybench.engine.kernels import no_such_kernel
from raybench.spec.config import Precision, TrialConfig

if TYPE_CHECKING:
    import torch

_TENSOR_CORES_OF_AMPERE: Final = (8, 0)     # the first compute capability with tf32 and bf16


def unsupported(config: TrialConfig, device_kind: str, capability: tuple[int, int] | None = None) -> str | None:
    """Why a config cannot run on such a device, in a few words; None when it can. Imports no torch.

    `device_kind` is `cuda` or `cpu`; `capability` the GPU's compute capability, None when it is not known.
    """
    if config.device == "cuda" and device_kind != "cuda":
        return "device cuda was asked for and there is none"
    if config.backend == "nccl" and device_kind != "cuda":
        return "backend nccl needs a CUDA device"
    if config.phase == "load":
        return None          # nothing is computed in any precision
    if config.precision == "tf32" and device_kind != "cuda":
        return "tf32 needs a CUDA device"
    ampere = config.precision in ("tf32", "bf16", "bf16_params")
    if ampere and capability is not None and capability < _TENSOR_CORES_OF_AMPERE:
        found = ".".join(map(str, capability))
        return f"{config.precision} needs compute capability 8.0 (Ampere) or later; this GPU has {found}"
    return no_such_kernel(config, device_kind, capability)


def dtype(precision: Precision) -> torch.dtype:
    """The type of operands that are held in that precision; tf32 is a way to compute on fp32 numbers."""
    import torch

    lower = {"bf16": torch.bfloat16, "bf16_params": torch.bfloat16, "fp16": torch.float16}
    return lower.get(precision, torch.float32)


def autocast(precision: Precision, device_kind: str) -> AbstractContextManager[None]:
    """The context of a forward pass: weights stay fp32, products run in bf16 or fp16 where that is asked.

    Not for `bf16_params`, where the weights themselves are bf16 and everything is computed in what it is held in.
    """
    import torch

    lower = precision in ("bf16", "fp16")
    return torch.autocast(device_kind, dtype=dtype(precision) if lower else torch.bfloat16, enabled=lower)


def switch_tf32(precision: Precision) -> None:
    """TF32 on for tf32 and off for all others, for products and convolutions alike. Between trials it is put back."""
    import torch

    on = precision == "tf32"
    torch.set_float32_matmul_precision("high" if on else "highest")      # sets `matmul.allow_tf32`, too
    torch.backends.cudnn.allow_tf32 = on


def effective(precision: Precision, device_kind: str) -> str:
    """What fp32 products ran as, read back from the switch; bf16 and fp16 are what they say."""
    import torch

    if precision in ("bf16", "fp16", "bf16_params"):
        return precision
    return "tf32" if device_kind == "cuda" and torch.backends.cuda.matmul.allow_tf32 else "fp32"
