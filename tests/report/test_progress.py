"""What a run looks like, on a terminal and in a log. Time is made up."""

from __future__ import annotations

import io
import re
import sys

import pytest
from rich.console import Console

from raybench.record.run import RunClosed, RunOpened, TrialStarted
from raybench.report.console import PatientConsole
from raybench.report.progress import MAX_LINE, Progress, ProgressDisplay
from raybench.report.run_lines import opening_lines
from raybench.version import __version__
from tests.factories import make_trial
from tests.report.runs import CLOSED, OPENED

LABEL = "encdec 3.5m s64 b4 fp32 device ×2"


class Clock:
    """Seconds that pass when told to."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Watched:
    """A display on a made-up console and clock."""

    def __init__(self, *, terminal: bool = False, width: int = 200) -> None:
        self.clock, self.file = Clock(), io.StringIO()
        console = Console(
            file=self.file, force_terminal=terminal, width=width, highlight=False, _environ={},
            color_system="standard" if terminal else None,
        )  # fmt: skip
        self.display = ProgressDisplay(console, self.clock)

    def start(self, position: int, *, opens_group: bool = False) -> None:
        """A trial begins."""
        self.display.trial_started(
            TrialStarted(trial_id="t", label=LABEL, position=position, planned=16, opens_group=opens_group)
        )

    def lines(self) -> list[str]:
        """What was printed."""
        return self.file.getvalue().replace("\u202f", " ").splitlines()


def test_a_log_of_a_run() -> None:
    """Whole output: which Ray first, a line a trial, how it ended."""
    watched = Watched()
    watched.display.opened(OPENED)
    watched.start(7, opens_group=True)
    watched.clock.now_s += 6.3
    watched.display.trial_ended(make_trial(worker_start_s=5.0), LABEL, 7)
    watched.start(8)
    watched.clock.now_s += 1.3
    watched.display.trial_ended(make_trial(step_ms=5.0, warnings="short_window"), LABEL, 8)
    watched.display.trial_ended(make_trial(outcome="infeasible", error_text="64 workers"), LABEL, 9)
    watched.display.closed(CLOSED)
    assert watched.lines() == [
        f"raybench {__version__} · 2 CPU cores, no GPU · private Ray 2.60.0 (nothing runs here)",
        "sweep quick · 16 trials · 6 done earlier · 10 to run · cluster box · results in results",
        f"[ 7/16] {LABEL}                                 160.0 samples/s ±2.0 %    6.3 s  ok",
        f"[ 8/16] {LABEL}                                 1 600 samples/s ±2.0 %    1.3 s  ok  ⚠ short_window",
        f"[ 9/16] {LABEL}                                               –           0.0 s  infeasible  64 workers",
        "14 ok, 1 oom_cuda, 1 not run",
    ]


def test_trials_are_counted_as_they_end() -> None:
    """With --only the plan's positions have gaps: the 40th of the plan is the 7th of the 16 that were asked for."""
    watched = Watched()
    watched.display.opened(OPENED)
    watched.start(40)
    watched.display.trial_ended(make_trial(), LABEL, 40)
    assert watched.lines()[-1].startswith("[ 7/16] ")
    watched.display.closed(CLOSED)


def test_results_may_bring_more_to_run() -> None:
    """Probes, or a stage of another size: the counts go by the plan as it is when a trial starts. Of 16, 6 are done."""
    progress = Progress(OPENED, 0.0)
    for planned, to_run in ((19, 13), (15, 9)):
        trial = TrialStarted(trial_id="t", label=LABEL, position=7, planned=planned, opens_group=False)
        progress.start(trial, 0.0)
        assert (progress.planned, progress.to_run) == (planned, to_run)


