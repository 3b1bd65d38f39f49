"""Attention kernels: all but the one asked for are switched off, and what runs is found by looking, not by asking."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from raybench.errors import UnsupportedError
from raybench.spec.config import Attention
from raybench.spec.samples import Batch

_KERNELS = MappingProxyType({
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_flash_attention_for_cpu": "flash",
    "_scaled_dot_product_efficient_attention": "efficient",
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_safe_softmax": "math",     # a softmax by itself: the scores were written out (losses use log_softmax)
    "_softmax": "math",
})
_NONE_LEFT: Final = re.compile(r"No available kernel|No viable backend", re.I)
_SOURCE_LINE: Final = re.compile(r"\s*\(Triggered internally.*", re.DOTALL)


def switch_attention(asked: Attention | None) -> None:
    """Leave torch only the kernel asked for; with `auto` its own choice. Between trials the switches are put back.

    These are the switches that `torch.nn.attention.sdpa_kernel` sets. They hold for the whole trial, because the
    forward pass is not the only place where the kernel is chosen: torch.compile asks while it traces, and a
    checkpointed block runs forward again inside the backward pass.
    """
    if asked is None or asked == "auto":
        return
    torch.backends.cuda.enable_flash_sdp(asked == "flash")
    torch.backends.cuda.enable_cudnn_sdp(asked == "cudnn")
    torch.backends.cuda.enable_mem_efficient_sdp(asked == "efficient")
    torch.backends.cuda.enable_math_sdp(asked == "math")


def require(asked: Attention | None, look: Callable[[], str | None]) -> None:
    """Make sure that the kernel asked for is the one that runs. `look` runs a forward pass and says what did.

    Raises:
        UnsupportedError: torch has no such kernel for this model, precision and device, with torch's reasons.
    """
    if asked is None or asked == "auto":
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = look()
        except RuntimeError as error:
            if not _NONE_LEFT.search(str(error)):
                raise
            why = "; ".join(_SOURCE_LINE.sub("", str(each.message)) for each in told)
            raise UnsupportedError(f"attention {asked} cannot run here: {why or error}") from error
    if found != asked:
        raise UnsupportedError(f"attention {asked} cannot be had: this model runs {found or 'no attention'}")


def attention_kernels(
    network: nn.Module, batch: Batch, autocast: AbstractContextManager[None], *, with_gradients: bool
) -> str | None:
    """The kernels of one forward pass, sorted and joined by `;`; None where there is no attention.

    Run it outside the window: it sees each operator, which takes time. Compiled code calls the same kernels.
    """
    seen = _Seen()
    with torch.set_grad_enabled(with_gradients), autocast, seen:
        network(batch)
    return ";".join(sorted(seen.kernels)) or None


class _Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes each attention kernel as it is dispatched."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels: set[str] = set()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = str(getattr(func, "overloadpacket", func)).rpartition(".")[2]
        if name in _KERNELS:
            self.kernels.add(_KERNELS[name])
        return func(*args, **(kwargs or {}))
