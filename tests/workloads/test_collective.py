"""Collectives: counts by hand, what is refused, and that a wrong result is found. Two real ranks: tests/engine."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist

from raybench.errors import UnsupportedError
from raybench.measure.counts import Counts
from raybench.spec.config import TrialConfig
from raybench.spec.families.collective import COLLECTIVE
from raybench.spec.models.collective import CollectiveShape, Op
from raybench.workloads.collective.model import build
from raybench.workloads.registry import workload
from tests.workloads.split import split

CPU = torch.device("cpu")


def config(op: Op, size_bytes: int = 1024, num_workers: int = 4, **changes: Any) -> TrialConfig:
    """One exchange over four ranks."""
    return split("collective", CollectiveShape(op=op, size_bytes=size_bytes), num_workers=num_workers, **changes)


@pytest.mark.parametrize(("op", "factor", "memory_bytes"), [
    ("all_reduce", 1.5, 1024),            # 2 x 3 / 4; in place
    ("all_gather", 0.75, 1024 + 256),     # 3 / 4; a quarter is sent
    ("all_to_all", 0.75, 1024 + 1024),
])  # fmt: skip
def test_whole_answer(op: Op, factor: float, memory_bytes: int) -> None:
    """1 KiB over four ranks, by the definitions of nccl-tests; nothing is computed that is counted."""
    assert workload("collective").counts(config(op)) == Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=None,
        model_flops_causal_per_step=None,
        memory_bytes=memory_bytes,
        message_bytes=1024,
        bus_factor=factor,
    )


def test_one_rank_has_no_bus() -> None:
    """A factor of 0 would make it a measured bandwidth of 0."""
    assert workload("collective").counts(config("all_reduce", num_workers=1)).bus_factor is None


@pytest.mark.parametrize(("asked", "sentences"), [
    (config("all_reduce", 1022), ["model: 1022 bytes are no whole numbers of fp32; 1020 and 1024 are"]),
    (config("all_reduce", 1022, precision="bf16"), []),
    (config("all_reduce", 1024, 3), []),
    (config("all_gather", 1024, 3),
     ["model: 1024 bytes are no whole numbers of fp32 over 3 workers; 1020 and 1032 are"]),
    (config("all_to_all", 4, 3), ["model: 4 bytes are no whole numbers of fp32 over 3 workers; 12 are"]),
    (config("all_reduce", precision="tf32"),
     ["precision: a collective exchanges numbers of fp32, bf16, fp16, not tf32"]),
    (config("all_reduce", compile="default"), ["compile: a collective has nothing to compile"]),
])  # fmt: skip
def test_what_is_refused(asked: TrialConfig, sentences: list[str]) -> None:
    """Sizes that are no whole number of equal parts, with the nearest that are; what makes no sense."""
    assert list(COLLECTIVE.rule(asked)) == sentences


def test_presets_are_named_as_people_say_sizes() -> None:
    """Powers of four from 1 KiB to 1 GiB of each."""
    assert len(COLLECTIVE.presets) == 3 * 11
    assert COLLECTIVE.presets["all_to_all-16m"] == CollectiveShape(op="all_to_all", size_bytes=16_777_216)
    assert COLLECTIVE.presets["all_gather-1g"].size_bytes == 2**30


def test_a_custom_size_is_told_with_its_op() -> None:
    """The size alone would be the same for all three."""
    assert config("all_gather", 12).label() == "collective custom op=all_gather size_bytes=12 fp32 ×4"


def test_without_a_process_group_it_is_unsupported() -> None:
    """A plain process of its own has nobody to exchange with."""
    with pytest.raises(UnsupportedError, match="needs a process group"):
        build(config("all_reduce", num_workers=1), 0, 1, CPU, torch.float32)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A process group that is none: what a collective does is up to the test."""
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_backend", lambda: "gloo")
    return monkeypatch


def test_a_wrong_result_is_an_error(pretended: pytest.MonkeyPatch) -> None:
    """Rank 0 of two sends 1 and must receive 1 + 2; here nobody adds, and in the second case one number is lost."""
    pretended.setattr(dist, "all_reduce", lambda buffer: None)
    with pytest.raises(ArithmeticError, match="all_reduce of fp32 gave wrong numbers on rank 0"):
        build(config("all_reduce", num_workers=2), 0, 2, CPU, torch.float32)

    def almost(buffer: torch.Tensor) -> None:
        buffer.fill_(3.0)[-1] = 1.0

    pretended.setattr(dist, "all_reduce", almost)
    with pytest.raises(ArithmeticError):
        build(config("all_reduce", num_workers=2), 0, 2, CPU, torch.float32)


def test_what_a_backend_lacks_is_unsupported(pretended: pytest.MonkeyPatch) -> None:
    """In torch's words; any other error stays what it is."""
    def lacking(*buffers: torch.Tensor) -> None:
        raise RuntimeError("Invalid scalar type")

    pretended.setattr(dist, "all_to_all_single", lacking)
    with pytest.raises(UnsupportedError, match="gloo has no all_to_all of bf16: Invalid scalar type"):
        build(config("all_to_all", precision="bf16"), 0, 4, CPU, torch.bfloat16)

    def broken(buffer: torch.Tensor) -> None:
        raise RuntimeError("Connection closed by peer")

    pretended.setattr(dist, "all_reduce", broken)
    with pytest.raises(RuntimeError, match="closed by peer"):
        build(config("all_reduce"), 0, 4, CPU, torch.float32)