def test_a_heartbeat_comes_after_30_s_and_then_ever_less_often() -> None:
    """An hour in one trial: at 30, 90, 210, 450, 930, 1890 s; half a minute doubled each time."""
    watched = Watched()
    watched.display.opened(OPENED)
    watched.start(7, opens_group=True)
    before = len(watched.lines())
    told = []
    for second in range(1, 3601):
        watched.clock.now_s = 1000.0 + second
        watched.display.beat()
        if len(watched.lines()) > before + len(told):
            told.append(second)
    assert told == [30, 90, 210, 450, 930, 1890]
    assert watched.lines()[before] == (
        f"0 of 10 done · running for 30 s · time left unknown yet · [7/16] {LABEL}, with a new worker group"
    )
    watched.display.closed(CLOSED)


def test_time_left_counts_start_up_of_groups_to_come() -> None:
    """6 s with 4 s of start-up ended; 2 s to go: 8 waiting x 2 s + 1 group x 4 s + 2 s running, less 30 s: 20 s."""
    watched = Watched()
    watched.display.opened(OPENED)
    watched.start(7, opens_group=True)
    watched.clock.now_s += 6.0
    watched.display.trial_ended(make_trial(worker_start_s=4.0), LABEL, 7)
    watched.start(8)
    watched.clock.now_s += 30.0
    watched.display.beat()
    assert watched.lines()[-1] == f"1 of 10 done · running for 30 s · about 20 s left · [8/16] {LABEL}"
    watched.display.closed(CLOSED)


def test_a_log_is_plain_and_short() -> None:
    """No escape, no line over 200 characters, at most 3 lines a trial + 10, whatever names and errors hold."""
    watched = Watched(width=80)
    watched.display.opened(OPENED)
    nasty = "[red]" + "x" * 400 + "\x1b[31m\x1b]0;title\x07\n"
    for position in range(7, 17):
        watched.start(position)
        for _ in range(300):
            watched.clock.now_s += 1.0
            watched.display.beat()
        watched.display.trial_ended(make_trial(outcome="workload_error", error_text=nasty), nasty, position)
    watched.display.closed(CLOSED)
    assert "\x1b" not in watched.file.getvalue()
    assert "[red]" in watched.file.getvalue()
    assert max(map(len, watched.lines())) <= MAX_LINE
    assert len(watched.lines()) <= 3 * 10 + 10


def test_a_terminal_keeps_a_bar_below_the_lines() -> None:
    """The lines are those of a log; the bar is drawn with escapes and is gone at the end."""
    watched = Watched(terminal=True, width=120)
    watched.display.opened(OPENED)
    watched.start(7)
    watched.clock.now_s += 1.0
    watched.display.trial_ended(make_trial(), LABEL, 7)
    watched.display.closed(CLOSED)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", watched.file.getvalue())
    assert "1 of 10 done" in plain
    assert "[ 7/16] " + LABEL in plain
    assert plain.rstrip().endswith("14 ok, 1 oom_cuda, 1 not run")
    assert "\x1b[?25h" in watched.file.getvalue()      # the cursor is shown again


def test_a_terminal_says_what_is_waited_for_before_a_ray_is_there() -> None:
    """Starting one takes ten seconds: a line that lives until the first lines take its place."""
    watched = Watched(terminal=True, width=80)
    watched.display.joining("starting a private Ray (none runs on this node)")
    watched.display.opened(OPENED)
    watched.display.closed(CLOSED)
    shown = watched.file.getvalue()
    assert "0 s · starting a private Ray (none runs on this node)" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1      # one display, taken away
    assert not re.search(r"starting a private Ray[^\r]*\n", shown)         # no line of it stays


def test_a_log_is_not_told_what_is_waited_for() -> None:
    """Its first line is the first thing that stays true."""
    watched = Watched()
    watched.display.joining("starting a private Ray")
    assert watched.lines() == []


def test_a_run_that_fails_before_it_opens_gives_the_terminal_back() -> None:
    """The cursor is shown, and what is said after the end goes nowhere."""
    watched = Watched(terminal=True, width=80)
    watched.display.joining("starting a private Ray")
    with pytest.raises(ZeroDivisionError), watched.display:
        raise ZeroDivisionError
    shown = watched.file.getvalue()
    assert "\x1b[?25h" in shown
    watched.display.notice("too late")
    assert watched.file.getvalue() == shown


