"""Preparing data once per node, outside any process group: no collective waits while gigabytes are written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from raybench.errors import DataError
from raybench.sources import manifest
from raybench.sources.checksums import Told, nobody
from raybench.sources.cifar100 import prepare_cifar100
from raybench.sources.image_files import prepare_images, verify_images
from raybench.sources.layout import folder, layout
from raybench.sources.lock import locked
from raybench.sources.page_cache import settle
from raybench.sources.parquet import prepare_parquet, verify_parquet
from raybench.sources.plugged import plugged
from raybench.sources.root import data_root
from raybench.sources.token_file import prepare_tokens, verify_tokens
from raybench.sources.write_shards import write_shards
from raybench.spec.config import TrialConfig
from raybench.spec.source_kind import imported


def prepare(config: TrialConfig, told: Told = nobody) -> None:
    """Make, or check, what a config's source needs on this node, and settle what the page cache holds of it.

    Sources that need nothing are done at once.

    `told` hears how far it is. A second run that wants the same data waits until the first has it, then checks it.

    Raises:
        DataError: prepared data is not what its manifest says, the disk cannot hold or take it, or another run hangs.
    """
    makers: Mapping[str, Callable[[TrialConfig], None]] = {
        "shards": functools.partial(_prepare_shards, told=told),
        "tokens": functools.partial(prepare_tokens, told=told),
        "cifar100": prepare_cifar100,
        "ray_data": functools.partial(prepare_parquet, told=told),
        "images": functools.partial(prepare_images, told=told),
    }
    if config.source is None:
        return
    kind = plugged(config)
    made_by_plug_in = imported(kind.prepare) if kind is not None and kind.prepare is not None else None
    maker = makers.get(config.source.name, made_by_plug_in)
    if maker is None:
        return
    try:
        maker(config)
        settle(config)
    except OSError as error:
        where = data_root(config.source.data_dir)
        raise DataError(f"cannot prepare data in {where}: {error}; choose another source.data_dir") from error


def verify(config: TrialConfig, told: Told = nobody) -> None:
    """Hash every byte of prepared data, where `prepare` looks at the first and last MB of each file only.

    Raises:
        DataError: a file is not what was written; names it and the cure.
    """
    assert config.source is not None
    if config.source.name == "shards":
        manifest.verify(folder(config), layout(config), told)
    elif config.source.name == "tokens":
        verify_tokens(config)
    elif config.source.name == "ray_data":
        verify_parquet(config, told)
    elif config.source.name == "images":
        verify_images(config, told)


def _prepare_shards(config: TrialConfig, told: Told = nobody) -> None:
    directory, wanted = folder(config), layout(config)
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        if not manifest.exists(directory):
            write_shards(directory, wanted, told)
        manifest.check(directory, wanted)
