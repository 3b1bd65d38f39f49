"""Which settings go together: the one table that a sweep is held to when it is expanded, and that the README prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, get_args

from raybench.spec.config import CompileMode, Phase, Precision, Strategy
from raybench.spec.document import BAD
from raybench.spec.mistakes import either

DEFAULT_ZERO_STAGE: Final = 1

_PHASES: tuple[Phase, ...] = get_args(Phase)
_PRECISIONS: tuple[Precision, ...] = get_args(Precision)
_COMPILE: tuple[CompileMode, ...] = get_args(CompileMode)
_WITHOUT_PARAMETERS: tuple[Precision, ...] = ("fp32", "tf32", "bf16", "fp16")


@dataclass(frozen=True, kw_only=True)
class Applies:
    """What goes with a strategy. `options` are the settings that only it (and those that name them too) have."""

    meaning: str
    one_worker_only: bool = False
    phase: tuple[Phase, ...] = _PHASES
    precision: tuple[Precision, ...] = _PRECISIONS
    compile: tuple[CompileMode, ...] = _COMPILE
    options: frozenset[str] = frozenset()
    why: str = ""


COMBINATIONS: Mapping[Strategy, Applies] = MappingProxyType({
    "none": Applies(meaning="one worker by itself", one_worker_only=True),
    "ddp": Applies(
        meaning="each rank holds all; gradients are averaged while the backward pass runs",
        options=frozenset({"bucket_mb"}),
    ),
    "fsdp": Applies(
        meaning="everything in shards, gathered block by block; resnet with `channels_last: false`",
        compile=("off", "default"),
        why="a CUDA graph cannot hold parameters that are gathered and let go",
    ),
    "zero1": Applies(
        meaning="ddp, with the optimizer's state in shards",
        phase=("train",),
        options=frozenset({"bucket_mb"}),
        why="without an optimizer it is ddp",
    ),
    "deepspeed": Applies(
        meaning="DeepSpeed's ZeRO at `zero_stage` 0 to 3; always in new processes",
        phase=("train",),
        precision=_WITHOUT_PARAMETERS,
        compile=("off",),
        options=frozenset({"zero_stage"}),
        why="DeepSpeed's engine has its own training step",
    ),
    "split": Applies(
        meaning="rows over the workers, no gradients",
        phase=(),
        precision=_WITHOUT_PARAMETERS,
        why="there are no parameters",
    ),
})


def own_settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a strategy settles by itself: DeepSpeed has a stage, and leaves a process in no state to serve others."""
    if fields["strategy"] != "deepspeed":
        return {}
    stage = fields["zero_stage"]
    return {"isolation": "fresh", "zero_stage": DEFAULT_ZERO_STAGE if stage is None else stage}


def refusals(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """A setting and a sentence for each thing that does not go together, although each value is right by itself.

    `fields` are those of a config, `BAD` where a value is not known.
    """
    strategy = fields["strategy"]
    if strategy not in COMBINATIONS:
        return
    applies, told = COMBINATIONS[strategy], f"strategy {strategy}"
    workers, phase = fields["num_workers"], fields["phase"]
    if applies.one_worker_only and workers is not BAD and workers > 1:
        yield "num_workers", f"{told} runs on one worker, not {workers}"
    for name in ("phase", "precision", "compile"):
        value, possible = fields[name], getattr(applies, name)
        if possible and value not in (None, BAD, *possible):
            why = f": {applies.why}" if applies.why else ""
            yield name, f"{told} goes with {name} {either(possible)}, not {value}{why}"
    for name in ("bucket_mb", "zero_stage"):
        if fields[name] not in (None, BAD) and name not in applies.options:
            yield name, f"{told} has no {name}"
    if fields["activation_checkpointing"] == "full" and phase == "forward":
        yield "activation_checkpointing", "phase forward has no backward pass to compute anything again for"
    if strategy == "fsdp" and fields["channels_last"] is True:
        yield "channels_last", f"{told} shards contiguous parameters only; give channels_last: false"
    if fields["grad_clip"] not in (None, BAD) and phase not in ("train", "load", BAD):
        yield "grad_clip", f"only phase train clips gradients, not {phase}"
