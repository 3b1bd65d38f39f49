"""Lines of trials at every width: outcome and figure survive, the label is shortened last."""

from __future__ import annotations

import pytest

from raybench.record.run import StageFound
from raybench.record.trial import Trial
from raybench.report.run_lines import fastest_line, found_line, trial_line, why_line
from tests.factories import make_config, make_trial
from tests.report.runs import CLOSED

LABEL = "encdec 3.5m s64 b4 fp32 device ×2"
ERROR = "Exception in rank 1 on host gpu-17 while it read its data: shard_0003.bin is cut at byte 4096, prepare it"


def line(trial: Trial, width: int, label: str = LABEL) -> str:
    """The line, digits grouped by a blank."""
    return trial_line(trial, label, 7, 16, 1.3, width).plain.replace("\u202f", " ")


def test_100_columns_have_room_for_the_interval() -> None:
    """Label and figure end at 8 + 61, then 8 for the interval and 6 for the time; the warnings get the last 9."""
    noisy = make_trial(step_ms=5.0, warnings="noisy_steps;short_window")
    assert line(make_trial(), 100) == f"[ 7/16] {LABEL}             160.0 samples/s ±2.0 %    1.3 s  ok"
    assert line(noisy, 100) == f"[ 7/16] {LABEL}             1 600 samples/s ±2.0 %    1.3 s  ok  ⚠ noisy_…"


def test_140_columns_keep_the_label_of_many_axes_whole() -> None:
    """Label and figure end at 8 + 81."""
    label = f"{LABEL} model.dropout=0.1 seed=7"
    assert line(make_trial(), 140, label) == f"[ 7/16] {label}        160.0 samples/s ±2.0 %    1.3 s  ok"


def test_80_columns_keep_label_figure_outcome_and_sign() -> None:
    """8 + 55 (label and figure) + 7 + 4 = 74, 3 more for the sign; figures stay in one column."""
    noisy = make_trial(step_ms=5.0, warnings="noisy_steps;short_window")
    assert line(make_trial(), 80) == f"[ 7/16] {LABEL}          160.0 samples/s  1.3 s  ok"
    assert line(noisy, 80) == f"[ 7/16] {LABEL}          1 600 samples/s  1.3 s  ok  ⚠"


def test_60_columns_shorten_the_label_in_its_middle() -> None:
    """Both ends of a label tell trials apart."""
    quick = make_trial(make_config(quality="quick"), warnings="short_window")
    assert line(make_trial(), 60) == "[ 7/16] encdec 3.5…device ×2   160.0 samples/s  1.3 s  ok"
    assert line(quick, 60).endswith("160.0 samples/s  1.3 s  ok  quick ⚠")


@pytest.mark.parametrize("width", range(60, 201))
def test_no_line_is_longer_than_its_terminal(width: int) -> None:
    """And each ends in its outcome with what must not be lost."""
    for trial in (make_trial(warnings="straggler"), make_trial(outcome="data_error", error_text=ERROR)):
        told = line(trial, width, LABEL + " model.d_model=512")
        assert len(told) <= width
        assert "ok  ⚠" in told or "data_error" in told


def test_a_failure_shows_both_ends_of_its_reason() -> None:
    """The room of the figure that it does not have goes to the reason; what matters is often its end."""
    failed = make_trial(outcome="data_error", error_text=ERROR)
    assert line(failed, 200) == f"[ 7/16] {LABEL}  1.3 s  data_error  {ERROR}"
    told = line(failed, 120)
    assert told.startswith(f"[ 7/16] {LABEL}  1.3 s  data_error  Exception in rank 1")
    assert told.endswith("byte 4096, prepare it")


def test_a_product_of_matrices_is_told_in_flop_s() -> None:
    """2 ranks at 0.25 TFLOP/s are 500 GFLOP/s, at 10 they are 20 TFLOP/s: nobody knows a chip by its products/s."""
    small, large = (make_trial(parameters=None, tflops_per_gpu=rate) for rate in (0.25, 10.0))
    assert "  500.0 GFLOP/s  160.0 samples/s " in line(small, 100, "matmul sq1024 fp32 ×2")
    assert "  20.00 TFLOP/s  160.0 samples/s " in line(large, 100, "matmul sq1024 fp32 ×2")


def test_what_moves_bytes_is_told_in_bytes() -> None:
    """A collective by its bus, alone by its algorithm; the triad by the memory of a worker."""
    bus = make_trial(
        parameters=None, tflops_per_gpu=None, algorithm_bandwidth_bytes_per_s=2e11, bus_bandwidth_bytes_per_s=3.5e11
    )
    alone = make_trial(parameters=None, tflops_per_gpu=None, algorithm_bandwidth_bytes_per_s=2e11)
    triad = make_trial(parameters=None, tflops_per_gpu=0.5, memory_bandwidth_bytes_per_s=4.1e12)
    assert "  bus 350.0 GB/s  160.0 samples/s " in line(bus, 100, "collective all_reduce-16m fp32 ×2")
    assert "  200.0 GB/s  160.0 samples/s " in line(alone, 100, "collective all_reduce-16m fp32 ×2")
    assert "  4 100 GB/s  160.0 samples/s " in line(triad, 100, "elementwise 32768x8192 fp32 ×2")


def test_where_to_look_after_a_failure() -> None:
    """The first failed one, and how many there are."""
    assert why_line(CLOSED, ["ab68938f"]) == "why:  raybench show results --trial ab68938f"
    assert why_line(CLOSED, ["ab68938f", "c"]) == "why:  raybench show results --trial ab68938f   (and 1 more)"


def test_a_search_tells_each_stage_and_its_best() -> None:
    """The ratio says over what; a stage without a usable number says so, and then there is no best."""
    first = StageFound(
        stage=1, stages=2, column="tokens_per_s", trial_id="k-01", label="gpt2 b64", value=1234.0, ratio=1.5
    )
    second = StageFound(**{**vars(first), "stage": 2, "label": "gpt2 b64 bf16", "value": 2468.0, "ratio": 2.0})
    assert [found_line(one).replace("\u202f", " ") for one in (first, second)] == [
        "stage 1 of 2: gpt2 b64 · 1 234 tokens_per_s · 1.50x its first config",
        "stage 2 of 2: gpt2 b64 bf16 · 2 468 tokens_per_s · 2.00x the stage before",
    ]
    assert (fastest_line([first]), fastest_line([first, second])) == (None, "best: gpt2 b64 bf16 (k-01)")
    nothing = StageFound(stage=2, stages=2, column="tokens_per_s", trial_id=None, label=None, value=None, ratio=None)
    assert found_line(nothing).startswith("stage 2 of 2: nothing ended ok with a valid number")
    assert fastest_line([first, nothing]) is None