def test_the_bar_of_a_narrow_terminal_cuts_only_the_label() -> None:
    """10 of bar, a blank, what counts, and of the label what 80 cells have room for."""
    watched = Watched(terminal=True, width=80)
    watched.display.opened(OPENED)
    watched.start(7)
    watched.clock.now_s += 6.0
    watched.display.trial_ended(make_trial(worker_start_s=4.0), LABEL, 7)
    watched.start(8)
    watched.clock.now_s += 18.0
    watched.display.closed(CLOSED)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", watched.file.getvalue())
    (bar,) = [line for line in plain.splitlines() if "running for 18 s" in line]
    # 8 trials wait, 6 s less 4 s of start-up each: 16 s, and nothing for the one that is late.
    assert re.fullmatch(r"[━╸╺ ]{10} 1 of 10 done · running for 18 s · about 16 s left · \[8/16\] encdec.*… *", bar)


def test_a_command_to_paste_is_one_line_at_any_width() -> None:
    """A terminal of 40 cells may show it on two rows, but no line break is written."""
    command = "raybench run quick --out results/of/a/long/name --only precision=bf16 --quick"
    watched = Watched(terminal=True, width=40)
    watched.display.opened(OPENED)
    watched.display.closed(RunClosed(**{**vars(CLOSED), "exit_code": 130, "continue_command": command}))
    assert f"to go on:  {command}\n" in watched.file.getvalue()


def test_the_bar_leaves_standard_output_alone() -> None:
    """During a run it belongs to Ray and goes into a log; rich would bring it to the terminal."""
    watched, before = Watched(terminal=True), (sys.stdout, sys.stderr)
    watched.display.opened(OPENED)
    assert (sys.stdout, sys.stderr) == before
    watched.display.closed(CLOSED)


def test_an_interrupted_run_says_how_to_go_on() -> None:
    """The process ends right after, so nobody else can."""
    watched = Watched()
    watched.display.opened(OPENED)
    watched.display.closed(RunClosed(**{**vars(CLOSED), "exit_code": 130}))
    assert watched.lines()[-1] == "interrupted; to go on:  raybench run quick"


def test_a_run_without_work_only_says_so() -> None:
    """No bar and no heartbeat where nothing is to be run."""
    watched = Watched(terminal=True)
    watched.display.opened(RunOpened(**{**vars(OPENED), "to_run": 0, "done_earlier": 16}))
    watched.display.closed(RunClosed(**{**vars(CLOSED), "outcomes": {"ok": 16}, "not_run": 0, "exit_code": 0}))
    assert "16 ok" in watched.lines()[-1]
    assert "\x1b[?25l" not in watched.file.getvalue()


class Gone(io.StringIO):
    """A pipe whose reader has left."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_leaves_does_not_end_the_run() -> None:
    """`raybench run ... | head` goes on and commits its rows."""
    display = ProgressDisplay(PatientConsole(file=Gone(), width=80), Clock())
    display.opened(OPENED)
    display.notice("still here")
    display.closed(CLOSED)


def test_rich_does_not_end_the_process_either() -> None:
    """Its own console would exit on a broken pipe."""
    with pytest.raises(BrokenPipeError):
        PatientConsole(file=Gone(), width=80).print("x")


def test_what_was_looked_at_before_the_first_trial() -> None:
    """The finding first: a terminal cuts long lines. A Ray of the run's own is not looked at, and nothing said."""
    told = [opening_lines(RunOpened(**{**vars(OPENED), "preflight": "3 nodes (clock)", "findings": count}))[-1].plain
            for count in (0, 1, 2)]  # fmt: skip
    assert told == [f"preflight: {found} on 3 nodes (clock)" for found in ("nothing found", "1 finding", "2 findings")]
    assert len(opening_lines(OPENED)) == 2
