"""Golden tables: what `show`, `compare` and the end of a run print."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from raybench.judge.compare import compare
from raybench.report.compare_text import compare_text
from raybench.report.run_lines import next_line, outcome_counts, varying_axis
from raybench.report.tables import compare_table, trial_table
from raybench.spec.config import Source
from tests.factories import make_config, make_trial
from tests.frames import frame_of
from tests.report.runs import CLOSED

UID = "{:08x}" + "0" * 24


def printed(table: Table, width: int) -> list[str]:
    """The lines of a table, without trailing blanks, digits grouped by `_`."""
    file = io.StringIO()
    Console(file=file, width=width).print(table)
    return [line.rstrip().replace("\u202f", "_") for line in file.getvalue().splitlines()]


def test_a_line_for_each_trial() -> None:
    """An ok one, a noisy one, a wrong one and a failed one, whose error prints literally."""
    rows = [
        make_trial(trial_uid=UID.format(1)),
        make_trial(
            make_config(precision="bf16"), step_ms=5.0, warnings="noisy_steps", step_ms_cv=0.08, trial_uid=UID.format(2)
        ),
        make_trial(
            make_config(source=Source(name="shards")), valid=False, invalid_reasons="above_peak",
            trial_uid=UID.format(3),
        ),
        make_trial(outcome="data_error", error_text="[red]shard_0000.bin\x1b[31m cut", trial_uid=UID.format(4)),
    ]
    assert printed(trial_table(frame_of(*rows), 108), 108) == [
        "id        trial                              samples/s  tokens/s  step ms  CV %  outcome     notes",
        "─" * 108,
        "00000001  encdec 3.5m s64 b4 fp32 device ×2      160.0    10_080    50.00   2.0  ok",
        "00000002  encdec 3.5m s64 b4 bf16 device ×2      1_600   100_800    5.000   8.0  ok          ⚠ noisy_steps",
        "00000003  encdec 3.5m s64 b4 fp32 shards ×2      160.0    10_080    50.00   2.0  invalid     above_peak",
        "00000004  encdec 3.5m s64 b4 fp32 device ×2          –         –        –     –  data_error  [red]shard_000…",
    ]


def test_a_comparison_as_printed() -> None:
    """Each work once, the baseline named, the ratio with its interval."""
    rows = [
        make_trial(step_ms=ms * jitter, cluster=name, repeat=repeat)
        for name, ms in (("a", 50.0), ("b", 25.0))
        for repeat, jitter in ((1, 0.99), (2, 1.0), (3, 1.01))
    ]
    compared = compare(frame_of(*rows))
    assert str(compare_text(compared)) == (
        "by cluster · baseline: a · ratio of tokens/s, with its 95 % interval over repeats\n"
    )
    # Logs spread by 1 % on both sides: standard error 0.01 x sqrt(2 / 3) = 0.00816, t of 4 degrees 2.776: 2.3 %.
    assert printed(compare_table(compared, 100), 100) == [
        "work                               cluster  samples/s  tokens/s  step ms  CV %               ratio",
        "─" * 98,
        "encdec 3.5m s64 b4 fp32 device ×2  a            160.0    10_080    50.00   2.0            baseline",
        "                                   b            320.0    20_160    25.00   2.0  2.00x [1.96, 2.05]",
    ]


def test_outcomes_are_counted_in_their_documented_order() -> None:
    """And what was never run."""
    assert outcome_counts({"timeout": 1, "ok": 22, "oom_cuda": 2}, 3) == "22 ok, 2 oom_cuda, 1 timeout, 3 not run"
    assert outcome_counts({}, 0) == "nothing was run"


def test_the_next_command() -> None:
    """What is unfinished is continued; what is finished is compared along what varies, or looked at."""
    done = type(CLOSED)(**{**vars(CLOSED), "exit_code": 0})
    assert str(next_line(CLOSED, "precision")) == "to go on:  raybench run quick"
    assert str(next_line(done, "precision")) == "next:  raybench compare results --by precision"
    assert str(next_line(done, None)) == "next:  raybench show results"
    rows = [make_trial(make_config(num_workers=n)) for n in (1, 2)]
    assert varying_axis(frame_of(*rows)) == "num_workers"
    assert varying_axis(frame_of(*rows[:1])) is None
