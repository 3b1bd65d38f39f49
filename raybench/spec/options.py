"""Which options each source and optimizer knows, and the defaults that depend on the name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_LARGE = MappingProxyType({"num_samples": 3_750_000})
"""A data set too large for a cache to hold, as in training: about 115 shards at sequence length 256 in 16 bits."""

FROM_FILES = ("shards", "tokens", "cifar100", "images")
"""Sources that read files of this node while a trial runs: those that the page cache matters to."""

KNOWN_OPTIONS: Mapping[str, Mapping[str, frozenset[str]]] = MappingProxyType({
    "source": MappingProxyType({
        "device": frozenset({"num_samples"}),
        "memory": frozenset({"num_samples"}),
        "generate": frozenset({"num_samples", "loader_workers"}),
        "shards": frozenset({"num_samples", "num_shards", "data_dir", "loader_workers", "dtype", "prefetch"}),
        "tokens": frozenset({"num_samples", "path", "data_dir", "dtype", "prefetch"}),
        "cifar100": frozenset({"data_dir", "prefetch"}),
        "images": frozenset({"num_samples", "num_shards", "data_dir", "loader_workers", "image_format"}),
        "ray_data": frozenset({
            "num_samples", "num_shards", "path", "column", "data_dir", "dtype", "prefetch", "block_mb",
            "preserve_order",
        }),
    }),
    "optimizer": MappingProxyType({
        "adamw": frozenset({"lr", "weight_decay", "implementation"}),
        "adam": frozenset({"lr", "weight_decay", "implementation"}),
        "sgd": frozenset({"lr", "weight_decay", "momentum", "implementation"}),
    }),
})
"""By setting and name. What a name does not know is dropped where the name changes, and refused where it cannot."""

PLUG_IN_OPTIONS = frozenset({"num_samples", "data_dir", "options"})
"""What a source of a plug-in knows; what stands under `options` is its own."""

DEFAULT_OPTIONS: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType({
    ("source", "generate"): _LARGE,
    ("source", "shards"): _LARGE,
    ("source", "tokens"): _LARGE,
    ("source", "ray_data"): _LARGE,
    ("source", "cifar100"): MappingProxyType({"num_samples": 50_000}),
    ("source", "images"): MappingProxyType({"num_samples": 50_000, "loader_workers": 4}),
    ("optimizer", "adam"): MappingProxyType({"weight_decay": 0.0}),  # as torch has it: only adamw decays by default
    ("optimizer", "sgd"): MappingProxyType({"weight_decay": 0.0}),
})
"""Where they differ from the model's own defaults. Never changed under `rb1`."""
