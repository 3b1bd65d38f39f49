"""Where each sample of a prepared data set lies: folder, shards and bytes, worked out from the config alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from raybench.sources.records import record_shape, smallest_dtype
from raybench.sources.remote import is_uri
from raybench.sources.root import data_root
from raybench.sources.tokens import GENERATOR_VERSION
from raybench.spec.built_in import family
from raybench.spec.config import TrialConfig, canonical_json
from raybench.spec.samples import Sample

FORMAT_VERSION: Final = 1
TARGET_SHARD_BYTES: Final = 128 * 2**20
DTYPES: Final[Mapping[str, str]] = MappingProxyType({"uint16": "<u2", "int32": "<i4", "int64": "<i8"})


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A data set on disk: `shard_0000.bin`, ... without headers, the values of a sample in order.

    `num_shards` is what was asked for; there are fewer where some would be empty.
    """

    num_samples: int
    sample: Sample
    num_shards: int
    seed: int
    dtype: str
    format_version: int = FORMAT_VERSION
    generator_version: int = GENERATOR_VERSION

    @property
    def sample_bytes(self) -> int:
        """Bytes of one sample."""
        return _bytes_of(self.sample, self.dtype)

    @property
    def samples_per_shard(self) -> int:
        """Samples in every shard but the last, which may hold fewer."""
        return -(-self.num_samples // self.num_shards)

    @property
    def shard_sizes(self) -> tuple[int, ...]:
        """Bytes of each shard; none is empty (10 samples over 6 shards are five shards of two)."""
        per_shard = self.samples_per_shard
        starts = range(0, self.num_samples, per_shard)
        return tuple(min(per_shard, self.num_samples - start) * self.sample_bytes for start in starts)

    @property
    def total_bytes(self) -> int:
        """Bytes of all shards."""
        return self.num_samples * self.sample_bytes

    def facts(self) -> dict[str, Any]:
        """All parameters as JSON holds them."""
        facts: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return facts

    def folder_name(self) -> str:
        """`shards-` and a hash of all parameters: another data set is another folder."""
        return f"shards-{hashlib.sha256(canonical_json(self.facts()).encode()).hexdigest()[:16]}"


def shard_name(shard: int) -> str:
    """File name of a shard, four digits zero-padded."""
    return f"shard_{shard:04d}.bin"


def automatic_shards(num_samples: int, sample: Sample, dtype: str) -> int:
    """How many shards of at most 128 MiB hold that many samples."""
    per_shard = max(1, TARGET_SHARD_BYTES // _bytes_of(sample, dtype))
    return -(-num_samples // per_shard)


def _bytes_of(sample: Sample, dtype: str) -> int:
    return prod(record_shape(sample)) * np.dtype(dtype).itemsize


def layout(config: TrialConfig) -> Layout:
    """The layout of the data that a config's `shards` source reads."""
    assert config.source is not None
    num_samples, sample = config.source.num_samples, sample_of(config)
    dtype = DTYPES[config.source.dtype] if config.source.dtype else smallest_dtype(sample)
    return Layout(
        num_samples=num_samples,
        sample=sample,
        num_shards=config.source.num_shards or automatic_shards(num_samples, sample, dtype),
        seed=config.seed,
        dtype=dtype,
    )


def sample_of(config: TrialConfig) -> Sample:
    """What a sample of the config's workload is."""
    return family(config.workload).sample(config)


def folder(config: TrialConfig) -> Path:
    """Where that data lies on this node: under the config's `data_dir`, `RAYBENCH_DATA_DIR` or the user's cache."""
    assert config.source is not None
    return data_root(config.source.data_dir) / layout(config).folder_name()


def located(config: TrialConfig) -> TrialConfig:
    """The config with absolute paths: workers of a joined Ray have another environment and working folder."""
    if config.source is None:
        return config
    path = config.source.path
    if path and not is_uri(path):
        path = str(Path(path).expanduser().absolute())
    data_dir = str(data_root(config.source.data_dir).absolute())
    source = config.source.model_copy(update={"data_dir": data_dir, "path": path})
    return config.model_copy(update={"source": source})
