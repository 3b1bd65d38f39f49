"""Where a precision can run, and what it switches."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from raybench.engine.precision import autocast, dtype, effective, switch_tf32, unsupported
from raybench.engine.reset import ProcessState
from tests.engine.small import encdec

AMPERE = "tf32 needs compute capability 8.0 (Ampere) or later; this GPU has 7.5"


@pytest.mark.parametrize(
    ("precision", "device_kind", "capability", "expected"),
    [
        ("fp32", "cpu", None, None),
        ("bf16", "cpu", None, None),
        ("fp16", "cpu", None, None),
        ("tf32", "cpu", None, "tf32 needs a CUDA device"),
        ("tf32", "cuda", (7, 5), AMPERE),
        ("bf16", "cuda", (7, 0), "bf16 needs compute capability 8.0 (Ampere) or later; this GPU has 7.0"),
        ("fp16", "cuda", (7, 0), None),
        ("tf32", "cuda", (8, 0), None),
        ("bf16", "cuda", (10, 0), None),
        ("tf32", "cuda", None, None),
    ],
)
def test_unsupported(
    precision: str, device_kind: str, capability: tuple[int, int] | None, expected: str | None
) -> None:
    """One sentence, or None; where the capability is not known yet, only what is sure is refused."""
    assert unsupported(encdec(precision=precision), device_kind, capability) == expected


def test_the_device_is_never_switched_silently() -> None:
    """A config that asks for CUDA does not run on a CPU; one that leaves it open does."""
    assert unsupported(encdec(device="cuda"), "cpu") == "device cuda was asked for and there is none"
    assert unsupported(encdec(device="cpu"), "cpu") is None


def test_asking_imports_no_torch() -> None:
    """The driver asks before it starts anything."""
    code = "import sys, raybench.engine.precision; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("precision", "product"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_autocast(precision: str, product: torch.dtype) -> None:
    """fp32 weights; the product is of the type that was asked for."""
    weights = torch.ones(2, 2)
    with autocast(precision, "cpu"):  # type: ignore[arg-type]
        assert (weights @ weights).dtype == product
    assert dtype(precision) == product  # type: ignore[arg-type]


@pytest.mark.parametrize(("precision", "on"), [("fp32", False), ("tf32", True), ("bf16", False), ("fp16", False)])
def test_tf32_is_switched_both_ways(precision: str, on: bool) -> None:
    """cuDNN's default is on: fp32 must switch it off. What ran is read back from the switch."""
    state = ProcessState.now()
    try:
        torch.set_float32_matmul_precision("highest" if on else "high")
        torch.backends.cudnn.allow_tf32 = not on
        switch_tf32(precision)  # type: ignore[arg-type]
        assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == (on, on)
        assert effective(precision, "cuda") == precision  # type: ignore[arg-type]
    finally:
        state.restore()
