"""`prices.yaml`: what an hour costs, by GPU model or by cluster, read as strictly as a sweep."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from raybench.errors import UsageError
from raybench.spec.document import BAD, MAX_BYTES, Node, read_document
from raybench.spec.mistakes import Mistakes, instead, printable, shown
from raybench.spec.names import NAME_RULE, gpu_words, is_name

PARTS: Final = ("gpu", "cluster")
MAX_USD: Final = 1e6
"""An hour that costs more is a slip of the decimal point."""


@dataclass(frozen=True)
class PriceBook:
    """USD an hour: `gpu` of one GPU, by the words of its driver's name; `cluster` of the whole cluster."""

    gpu: Mapping[str, float] = field(default_factory=dict)
    cluster: Mapping[str, float] = field(default_factory=dict)

    def usd_per_hour(self, cluster: str, gpu_models: Sequence[str]) -> float | None:
        """What an hour of these GPUs costs: the cluster's price where it has one, else the sum over the GPUs.

        None where a GPU has no price, and without a GPU.
        """
        if cluster in self.cluster:
            return self.cluster[cluster]
        prices = [self.gpu.get(gpu_words(model)) for model in gpu_models]
        known = [price for price in prices if price is not None]
        return sum(known) if known and len(known) == len(prices) else None


def read_prices(prices: str | os.PathLike[str] | Mapping[str, Any] | PriceBook) -> PriceBook:
    """The prices in a file, or in a mapping of its form. Raises SweepError with every mistake, UsageError for no file.

    A GPU goes by its driver's name, `NVIDIA H200`; capitals and the maker's name do not count.
    """
    if isinstance(prices, PriceBook):
        return prices
    data, file = _text(prices)
    mistakes = Mistakes()
    root = read_document(data, file, mistakes)
    book = PriceBook() if root is None else _book(root, mistakes)
    mistakes.raise_if_any()
    return book


def _text(prices: Any) -> tuple[bytes, str]:
    if isinstance(prices, Mapping):
        try:
            return json.dumps(prices).encode(), "prices"
        except (TypeError, ValueError) as error:
            raise UsageError(f"prices: {error}") from None
    if not isinstance(prices, str | os.PathLike):
        raise UsageError(f"prices are the path of a file or a mapping of its form, not {type(prices).__name__}")
    path = str(os.fspath(prices))
    if not os.path.isfile(path):
        raise UsageError(f"{printable(path)}: {'is no file' if os.path.exists(path) else 'no such file'} of prices")
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1), path           # never more of it, however long it is
    except OSError as error:
        raise UsageError(f"{printable(path)}: cannot be read: {error.strerror}") from None


def _book(root: Node, mistakes: Mistakes) -> PriceBook:
    if not root.is_mapping:
        mistakes.add(root.place, root.path, "prices are a mapping: gpu, cluster")
        return PriceBook()
    for name, node in root.items.items():
        if name not in PARTS:
            mistakes.add(node.key or node.place, node.path, f"unknown key{instead(name, PARTS)}")
    if not any(name in PARTS for name in root.items):
        mistakes.add(root.place, root.path, "no prices: give gpu or cluster, each a mapping from name to USD an hour")
    return PriceBook(dict(_gpus(root.items.get("gpu"), mistakes)), dict(_clusters(root.items.get("cluster"), mistakes)))


def _gpus(node: Node | None, mistakes: Mistakes) -> Iterator[tuple[str, float]]:
    """Prices by the words of a GPU's name, each GPU once."""
    seen: dict[str, str] = {}
    for name, of_name in _prices(node, mistakes):
        words = gpu_words(name)
        if not words:
            mistakes.add(of_name.key or of_name.place, of_name.path, "is no GPU's name")
        elif words in seen:
            mistakes.add(of_name.key or of_name.place, of_name.path, f"is the same GPU as {shown(seen[words])}")
        seen.setdefault(words, name)
        yield words, _usd(of_name, mistakes)


def _clusters(node: Node | None, mistakes: Mistakes) -> Iterator[tuple[str, float]]:
    for name, of_name in _prices(node, mistakes):
        if not is_name(name):
            mistakes.add(of_name.key or of_name.place, of_name.path, NAME_RULE)
        yield name, _usd(of_name, mistakes)


def _prices(node: Node | None, mistakes: Mistakes) -> Iterator[tuple[str, Node]]:
    if node is None or node.value is BAD:
        return
    if not node.is_mapping or not node.items:
        mistakes.add(node.place, node.path, "must be a mapping from name to USD an hour")
        return
    yield from node.items.items()


def _usd(node: Node, mistakes: Mistakes) -> float:
    """A price; NaN for what is none, which is among the mistakes then."""
    value = node.value
    if value is BAD:
        return math.nan
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= MAX_USD:
        mistakes.add(node.place, node.path, f"must be USD an hour, above 0 and at most 1000000, not {shown(value)}")
        return math.nan
    return float(value)
