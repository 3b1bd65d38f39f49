"""What a person sees while a run goes on: one live display on a terminal, plain lines elsewhere.

On a terminal the lines of finished trials scroll by above a bar that stays. Elsewhere (a job's log, a pipe) there is a
line a trial, and a heartbeat that comes less and less often, so that a long trial does not look like a dead one and
a log stays short.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from raybench.record.run import RunClosed, RunOpened, TrialStarted
from raybench.record.trial import Trial
from raybench.report.eta import Ended, Running, time_left_s
from raybench.report.numbers import count, is_null, seconds
from raybench.report.run_lines import WIDE, closing_line, opening_lines, trial_line
from raybench.report.text import literal, shortened

HEARTBEAT_S = 30.0
MAX_LINE = 200
BEATS_A_TRIAL, SPARE_BEATS = 2, 4     # with its own line a trial has at most three, and a log stays readable
REDRAWS_A_SECOND = 2          # each one takes time from a benchmark that may share the driver's cores
INTERRUPTED = 130


class Progress:
    """How far a run is: counts and times, nothing drawn. Times are seconds of one monotonic clock."""

    def __init__(self, run: RunOpened, now_s: float) -> None:
        self.planned, self.done_earlier, self.to_run = run.planned, run.done_earlier, run.to_run
        self.groups = run.groups
        self.ended: list[Ended] = []
        self.running: TrialStarted | None = None
        self.started_s = now_s
        self.groups_opened = 0

    @property
    def number(self) -> int:
        """How many of the planned trials have ended. `--only` leaves gaps in the plan's own positions: `[7/4]`."""
        return self.done_earlier + len(self.ended)

    def start(self, trial: TrialStarted, now_s: float) -> None:
        """A trial begins."""
        self.running, self.started_s = trial, now_s
        self.to_run += trial.planned - self.planned      # results may bring more to run, or less
        self.planned = trial.planned
        self.groups_opened += trial.opens_group

    def end(self, trial: Trial, now_s: float) -> float:
        """It ended; how long it took by this clock."""
        # One that was refused before it started took no time.
        duration_s = now_s - self.started_s if self.running is not None else 0.0
        known = [trial.placement_s, trial.worker_start_s]
        startup_s = min(sum(part for part in known if not is_null(part) and part is not None), duration_s)
        opened = self.running is not None and self.running.opens_group
        self.ended.append(Ended(duration_s, startup_s, opened))
        self.running = None
        return duration_s

    def left_s(self, now_s: float) -> float | None:
        """Seconds left, None while unknown."""
        groups_left = None if self.groups is None else max(self.groups - self.groups_opened, 0)
        running = Running(now_s - self.started_s, self.running.opens_group) if self.running else None
        waiting = max(self.to_run - len(self.ended) - (running is not None), 0)
        return time_left_s(self.ended, waiting=waiting, groups_left=groups_left, running=running)

    def status(self, now_s: float) -> str:
        """`3 of 10 done · running for 12 s · about 2m03s left · [ 4/16] encdec ...`: what may be cut comes last."""
        parts = [f"{count(len(self.ended))} of {count(self.to_run)} done"]
        if self.running is not None:
            parts.append(f"running for {seconds(now_s - self.started_s, fine=False)}")
        if len(self.ended) == self.to_run:
            return f"{parts[0]} · leaving Ray"
        left_s = self.left_s(now_s)
        parts.append("time left unknown yet" if left_s is None else f"about {seconds(left_s, fine=False)} left")
        if self.running is not None:
            starting = ", with a new worker group" if self.running.opens_group else ""
            label = shortened(literal(self.running.label), 60)
            parts.append(f"[{self.number + 1}/{self.planned}] {label}{starting}")
        return " · ".join(parts)


