"""Peaks: right, dense, and never a neighbour's. Each test is a mistake that was published somewhere."""

from __future__ import annotations

import pytest

from raybench.measure.peaks import _CHIPS, chip, peak_flops


@pytest.mark.parametrize(
    ("gpu_model", "precision", "tflops"),
    [
        ("NVIDIA H200", "bf16", 989.5),
        ("NVIDIA H100 80GB HBM3", "bf16", 989.5),
        ("NVIDIA H100 80GB HBM3", "tf32", 494.5),
        ("NVIDIA H100 80GB HBM3", "fp32", 67.0),
        ("NVIDIA H100 PCIe", "bf16", 756.5),
        ("NVIDIA H100 NVL", "fp16", 835.5),
        ("NVIDIA A100-SXM4-80GB", "bf16", 312.0),
        ("A100-SXM4-40GB", "tf32", 156.0),
        ("NVIDIA A100 80GB PCIe", "fp32", 19.5),
        ("NVIDIA B200", "bf16", 2250.0),
        ("NVIDIA L4", "bf16", 121.0),
        ("Tesla V100-SXM2-32GB", "fp16", 125.0),
        ("Tesla T4", "fp16", 65.0),
    ],
)
def test_peaks_of_data_sheets(gpu_model: str, precision: str, tflops: float) -> None:
    """The driver's names find the dense figures."""
    assert peak_flops(gpu_model, precision) == tflops * 1e12


def test_l40_and_l40s_are_told_apart() -> None:
    """142 SMs, 2 FLOP a multiply-add: L40S 512 a clock at 2.49 to 2.52 GHz, L40 256 at 2.49; neither is an A100."""
    l40s, l40 = peak_flops("NVIDIA L40S", "bf16"), peak_flops("NVIDIA L40", "bf16")
    assert l40s == pytest.approx(142 * 512 * 2 * 2.505e9, rel=0.015)
    assert l40 == pytest.approx(142 * 256 * 2 * 2.49e9, rel=1e-3)
    assert peak_flops("nvidia l40s", "bf16") == l40s


@pytest.mark.parametrize(
    "gpu_model",
    [
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",  # a slice is not the chip
        "NVIDIA H100",  # which of three?
        "NVIDIA H800",
        "NVIDIA H20",
        "NVIDIA H200 MIG 3g.71gb",
        "NVIDIA GH200",
        "NVIDIA A100-SXM-64GB",  # a custom chip with other clocks
        "NVIDIA A1000",
        "GRID A100-10C",
        "NVIDIA A10G",
        "NVIDIA L400",
        "AMD Instinct MI300X",
        "NVIDIA GeForce RTX 4090",
        "",
        None,
    ],
)
def test_unknown_has_no_peak(gpu_model: str | None) -> None:
    """No default and no neighbour's number."""
    assert chip(gpu_model) is None
    assert peak_flops(gpu_model, "bf16") is None


def test_gh200_is_not_h200() -> None:
    """The same peak, but another board, whose meter sees the CPU too."""
    grace, plain = chip("NVIDIA GH200 480GB"), chip("NVIDIA H200")
    assert grace is not None
    assert plain is not None
    assert grace is not plain
    assert grace.board_power_w > plain.board_power_w


def test_h200_nvl_is_not_h200() -> None:
    """835.5, not 989.5."""
    assert peak_flops("NVIDIA H200 NVL", "bf16") == 835.5e12


@pytest.mark.parametrize(("gpu_model", "precision"), [
    ("Tesla V100-SXM2-16GB", "bf16"),
    ("Tesla V100-SXM2-16GB", "tf32"),
    ("Tesla T4", "bf16"),
    ("NVIDIA H200", "fp8"),
])  # fmt: skip
def test_a_precision_the_chip_lacks_has_no_peak(gpu_model: str, precision: str) -> None:
    """Never another precision's number."""
    assert peak_flops(gpu_model, precision) is None


@pytest.mark.parametrize("name", sorted(_CHIPS))
def test_precisions_keep_their_proportions(name: str) -> None:
    """bf16 equals fp16 and is twice TF32, to a sheet's rounding: a figure in a wrong place shows."""
    found = _CHIPS[name]
    if "bf16" in found.tflops:
        assert found.tflops["bf16"] == found.tflops["fp16"]
        assert found.tflops["fp16"] / found.tflops["tf32"] == pytest.approx(2.0, rel=0.025)
    assert found.tflops["fp32"] < found.tflops["fp16"]
    assert found.source.startswith("NVIDIA data sheet, ")


@pytest.mark.parametrize(("gpu_model", "sparse"), [
    ("NVIDIA H200", 1979), ("NVIDIA B200", 4500), ("NVIDIA A100-SXM4-80GB", 624), ("NVIDIA L40S", 733),
])  # fmt: skip
def test_peaks_are_dense(gpu_model: str, sparse: float) -> None:
    """Half of what the same sheet gives with structured sparsity (within its own rounding)."""
    assert peak_flops(gpu_model, "bf16") == pytest.approx(sparse * 1e12 / 2, rel=0.015)
