"""What a run tells at its start and end, made up."""

from __future__ import annotations

from raybench.record.run import RunClosed, RunOpened

OPENED = RunOpened(
    sweep="quick", sweep_run_id="r", ray="private Ray 2.60.0 (nothing runs here)", hardware="2 CPU cores, no GPU",
    out="results", cluster="box", planned=16, done_earlier=6, to_run=10, groups=2,
)  # fmt: skip
CLOSED = RunClosed(
    sweep="quick", cluster="box", trial_ids=(), outcomes={"oom_cuda": 1, "ok": 14}, not_run=1, invalid=0, exit_code=1,
    out="results", continue_command="raybench run quick",
)  # fmt: skip