class ProgressDisplay:
    """An `Observer` that shows a run on a console. `clock` gives monotonic seconds.

    As a context it takes its display away at the end, also of a run that fails before it opened.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._lock = threading.RLock()
        self._joining, self._joining_since_s = "", 0.0
        self._progress: Progress | None = None
        self._live: Live | None = None
        self._beat_at_s = self._beat_every_s = 0.0
        self._beats_left = SPARE_BEATS
        self._over = threading.Event()
        self._broken = False

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._take_away()
            self._broken = True      # the console's file may be closed by now

    # -- the run tells -----------------------------------------------------------------------------------------------

    def joining(self, ray: str) -> None:
        """On a terminal a line that goes when the run opens: until then nothing else can be said."""
        with self._lock:
            self._joining, self._joining_since_s = literal(ray), self._clock()
            self._show_live()

    def opened(self, run: RunOpened) -> None:
        """The first lines, and the display."""
        with self._lock:
            self._progress = Progress(run, self._clock())
            if not run.to_run:
                self._take_away()
            for line in opening_lines(run):
                self._say(line)
            if run.to_run:
                self._show_live()
                if self._live is None:
                    threading.Thread(target=self._beat_until_over, name="raybench-heartbeat", daemon=True).start()

    def trial_started(self, trial: TrialStarted) -> None:
        """Known to the bar and the heartbeat; no line of its own."""
        with self._lock:
            assert self._progress is not None
            now_s = self._clock()
            self._progress.start(trial, now_s)
            self._beats_left += BEATS_A_TRIAL
            self._beat_every_s = HEARTBEAT_S
            self._beat_at_s = now_s + HEARTBEAT_S

    def trial_ended(self, trial: Trial, label: str, position: int) -> None:
        """One line."""
        with self._lock:
            assert self._progress is not None
            duration_s = self._progress.end(trial, self._clock())
            width = min(self._console.width, MAX_LINE)
            self._say(trial_line(trial, label, self._progress.number, self._progress.planned, duration_s, width))

    def notice(self, text: str) -> None:
        """Something a person should know, whenever it comes up."""
        with self._lock:
            self._say(Text(literal(text), style="yellow"))

    def closed(self, run: RunClosed) -> None:
        """The display goes, one line stays; told of an interruption, also how to go on."""
        with self._lock:
            self._take_away()
            self._say(closing_line(run))
            if run.exit_code == INTERRUPTED:
                self._say(Text(f"interrupted; to go on:  {literal(run.continue_command)}"), cut=False)
            self._flush()

    # -- what is shown -----------------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Say that the run is alive, if that is due: after 30 s of a trial, then each time twice as long."""
        with self._lock:
            now_s = self._clock()
            if self._progress is None or self._progress.running is None or now_s < self._beat_at_s:
                return
            if not self._beats_left:
                return
            self._beats_left -= 1
            self._beat_every_s *= 2
            self._beat_at_s = now_s + self._beat_every_s
            self._say(Text(self._progress.status(now_s), style="dim"))

    def _beat_until_over(self) -> None:
        while not self._over.wait(HEARTBEAT_S / 10):
            self.beat()

    def _show_live(self) -> None:
        if self._live is None and self._console.is_terminal:
            self._live = Live(
                console=self._console,
                get_renderable=self._drawn,
                refresh_per_second=REDRAWS_A_SECOND,
                transient=True,
                redirect_stdout=False,     # during a run these are Ray's, and go into a log
                redirect_stderr=False,
            )
            self._live.start(refresh=True)

    def _take_away(self) -> None:
        self._over.set()
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _drawn(self) -> RenderableType:
        # Called by rich's own thread; it only reads, and a number that is one trial old is redrawn half a second later.
        return self._waiting() if self._progress is None else self._bar(self._progress)

    def _waiting(self) -> Text:
        since = seconds(self._clock() - self._joining_since_s, fine=False)
        return Text(f"{since} · {self._joining}", style="dim", no_wrap=True, overflow="ellipsis")

    def _bar(self, progress: Progress) -> Group:
        bar = Table.grid(padding=(0, 1, 0, 0))
        bar.add_row(
            ProgressBar(
                total=progress.to_run, completed=len(progress.ended), width=30 if self._console.width >= WIDE else 10
            ),
            Text(progress.status(self._clock()), no_wrap=True, overflow="ellipsis"),
        )
        return Group("", bar)

    def _say(self, line: Text, cut: bool = True) -> None:
        """One line; a command is not to be `cut`, nor wrapped. A reader that has gone away does not end the run."""
        if cut and not self._console.is_terminal:
            line.truncate(MAX_LINE, overflow="ellipsis")
        if self._broken:
            return
        try:
            self._console.print(line, soft_wrap=not (cut and self._console.is_terminal))
            self._flush()
        except BrokenPipeError:
            self._broken = True

    def _flush(self) -> None:
        if not self._broken:
            self._console.file.flush()
