"""Where an attention kernel that is asked for cannot run, as far as that is known before anything starts."""

from __future__ import annotations

from typing import Final

from raybench.spec.config import TrialConfig

_ON_CPU: Final = ("auto", "flash", "math")
_ONLY_IN_HALF: Final = ("flash", "cudnn")
_AMPERE: Final = (8, 0)


def no_such_kernel(config: TrialConfig, device_kind: str, capability: tuple[int, int] | None) -> str | None:
    """Why the attention kernel asked for cannot run on such a device, in a few words; None when it may.

    Imports no torch. What only shapes decide, torch says when the trial is built.
    """
    asked = config.attention
    if asked is None or asked == "auto":
        return None
    if device_kind == "cpu":
        if asked not in _ON_CPU:
            return f"attention {asked} needs a CUDA device"
        trains_with_dropout = config.phase != "forward" and getattr(config.model, "dropout", 0.0) > 0
        return "attention flash has no dropout on CPU" if asked == "flash" and trains_with_dropout else None
    if asked in _ONLY_IN_HALF and config.precision in ("fp32", "tf32"):
        return f"attention {asked} needs bf16 or fp16, not {config.precision}"
    if asked in _ONLY_IN_HALF and capability is not None and capability < _AMPERE:
        found = ".".join(map(str, capability))
        return f"attention {asked} needs compute capability 8.0 (Ampere) or later; this GPU has {found}"
    return None
