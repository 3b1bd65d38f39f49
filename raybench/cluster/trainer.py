"""A Ray Train trainer whose workers sit where a `GroupSpec` puts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from raybench.cluster.group_spec import GroupSpec

NODE_ID_LABEL: Final = "ray.io/node-id"
"""Ray gives it to every node: a worker that selects it sits exactly there."""


def trainer(
    spec: GroupSpec,
    main: Callable[..., object],
    arguments: Mapping[str, Any] | None = None,
    *,
    storage: str,
    name: str,
    process_group_timeout_s: int,
    controller_retries: int,
) -> Any:
    """A `TorchTrainer` that runs `main`, with `arguments` if any, on each worker of the group. No failure is retried.

    `storage` is a folder of the driver's node. Workers would look for it to store a checkpoint, and there are none.
    """
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    from raybench.cluster.interface import ChoosingTorchConfig

    return TorchTrainer(
        main,
        train_loop_config=None if arguments is None else dict(arguments),
        torch_config=ChoosingTorchConfig(backend=spec.backend, timeout_s=process_group_timeout_s),
        scaling_config=ScalingConfig(
            num_workers=spec.workers,
            use_gpu=bool(spec.seat.gpus),
            resources_per_worker={
                "CPU": spec.seat.cpus, **({"GPU": 1.0} if spec.seat.gpus else {}), **dict(spec.resources),
            },
            label_selector=[{NODE_ID_LABEL: node_id} for node_id in spec.node_ids],
        ),
        run_config=RunConfig(
            storage_path=storage,
            name=name,
            failure_config=FailureConfig(max_failures=0, controller_failure_limit=controller_retries),
            worker_runtime_env={"env_vars": dict(spec.env)},
        ),
    )
