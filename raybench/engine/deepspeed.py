"""DeepSpeed's engine around a network and its optimizer. The package is an extra, imported here only."""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from typing import Any

from torch import nn
from torch.optim import Optimizer

from raybench.engine.place import Place
from raybench.spec.config import TrialConfig


def missing() -> str | None:
    """What this process lacks for the strategy, in a line; None when it is there."""
    if find_spec("deepspeed") is not None:
        return None
    return "strategy deepspeed needs the package deepspeed on every worker: pip install 'raybench[deepspeed]'"


def engine(module: nn.Module, optimizer: Optimizer, config: TrialConfig, place: Place) -> Any:
    """The engine in the process group that is there. It is called as the module is."""
    os.environ.setdefault("DS_ACCELERATOR", place.torch_device.type)
    os.environ.update(RANK=str(place.rank), WORLD_SIZE=str(place.world_size), LOCAL_RANK=str(place.local_rank))
    import deepspeed  # type: ignore[import-not-found, unused-ignore]

    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    made, *_ = deepspeed.initialize(
        model=module, optimizer=optimizer, config=settings(config), dist_init_required=False
    )
    return made


def settings(config: TrialConfig) -> dict[str, Any]:
    """DeepSpeed's own configuration: the same batch, precision, clipping and optimizer as everywhere."""
    lower = {"bf16": "bfloat16", "fp16": "float16"}.get(config.precision)
    return {
        "train_micro_batch_size_per_gpu": config.micro_batch,
        "gradient_accumulation_steps": config.grad_accum,
        "zero_optimization": {"stage": config.zero_stage},
        "zero_allow_untested_optimizer": True,      # torch's own, by which all strategies can be compared
        "gradient_clipping": config.grad_clip or 0.0,
        "steps_per_print": 2**31 - 1,
        **({"torch_autocast": {"enabled": True, "dtype": lower}} if lower else {}),
    }
