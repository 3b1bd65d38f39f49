"""The parts of the GPU benchmark that need no GPU: its points, and what it says of where time goes."""

import pytest

from tests.bench.models import POINTS, REFERENCE, config_of, limit, shares


@pytest.mark.parametrize("name", POINTS)
def test_every_point_expands(name: str) -> None:
    """On one worker without a wrapper, over batches that lie on the device; each has a reference."""
    config = config_of(POINTS[name], [], tiny=False)
    assert (config.num_workers, config.strategy, config.source and config.source.name) == (1, "none", "device")
    assert config.source is not None
    assert config.source.num_samples == 4 * (config.micro_batch or 0)
    assert name in REFERENCE


def test_what_a_sweep_found_can_be_set() -> None:
    """The held samples follow the micro batch."""
    config = config_of(POINTS["gpt2"], ["micro_batch=128", "compile=max-autotune"], tiny=False)
    assert config.source is not None
    assert (config.micro_batch, config.compile, config.source.num_samples) == (128, "max-autotune", 512)


KERNELS = [("nvjet_tst_256x128", 6.0), ("flash_fwd_kernel", 1.0), ("triton_poi_fused_gelu", 2.0)]


@pytest.mark.parametrize(("kernels", "wall_s", "what"), [
    (KERNELS, 9.5, "matmul rate"),                           # 9 of 9.5 s busy, 7 of them products and attention
    (KERNELS, 18.0, "launch"),                               # the device is busy half of the time
    ([*KERNELS, ("batch_norm_backward", 8.0)], 17.5, "memory bandwidth"),
])  # fmt: skip
def test_what_limits_a_step(kernels: list[tuple[str, float]], wall_s: float, what: str) -> None:
    """Kernel seconds by kind over the wall time of the unprofiled steps."""
    assert limit(shares(kernels, wall_s)) == what
    assert sum(shares(kernels, wall_s).values()) == pytest.approx(sum(s for _, s in kernels) / wall_s)
