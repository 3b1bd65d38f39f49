"""Two ranks in two plain processes over gloo: what they agree on, and how often they speak.

Annotations are not postponed in this file: DDP checks that its hook's are types.
"""

import pickle
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing

from raybench.engine import build as build_module
from raybench.engine.place import Place
from raybench.engine.session import Session
from raybench.engine.strategy import Wrapped, wrap
from raybench.record.rank import RankResult
from raybench.spec.config import Extent, TrialConfig
from raybench.spec.families.collective import NUMBER_BYTES
from raybench.spec.models.collective import CollectiveShape, Op
from raybench.spec.models.elementwise import ElementwiseShape
from raybench.spec.models.mlp import MLPShape
from tests.engine.small import encdec, matmul, place, resnet
from tests.engine.two_ranks import without_fingerprints
from tests.workloads.split import split

SYNCHRONISATIONS: list[int] = []
NO_DROPOUT = encdec().model.model_copy(update={"dropout": 0.0})


def counting_wrap(module: torch.nn.Module, config: TrialConfig, place: Place, *, grouped: bool) -> Wrapped:
    """`wrap`, and a hook that DDP calls for each bucket of gradients it reduces; tiny models have one bucket."""
    wrapped = wrap(module, config, place, grouped=grouped)

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        SYNCHRONISATIONS.append(1)
        reduced = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return reduced.then(lambda done: done.value()[0] / dist.get_world_size())

    wrapped.module.register_comm_hook(None, hook)  # type: ignore[operator]
    return wrapped


def rank_main(rank: int, folder: str) -> None:
    """One rank: run the trials, leave what came of them in a file."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    build_module.wrap = counting_wrap
    session = Session(place(rank, 2))
    without_fingerprints(session)
    found: dict[str, Any] = {}
    for name, config in trials().items():
        SYNCHRONISATIONS.clear()
        found[name] = session.run(config)
        found[f"{name} synchronisations"] = len(SYNCHRONISATIONS)
    (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(found))
    dist.destroy_process_group()


def trials() -> dict[str, Any]:
    """What both ranks run: 2 + 3 steps, but where seconds are asked."""
    return {
        "no dropout": encdec(num_workers=2, micro_batch=2, model=NO_DROPOUT),
        "plain": encdec(num_workers=2, micro_batch=2),
        "accumulated": encdec(num_workers=2, micro_batch=1, grad_accum=4),
        "forward": encdec(num_workers=2, micro_batch=2, phase="forward"),
        "seconds": encdec(num_workers=2, warmup=Extent(seconds=0.05), measure=Extent(seconds=0.05)),
        "split": matmul(num_workers=2),
        "mlp": split("mlp", MLPShape(batch=8, layers=(4, 6)), num_workers=2),
        "elementwise": split("elementwise", ElementwiseShape(rows=8, columns=4), num_workers=2, precision="bf16"),
        **{f"{op} {precision}": collective(op, precision) for op in get_args(Op) for precision in NUMBER_BYTES},
        "resnet": resnet(num_workers=2, micro_batch=2),
    }


def collective(op: Op, precision: str) -> TrialConfig:
    """An exchange of 1 KiB."""
    return split("collective", CollectiveShape(op=op, size_bytes=1024), num_workers=2, precision=precision)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank saw."""
    folder = tmp_path_factory.mktemp("ranks")
    torch.multiprocessing.spawn(rank_main, (str(folder),), nprocs=2)
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in (0, 1)]  # noqa: S301  (we wrote them)


def both(ranks: list[dict[str, Any]], name: str) -> list[RankResult]:
    """The results of a trial on both ranks."""
    return [found[name] for found in ranks]


def test_each_rank_counts_its_own_samples(ranks: list[dict[str, Any]]) -> None:
    """3 steps of 2 samples a rank; a step of matmul is one sample of rank 0."""
    assert [result.measured_samples for result in both(ranks, "plain")] == [6, 6]
    assert [result.measured_tokens for result in both(ranks, "plain")] == [42, 42]
    assert [result.measured_samples for result in both(ranks, "split")] == [3, 0]


def test_ddp_and_gloo_are_what_ran(ranks: list[dict[str, Any]]) -> None:
    """As asked; and the ranks know which they are."""
    for rank, result in enumerate(both(ranks, "plain")):
        assert (result.rank, result.world_size) == (rank, 2)
        assert (result.environment.effective_strategy, result.environment.backend) == ("ddp", "gloo")


def test_two_ranks_train_as_one(ranks: list[dict[str, Any]]) -> None:
    """Without dropout, the mean of two ranks' losses over 2 samples each is one rank's over the same 4, step by step:
    the samples, the weights they began with and the exchanged gradients are all the same."""
    first, second = both(ranks, "no dropout")
    alone = Session(place()).run(encdec(model=NO_DROPOUT))
    assert first.steps.loss != second.steps.loss
    losses = [(a + b) / 2 for a, b in zip(first.steps.loss, second.steps.loss, strict=True)]  # type: ignore[operator]
    assert losses == pytest.approx(alone.steps.loss, rel=1e-4)


def test_gradients_are_exchanged_once_a_step(ranks: list[dict[str, Any]]) -> None:
    """5 steps: five exchanges, were there four micro steps in each (ED has none); forward has nothing to exchange."""
    for found in ranks:
        assert found["plain synchronisations"] == 5
        assert found["accumulated synchronisations"] == 5
        assert found["forward synchronisations"] == 0


def test_a_resnet_s_ranks_see_their_own_images(ranks: list[dict[str, Any]]) -> None:
    """3 steps of 2 images a rank. Batch norm is each rank's own, as torch's DDP has it."""
    first, second = both(ranks, "resnet")
    assert [first.measured_samples, second.measured_samples] == [6, 6]
    assert first.steps.loss != second.steps.loss
    assert [found["resnet synchronisations"] for found in ranks] == [5, 5]


def test_ranks_run_the_same_number_of_steps(ranks: list[dict[str, Any]]) -> None:
    """Warm-up and window in seconds: agreed between the ranks, or DDP would hang."""
    first, second = both(ranks, "seconds")
    assert (first.warmup_steps, first.measured_steps) == (second.warmup_steps, second.measured_steps)
    assert first.measured_steps >= 10


@pytest.mark.parametrize("name", ["mlp", "elementwise", *(
    f"{op} {precision}" for op in get_args(Op) for precision in NUMBER_BYTES
)])  # fmt: skip
def test_split_work_runs_on_two_ranks(ranks: list[dict[str, Any]], name: str) -> None:
    """10 steps, told by rank 0; a collective is proven right before its first step, and has nothing to fetch."""
    results = both(ranks, name)
    assert [result.measured_samples for result in results] == [10, 0]
    assert {result.environment.effective_strategy for result in results} == {"split"}
    assert all(result.create_s is not None for result in results)
    assert all((result.retrieve_s is not None) == (name in ("mlp", "elementwise")) for result in results)


def test_each_rank_has_a_window_of_its_own(ranks: list[dict[str, Any]]) -> None:
    """Each by its own clock: step times never exceed the window, and no rank reports another's."""
    first, second = both(ranks, "plain")
    assert first.measured_s != second.measured_s
    for result in (first, second):
        assert 0 < sum(result.steps.step_ms[2:]) / 1e3 <= result.measured_s + 1e-9
