"""What split work computes, and the FLOPs that torch counts of it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from raybench.spec.config import TrialConfig
from raybench.spec.models.elementwise import ElementwiseShape
from raybench.spec.models.matmul import MatmulShape
from raybench.spec.models.mlp import MLPShape
from raybench.workloads.elementwise.model import SCALE
from raybench.workloads.registry import workload
from tests.workloads.split import split

CPU = torch.device("cpu")
MLP = split("mlp", MLPShape(batch=8, layers=(64, 96, 80)), num_workers=2)
MATMUL = split("matmul", MatmulShape(m=8, k=64, n=48), num_workers=2)
TRIAD = split("elementwise", ElementwiseShape(rows=8, columns=4), num_workers=2)


def built(config: TrialConfig, rank: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The result of one step on one of two ranks."""
    result = workload(config.workload).builder()(config, rank, 2, CPU, dtype)()
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize("config", [MLP, MATMUL], ids=["mlp", "matmul"])
def test_flops_are_what_torch_counts(config: TrialConfig) -> None:
    """Over both ranks, within 1 %: torch leaves out the ReLU, 1 FLOP to 2 x 64 and more."""
    with FlopCounterMode(display=False) as counter:
        for rank in (0, 1):
            built(config, rank)
    assert workload(config.workload).counts(config).model_flops_per_step == pytest.approx(
        counter.get_total_flops(), rel=0.01
    )


@pytest.mark.parametrize(("config", "shape"), [(MLP, (4, 80)), (TRIAD, (4, 4))], ids=["mlp", "elementwise"])
def test_each_rank_has_its_rows(config: TrialConfig, shape: tuple[int, int]) -> None:
    """8 rows over 2 ranks are 4 each, from different inputs."""
    first, second = built(config, 0), built(config, 1)
    assert first.shape == second.shape == shape
    assert not torch.equal(first, second)


@pytest.mark.parametrize("config", [MLP, TRIAD], ids=["mlp", "elementwise"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_numbers_are_of_the_dtype_and_ordinary(config: TrialConfig, dtype: torch.dtype) -> None:
    """Neither NaN nor all zero: what a chip computes on decides how fast it is."""
    result = built(config, 0, dtype)
    assert result.dtype == dtype
    assert torch.isfinite(result).all()
    assert 0.3 < (result != 0).float().mean() <= 1


def test_an_mlp_is_linear_layers_each_followed_by_relu() -> None:
    """The same numbers by torch's operators: weights (out, in) and biases drawn in turn, then this rank's rows."""
    random = torch.Generator().manual_seed(0)
    layers = []
    for width_in, width_out in ((64, 96), (96, 80)):
        weight = torch.randn(width_out, width_in, generator=random) * (2 / width_in) ** 0.5
        layers.append((weight, torch.randn(width_out, generator=random) * 0.1))
    out = torch.randn(4, 64, generator=torch.Generator().manual_seed(2))
    for weight, bias in layers:
        out = F.relu(out @ weight.T + bias)
    torch.testing.assert_close(built(MLP, rank=1), out)


def test_the_triad() -> None:
    """a = b + 3 c of the second rank, into the same memory at each step."""
    random = torch.Generator().manual_seed(2)
    b, c = torch.randn(4, 4, generator=random), torch.randn(4, 4, generator=random)
    torch.testing.assert_close(built(TRIAD, rank=1), b + 3 * c)
    assert SCALE == 3
    step = workload("elementwise").builder()(TRIAD, 0, 2, CPU, torch.float32)
    assert step().data_ptr() == step().data_ptr()
