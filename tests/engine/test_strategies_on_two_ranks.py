"""DDP, FSDP and ZeRO-1 on two ranks: the same maths, one synchronisation a step, and nothing left behind."""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from raybench.engine import build as build_module
from raybench.engine.place import Place
from raybench.engine.session import Session
from raybench.engine.strategy import Wrapped, wrap
from raybench.record.rank import RankResult
from raybench.spec.config import Extent, Optimizer, Source, TrialConfig
from tests.engine.small import encdec, place
from tests.engine.two_ranks import Ranks, on_ranks, without_fingerprints

STRATEGIES = ("ddp", "fsdp", "zero1")
NO_DROPOUT = encdec().model.model_copy(update={"dropout": 0.0})
TOLERANCE = {"fp32": 1e-4, "bf16": 2e-2, "fp16": 2e-3, "bf16_params": 2e-2}
REDUCTIONS: list[int] = []


def trial(strategy: str, workers: int = 2, **changes: Any) -> TrialConfig:
    """4 samples a step, whatever the number of workers; a fingerprint's three steps are of the same 12."""
    values: dict[str, Any] = {
        "source": Source(num_samples=12), "model": NO_DROPOUT, "num_workers": workers, "micro_batch": 4 // workers,
        "strategy": strategy,
    }  # fmt: skip
    return encdec(**{**values, **changes})


def trials(workers: int) -> dict[str, TrialConfig]:
    """What is run on two ranks and, in the same global batch, on one."""
    found = {f"{strategy} {precision}": trial(strategy, workers, precision=precision)
             for strategy in STRATEGIES for precision in TOLERANCE}
    found |= {f"{strategy} {name}": trial(strategy, workers, grad_clip=0.1, optimizer=Optimizer(implementation=name))
              for strategy in STRATEGIES for name in ("fused", "foreach", "for_loop")}
    found |= {f"{strategy} forward": trial(strategy, workers, phase="forward") for strategy in ("ddp", "fsdp")}
    return found | {"zero1 sgd": trial("zero1", workers, optimizer=Optimizer(name="sgd", lr=0.1, momentum=0.9))}


def rank_main(session: Session, rank: int) -> dict[str, Any]:
    """All trials; then each strategy again, counting collectives with accumulation, and tensors that stay."""
    found: dict[str, Any] = {name: session.run(config) for name, config in trials(2).items()}
    found["straggling"] = _straggling(session, rank)
    _count_reductions()
    without_fingerprints(session)
    for strategy in STRATEGIES:
        held = _tensors()
        for name, accumulated in (("once", {}), ("accumulated", {"micro_batch": 1, "grad_accum": 4})):
            REDUCTIONS.clear()
            session.run(trial(strategy, **accumulated))
            found[f"{strategy} {name} reductions"] = len(REDUCTIONS)
        found[f"{strategy} growth"] = _tensors() - held
    return found


def _straggling(session: Session, rank: int) -> RankResult:
    """Rank 1 sleeps 40 ms in each forward pass. DDP sorts its buckets in the first three steps."""
    module = build_module._module

    def sleepy(config: TrialConfig, device: torch.device) -> torch.nn.Module:
        made = module(config, device)
        made.register_forward_pre_hook(lambda *_: time.sleep(0.04 * rank))
        return made

    build_module._module = sleepy
    result = session.run(trial("ddp", warmup=Extent(steps=3), measure=Extent(steps=5)))
    build_module._module = module
    return result


def _count_reductions() -> None:
    """Of FSDP where it asks the process group, of DDP by the hook that it calls for each bucket."""
    for name in ("reduce_scatter_tensor", "reduce_scatter_single"):      # torch before and from 2.13 on
        if hasattr(dist, name):
            setattr(dist, name, _counting(getattr(dist, name)))
    build_module.wrap = _wrap_counting_buckets


