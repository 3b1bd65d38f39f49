"""Where an attention kernel is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from raybench.engine.precision import unsupported
from raybench.spec.models.encdec import EncDecShape
from tests.engine.test_decoder import decoder

WITH_DROPOUT = {"workload": "encdec", "model": EncDecShape()}


@pytest.mark.parametrize(("changes", "device_kind", "capability", "expected"), [
    ({"attention": "auto"}, "cpu", None, None),
    ({"attention": "flash"}, "cpu", None, None),
    ({"attention": "math"}, "cpu", None, None),
    ({"attention": "cudnn"}, "cpu", None, "attention cudnn needs a CUDA device"),
    ({"attention": "efficient"}, "cpu", None, "attention efficient needs a CUDA device"),
    ({"attention": "flash", **WITH_DROPOUT}, "cpu", None, "attention flash has no dropout on CPU"),
    ({"attention": "flash", "phase": "forward", **WITH_DROPOUT}, "cpu", None, None),
    ({"attention": "flash"}, "cuda", None, "attention flash needs bf16 or fp16, not fp32"),
    ({"attention": "cudnn", "precision": "tf32"}, "cuda", (9, 0), "attention cudnn needs bf16 or fp16, not tf32"),
    ({"attention": "efficient"}, "cuda", (7, 0), None),
    ({"attention": "flash", "precision": "fp16"}, "cuda", (7, 0),
     "attention flash needs compute capability 8.0 (Ampere) or later; this GPU has 7.0"),
    ({"attention": "flash", "precision": "fp16"}, "cuda", None, None),
    ({"attention": "cudnn", "precision": "bf16"}, "cuda", (9, 0), None),
])  # fmt: skip
def test_refusals(
    changes: dict[str, Any], device_kind: str, capability: tuple[int, int] | None, expected: str | None
) -> None:
    """One sentence, or None where the kernel may run or where only the device itself can tell."""
    assert unsupported(decoder(**changes), device_kind, capability) == expected
