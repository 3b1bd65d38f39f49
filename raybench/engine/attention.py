"""Which attention kernels a network runs: chosen by torch at each call, so seen by looking, not by asking."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from raybench.spec.samples import Batch

_KERNELS = MappingProxyType({
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_flash_attention_for_cpu": "flash",
    "_scaled_dot_product_efficient_attention": "efficient",
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_safe_softmax": "math",     # a softmax by itself: the scores were written out (losses use log_softmax)
    "_softmax": "math",
})


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