def _counting(reduce: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(reduce)        # DDP reads the hook's annotations
    def counted(*args: Any, **kwargs: Any) -> Any:
        REDUCTIONS.append(1)
        return reduce(*args, **kwargs)

    return counted


def _wrap_counting_buckets(module: torch.nn.Module, config: TrialConfig, place: Place, *, grouped: bool) -> Wrapped:
    wrapped = wrap(module, config, place, grouped=grouped)
    if isinstance(wrapped.module, DistributedDataParallel):
        wrapped.module.register_comm_hook(None, _counting(allreduce_hook))
    return wrapped


def _tensors() -> int:
    """Living tensors that are not frozen: what stays of a trial."""
    gc.unfreeze()
    gc.collect()
    return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """What each rank saw."""
    return on_ranks(tmp_path_factory.mktemp("ranks"), rank_main)


def mean_losses(ranks: Ranks, name: str) -> list[float]:
    """The step's loss: the mean of the ranks'."""
    return [sum(losses) / 2 for losses in zip(*(found[name].steps.loss for found in ranks), strict=True)]


@pytest.mark.parametrize("name", trials(2))
def test_two_ranks_train_as_one(ranks: Ranks, name: str) -> None:
    """Under every strategy, in every precision, clipped or not: losses and fingerprint of one process alone."""
    config = trials(1)[name]
    alone = Session(place()).run(config)
    assert mean_losses(ranks, name) == pytest.approx(alone.steps.loss, rel=TOLERANCE[config.precision])
    fingerprint = sum(found[name].fingerprint_loss for found in ranks) / 2
    assert fingerprint == pytest.approx(alone.fingerprint_loss, rel=TOLERANCE[config.precision])
    assert alone.fingerprint_loss == pytest.approx(alone.steps.loss[2], rel=1e-6), "no dropout: three steps of the same"


def test_strategies_are_the_same_maths(ranks: Ranks) -> None:
    """Step by step, the losses are DDP's."""
    for strategy in ("fsdp", "zero1"):
        assert mean_losses(ranks, f"{strategy} fp32") == pytest.approx(mean_losses(ranks, "ddp fp32"), rel=1e-5)


def test_what_ran(ranks: Ranks) -> None:
    """As asked, and the optimizer by name and implementation."""
    for found in ranks:
        for strategy in STRATEGIES:
            ran = found[f"{strategy} fused"].environment
            assert (ran.effective_strategy, ran.effective_optimizer) == (strategy, "adamw fused")
            assert found[f"{strategy} foreach"].environment.effective_optimizer == "adamw foreach"
            assert found[f"{strategy} fp32"].environment.effective_optimizer == "adamw for_loop"
        assert found["zero1 sgd"].environment.effective_optimizer == "sgd for_loop"
        assert found["fsdp forward"].environment.effective_optimizer is None


def test_optimizer_steps_are_counted(ranks: Ranks) -> None:
    """As many as measured steps; none without an optimizer."""
    for found in ranks:
        for name, result in found.items():
            if isinstance(result, RankResult):
                counted = (result.optimizer_steps, result.skipped_optimizer_steps)
                assert counted == ((None, None) if "forward" in name else (result.measured_steps, 0)), name


@pytest.mark.parametrize(("strategy", "a_step"), [("ddp", 1), ("zero1", 1), ("fsdp", 3)])
def test_gradients_are_exchanged_once_a_step(ranks: Ranks, strategy: str, a_step: int) -> None:
    """5 steps, with 1 and with 4 micro steps in each: DDP has one bucket, FSDP two layers and the rest."""
    for found in ranks:
        assert found[f"{strategy} once reductions"] == 5 * a_step
        assert found[f"{strategy} accumulated reductions"] == 5 * a_step


def test_the_time_before_the_first_collective_is_a_rank_s_own(ranks: Ranks) -> None:
    """Both have the same step times, for one waits for the other; it is told by what it needed itself."""
    quick, slow = (found["straggling"].steps for found in ranks)
    assert quick.compute_ms[:3] == slow.compute_ms[:3] == (None,) * 3
    assert min(slow.compute_ms[3:]) >= 40.0
    assert min(quick.compute_ms[3:]) < 40.0
    assert sum(quick.step_ms[3:]) >= 4 * 40.0
    for steps in (quick, slow):
        parts = zip(steps.forward_ms, steps.backward_ms, steps.optimizer_ms, steps.step_ms, strict=True)
        assert all(forward + backward + optimizer <= step for forward, backward, optimizer, step in parts)
        assert min(slow.forward_ms) >= 40.0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_of_a_trial_stays(ranks: Ranks, strategy: str) -> None:
    """No tensor more than before, parameters in shards and their meshes included."""
    assert [found[f"{strategy} growth"] for found in ranks] == [0, 0]
