"""The exchanges: what one step of `collective` does on one rank."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from raybench.errors import UnsupportedError
from raybench.spec.config import TrialConfig
from raybench.spec.models.collective import CollectiveShape

_NOT_OFFERED = re.compile(r"invalid scalar type|not? (yet )?(support|implement)|unsupported", re.I)
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor     # its name before torch 2.13


@dataclass(frozen=True)
class Exchange:
    """`call` sends `send` and fills `receive`, which may be the same memory.

    `example` is what a rank sends to prove it, and `expected` what it must then have received: each a value for each of
    as many equal parts of the buffer.
    """

    send: torch.Tensor
    receive: torch.Tensor
    call: Callable[[], object]
    example: tuple[float, ...]
    expected: tuple[float, ...]


def build(
    config: TrialConfig, rank: int, world_size: int, device: torch.device, dtype: torch.dtype
) -> Callable[[], None]:
    """The exchange between all ranks of the process group, proven right once. There is no result to fetch.

    all_reduce sums in place, as nccl-tests' in-place column and as gradients are reduced; its numbers grow n-fold with
    each step until they are infinite, which takes as long to add as any other.

    Raises:
        UnsupportedError: there is no process group, or its backend does not offer the exchange for this type.
        ArithmeticError: what was received is wrong.
    """
    assert isinstance(config.model, CollectiveShape)
    if not dist.is_initialized():
        raise UnsupportedError("a collective needs a process group, which this process has not joined")
    exchange = _exchange(config.model, rank, world_size, device, dtype)
    _prove(exchange, f"{config.model.op} of {config.precision}", rank)
    exchange.send.normal_(generator=torch.Generator(device=device).manual_seed(config.seed + 1 + rank))

    def step() -> None:
        exchange.call()

    return step


def _exchange(
    shape: CollectiveShape, rank: int, ranks: int, device: torch.device, dtype: torch.dtype
) -> Exchange:
    """Buffers, call, and the values of its proof."""
    numbers, remainder = divmod(shape.size_bytes, dtype.itemsize)
    assert remainder == 0, f"{shape.size_bytes} bytes of {dtype}"
    assert shape.op == "all_reduce" or numbers % ranks == 0, f"{numbers} numbers over {ranks} ranks"
    whole = torch.empty(numbers, device=device, dtype=dtype)
    if shape.op == "all_reduce":
        total = sum(map(_value, range(ranks)))
        return Exchange(whole, whole, lambda: dist.all_reduce(whole), (_value(rank),), (total,))
    if shape.op == "all_gather":
        part = torch.empty(numbers // ranks, device=device, dtype=dtype)
        gathered = tuple(map(_value, range(ranks)))
        return Exchange(part, whole, lambda: _all_gather(whole, part), (_value(rank),), gathered)
    send = torch.empty_like(whole)
    sent = tuple(_value(rank + 2 * other) for other in range(ranks))
    received = tuple(_value(other + 2 * rank) for other in range(ranks))
    return Exchange(send, whole, lambda: dist.all_to_all_single(whole, send), sent, received)


def _value(number: int) -> float:
    """A small value that neighbouring ranks do not share."""
    return float(number % 5 + 1)


def _prove(exchange: Exchange, what: str, rank: int) -> None:
    """Exchange known values once and look at every number that arrives."""
    for part, value in zip(_parts(exchange.send, len(exchange.example)), exchange.example, strict=True):
        part.fill_(value)
    try:
        exchange.call()
    except (RuntimeError, ValueError, TypeError) as error:
        if not _NOT_OFFERED.search(str(error)):
            raise
        raise UnsupportedError(f"{dist.get_backend()} has no {what}: {str(error).splitlines()[0]}") from error
    arrived = zip(_parts(exchange.receive, len(exchange.expected)), exchange.expected, strict=True)
    if not all(_is(part, value) for part, value in arrived):
        raise ArithmeticError(f"{what} gave wrong numbers on rank {rank}")


def _is(part: torch.Tensor, value: float) -> bool:
    """Whether every number has the value: exactly, but for sums over so many ranks that bf16 must round them."""
    return bool((part == value).all() if value <= 256 else ((part - value).abs() <= 0.01 * value).all())


def _parts(buffer: torch.Tensor, number: int) -> Iterable[torch.Tensor]:
    """Equal parts, one after the other."""
    return buffer.view(number, -1).unbind()
