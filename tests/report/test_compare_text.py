"""What is said around a comparison's table."""

from __future__ import annotations

from raybench.judge.compare import side_by_side
from raybench.report.compare_text import below_text
from tests.factories import make_config, make_trial
from tests.frames import frame_of


def test_other_maths_is_told_below() -> None:
    """Which side of which work, and both losses: the first is the baseline's."""
    configs = (make_config(), make_config().model_copy(update={"compile": "default"}))
    rows = [make_trial(config, fingerprint_loss=loss) for config, loss in zip(configs, (9.0, 8.0), strict=True)]
    assert below_text(side_by_side(frame_of(*rows), by="compile")) == [
        "",
        "ratios marked ~ are not safe to quote (noisy, short or quick): raise measure or repeats",
        "other maths: encdec 3.5m s64 b4 fp32 device ×2, default: fingerprint_loss (9 / 8); not safe to quote",
    ]
