"""The Ray Data set that a `ray_data` source reads: built here on the driver, split over the workers of a group.

A pass begins when all ranks ask for it, which takes Ray Data a second. So the data set is split twice, and the workers
begin the next pass on one split while the other is read (`sources.stream`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from raybench.sources.parquet import column, parquet_folder
from raybench.spec.config import TrialConfig

SPLITS: Final = 2
TASK_CPUS: Final = 0.04
"""What a reading task holds. How many run is told apart (`data_cpus`), and those of a pass that waits for its turn hold
theirs while they wait: together they must leave a whole CPU to the tasks with which Ray Data ends a pass, or neither
pass would ever end.
"""
OBJECT_STORE_SHARE: Final = 0.5
"""Of Ray's shared memory: what Ray Data fills by its own choice, and what both passes may fill together."""
_MIB: Final = 2**20


@contextlib.contextmanager
def streamed(config: TrialConfig, node_ids: Sequence[str]) -> Iterator[Any]:
    """A reference to each rank's streams, for the length of a trial; None where the config's source is another.

    `node_ids`: the node of each rank. What Ray Data holds of them is given up at the end.
    """
    import ray

    if config.source is None or config.source.name != "ray_data":
        yield None
        return
    splits = _splits(config, node_ids)
    try:
        yield ray.put(list(zip(*splits, strict=True)))
    finally:
        for split in splits:
            _end(split)


def _splits(config: TrialConfig, node_ids: Sequence[str]) -> list[list[Any]]:
    """Of each of the data set's two splits, an iterator for each rank."""
    assert config.source is not None
    data = _data_set(config, node_ids)
    # Where order is kept, Ray Data ignores what lies near.
    near = None if config.source.preserve_order else list(node_ids)
    return [data.streaming_split(len(node_ids), equal=True, locality_hints=near) for _ in range(SPLITS)]


def _data_set(config: TrialConfig, node_ids: Sequence[str]) -> Any:
    """The data set, to be read by tasks on the nodes on which its files were prepared, and on no others."""
    import ray.data

    source = config.source
    assert source is not None
    nodes = sorted(set(node_ids))
    there = {"ray.io/node-id": f"in({','.join(nodes)})"}
    context = ray.data.DataContext.get_current()
    share = context.override_object_store_memory_limit_fraction or OBJECT_STORE_SHARE
    settings = {"enable_progress_bars": False, "override_object_store_memory_limit_fraction": share / SPLITS}
    if source.block_mb is not None:
        settings["target_max_block_size"] = int(source.block_mb * _MIB)
    with _set(context, settings):
        data = ray.data.read_parquet(
            str(parquet_folder(config)),      # not its files: Ray 2.60 may trip over a list of them without aiohttp
            columns=[column(config)],
            partitioning=None,
            concurrency=config.data_cpus_held * len(nodes),
            num_cpus=TASK_CPUS,
        )
        if source.path is not None:
            data = data.limit(source.num_samples)      # which may be fewer than there are in files of one's own
    data.context.execution_options.preserve_order = source.preserve_order
    data.context.execution_options.label_selector = there      # of the tasks that list files and cut blocks
    return data


@contextlib.contextmanager
def _set(context: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """A data set keeps the settings that it was made under; they are the whole process's, so they are put back."""
    before = {name: getattr(context, name) for name in values}
    try:
        for name, value in values.items():
            setattr(context, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(context, name, value)


def _end(split: Sequence[Any]) -> None:
    """End the actor that gives a split out, and with it all it has read ahead: workers keep their handles of it until
    their next trial.
    """
    import ray

    coordinator = getattr(split[0], "_coord_actor", None)
    if coordinator is not None:
        ray.kill(coordinator)
