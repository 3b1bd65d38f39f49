"""Golden tables: what `show`, `compare` and the end of a run print."""

from __future__ import annotations

import io

import pandas as pd
from rich.console import Console
from rich.table import Table

from raybench.judge.compare import compare
from raybench.measure.validity import MEANINGS
from raybench.report.compare_text import compare_text
from raybench.report.legend import legend
from raybench.report.run_lines import next_line, outcome_counts, varying_axis
from raybench.report.short_id import short_ids
from raybench.report.tables import compare_table, few_presets, trial_table
from raybench.spec.config import Source
from tests.factories import make_config, make_trial
from tests.frames import frame_of
from tests.report.runs import CLOSED

ID = "{:08x}00000000-01"


def printed(table: Table, width: int) -> list[str]:
    """The lines of a table, without trailing blanks, digits grouped by `_`."""
    file = io.StringIO()
    Console(file=file, width=width).print(table)
    return [line.rstrip().replace("\u202f", "_") for line in file.getvalue().splitlines()]


def test_a_line_for_each_trial() -> None:
    """An ok one, a noisy one, a wrong one and a failed one, whose error prints literally."""
    rows = [
        make_trial(trial_id=ID.format(1)),
        make_trial(
            make_config(precision="bf16"), step_ms=5.0, warnings="noisy_steps", step_ms_cv=0.08, trial_id=ID.format(2)
        ),
        make_trial(
            make_config(source=Source(name="shards")), valid=False, invalid_reasons="above_peak",
            trial_id=ID.format(3),
        ),
        make_trial(outcome="data_error", error_text="[red]shard_0000.bin\x1b[31m cut", trial_id=ID.format(4)),
    ]
    assert printed(trial_table(frame_of(*rows), 108), 108) == [
        "id        trial                              samples/s  tokens/s  step ms  CV %  outcome     notes",
        "─" * 108,
        "00000001  encdec 3.5m s64 b4 fp32 device ×2      160.0    10_080    50.00   2.0  ok",
        "00000002  encdec 3.5m s64 b4 bf16 device ×2      1_600   100_800    5.000   8.0  ok          ⚠ noisy_steps",
        "00000003  encdec 3.5m s64 b4 fp32 shards ×2      160.0    10_080    50.00   2.0  invalid     above_peak",
        "00000004  encdec 3.5m s64 b4 fp32 device ×2          –         –        –     –  data_error  [red]shard_000…",
    ]


def mixed_rows() -> pd.DataFrame:
    """A noisy one, a quick one, a failed one."""
    return frame_of(
        make_trial(warnings="noisy_steps;short_window", trial_id=ID.format(1)),
        make_trial(make_config(quality="quick"), trial_id=ID.format(2)),
        make_trial(outcome="data_error", trial_id=ID.format(3)),
    )


def test_80_columns_have_the_signs_in_the_outcome() -> None:
    """The notes have no room, their signs survive."""
    assert printed(trial_table(mixed_rows(), 80), 80) == [
        "id        trial                              samples/s  step ms  outcome",
        "─" * 75,      # 8 + 33 + 9 + 7 + 10 and four gaps
        "00000001  encdec 3.5m s64 b4 fp32 device ×2      160.0    50.00  ok ⚠",
        "00000002  encdec 3.5m s64 b4 fp32 device ×2      160.0    50.00  ok quick",
        "00000003  encdec 3.5m s64 b4 fp32 device ×2          –        –  data_error",
    ]


def test_40_columns_lose_columns_not_cells() -> None:
    """The id goes; trial (17), figure (9) and outcome (10) with two gaps are 40."""
    lines = printed(trial_table(mixed_rows(), 40), 40)
    assert lines[0].split() == ["trial", "samples/s", "outcome"]
    assert [line.split()[-1] for line in lines[2:]] == ["⚠", "quick", "data_error"]
    assert max(map(len, lines)) <= 40


def test_several_sweeps_have_a_column_at_80() -> None:
    """A row must say where it is from."""
    rows = frame_of(make_trial(sweep="quick"), make_trial(sweep="other"))
    assert "sweep" in printed(trial_table(rows, 80), 80)[0].split()
    assert "sweep" not in printed(trial_table(rows.head(1), 80), 80)[0].split()


def test_the_legend_says_each_word_once() -> None:
    """In the words of the rules; what another version wrote is passed over."""
    rows = [{"invalid_reasons": "", "warnings": name} for name in ("noisy_steps", "noisy_steps;short_window;newer")]
    assert [str(line) for line in legend(rows)] == [
        "", f"noisy_steps: {MEANINGS['noisy_steps']}", f"short_window: {MEANINGS['short_window']}",
    ]  # fmt: skip
    assert legend([{"invalid_reasons": "", "warnings": ""}]) == []


def test_very_many_presets_show_their_ends() -> None:
    """3 x 11 of collective: both ends of each and the default; those of others stay."""
    sizes = [f"{op}-{size}" for op in ("x", "y", "z") for size in range(11)]
    rows = [{"workload": "collective", "preset": name, "default": name == "x-5"} for name in sizes]
    others = [{"workload": "few", "preset": f"gpt2-{name}", "default": False} for name in "abc"]
    shown = [row["preset"] for row in few_presets([*rows, *others])]
    assert shown == ["x-0", "x-5", "x-10", "y-0", "y-10", "z-0", "z-10", "gpt2-a", "gpt2-b", "gpt2-c"]


def test_short_ids_are_beginnings_that_no_other_has() -> None:
    """Repeats share the config's 16 characters, so theirs is whole."""
    ids = ["ab68938fced0683e-01", "ab68938fced0683e-02", "023df2ed00000000-01", "023df2ed00000000-01"]
    assert list(short_ids(ids).values()) == [ids[0], ids[1], "023df2ed"]


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
