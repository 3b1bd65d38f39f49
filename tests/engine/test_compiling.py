"""torch.compile: that it runs, gives the same losses, and says whether its code was found on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from raybench.engine.compiling import cache_state
from raybench.engine.session import Session
from tests.engine.small import encdec, fake, place


@pytest.mark.filterwarnings("ignore")     # of torch's own compiler, about itself
@pytest.mark.timeout(600)                  # a C++ compiler on a busy machine
def test_compiled_cold_then_warm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A new cache folder has nothing; the second trial finds on disk what the first left, after a reset."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("raybench.engine.build.workload", lambda name: fake("tests.engine.small:one_weight"))
    session = Session(place())
    plain = session.run(encdec())
    cold = session.run(encdec(compile="default"))
    warm = session.run(encdec(compile="default"))
    assert (plain.compile_cache, cold.compile_cache, warm.compile_cache) == (None, "cold", "warm")
    assert cold.steps.loss == pytest.approx(plain.steps.loss, rel=1e-5)
    assert cold.steps.loss == warm.steps.loss
    assert cold.steps.step_ms[0] > max(cold.steps.step_ms[2:]), "compiling happens in the first warm-up step"


def test_off_has_no_state() -> None:
    """Null, not cold."""
    assert cache_state("off") is None
