"""Where the prepared data of a config lies on this node, and how many bytes of it a micro-batch takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raybench.sources.cifar100 import train_path
from raybench.sources.image_files import image_folder, image_names
from raybench.sources.layout import DTYPES, folder, layout, shard_name
from raybench.sources.parquet import parquet_folder
from raybench.sources.token_file import read_sidecar, token_path, token_sample
from raybench.spec.config import TrialConfig
from raybench.spec.options import FROM_FILES


def place(config: TrialConfig) -> Path | None:
    """The folder or file that a config's source reads; None for a source that reads none."""
    places = {"shards": folder, "tokens": token_path, "cifar100": train_path, "ray_data": parquet_folder,
              "images": image_folder}  # fmt: skip
    found = places.get(config.source.name) if config.source is not None else None
    return None if found is None else found(config)


def data_files(config: TrialConfig) -> tuple[Path, ...]:
    """The files that hold its samples, in their order; none for a source that reads none."""
    where = place(config)
    if where is None or config.source is None or config.source.name not in FROM_FILES:
        return ()
    if config.source.name == "shards":
        return tuple(where / shard_name(shard) for shard in range(len(layout(config).shard_sizes)))
    if config.source.name == "images":
        return tuple(where / name for name in image_names(layout(config)))
    return (where,)


def micro_batch_bytes(config: TrialConfig) -> float | None:
    """Bytes that a micro-batch has in those files; None for a source that reads none."""
    if config.source is None or config.micro_batch is None:
        return None
    files = data_files(config)
    if not files:
        return None
    if config.source.name == "tokens":      # a file of one's own may hold more samples than are asked for
        itemsize = np.dtype(DTYPES[read_sidecar(files[0]).dtype]).itemsize
        return float(config.micro_batch * token_sample(config).stride * itemsize)
    return config.micro_batch * sum(file.stat().st_size for file in files) / config.source.num_samples
