"""The commands, as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import raybench
from raybench import cli
from raybench.errors import RaybenchError
from raybench.record.run import Observer, RunClosed
from raybench.spec.config import Extent
from raybench.version import __version__
from tests.factories import make_config, make_trial
from tests.frames import store

SWEEP = """\
name: small
question: How many?
base: {workload: encdec, seq_len: 64, micro_batch: 4, source: device}
axes:
  precision: [fp32, bf16]
  seed: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
"""
HEAVY = ("torch", "ray", "pandas", "pyarrow", "pydantic", "numpy")


def run(*args: str, env: Mapping[str, str] | None = None) -> Result:
    """A command in this process; an unexpected exception is raised."""
    result = CliRunner().invoke(cli.app, list(args), env={"COLUMNS": "160", **(env or {})})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def command(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command as its own process."""
    return subprocess.run(
        [sys.executable, "-m", "raybench", *args], capture_output=True, text=True, timeout=120, cwd=cwd, check=False
    )


@pytest.fixture
def sweep(tmp_path: Path) -> str:
    """A sweep of 24 trials."""
    path = tmp_path / "small.yaml"
    path.write_text(SWEEP)
    return str(path)


@pytest.fixture
def out(tmp_path: Path) -> str:
    """Results of one trial on two clusters, and one that failed."""
    rows = [make_trial(cluster=name, step_ms=ms) for name, ms in (("a", 50.0), ("b", 25.0))]
    rows.append(make_trial(make_config(precision="bf16"), outcome="timeout", trial_uid="f" * 32, sweep_order=1))
    store(tmp_path / "out", *rows)
    return str(tmp_path / "out")


def test_help_lists_every_command() -> None:
    """And exits 0."""
    shown = command("--help")
    assert shown.returncode == 0
    for name in ("run", "plan", "show", "compare", "workloads", "schema"):
        assert f" {name} " in shown.stdout


def test_help_names_things_as_a_person_types_them() -> None:
    """`SWEEP` and `OUT...` without signs around them, no type behind a flag, lists as they are written."""
    helped = {name: run(name, "--help", env={"TERMINAL_WIDTH": "160"}).stdout for name in ("run", "plan", "compare")}
    assert "raybench run [OPTIONS] SWEEP" in helped["run"].replace("root ", "raybench ")
    assert " [OPTIONS] OUT..." in helped["compare"]
    assert "{" not in "".join(helped.values())
    flags = [line for line in helped["run"].splitlines() if "--quick" in line or "--local" in line]
    assert len(flags) == 2
    assert "<" not in "".join(helped.values())
    assert "precision=[fp32,bf16]" in " ".join(helped["plan"].replace("│", " ").split())


def test_a_shell_completes_sweeps_and_outcomes() -> None:
    """The outcome behind the last comma; `ok` is no failure to accept or run again."""
    for words, found in (
        (["run", "qu"], ["quick"]), (["plan", "qu"], ["quick"]),
        (["run", "quick", "--retry", "oom"], ["oom_cuda", "oom_host"]),
        (["run", "quick", "--accept", "timeout,oom_c"], ["timeout,oom_cuda"]), (["run", "quick", "--retry", "ok"], []),
    ):  # fmt: skip
        line = " ".join(["raybench", *words])
        env = {"_RAYBENCH_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
        done = subprocess.run(
            [sys.executable, "-c", "from raybench.cli import main; main()"],
            capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **env},
        )  # fmt: skip
        assert done.stdout.split() == found


def test_version() -> None:
    """One line."""
    assert run("--version").stdout == f"raybench {__version__}\n"


@pytest.mark.parametrize(
    ("args", "absent"),
    [
        (["--help"], HEAVY), (["--version"], HEAVY), (["run", "--help"], ("torch", "ray", "pandas", "pyarrow")),
        (["plan", "SWEEP"], ("torch", "ray", "pandas", "pyarrow")), (["workloads"], ("torch", "ray", "pandas")),
        (["schema"], ("torch", "ray")), (["show", "OUT"], ("torch", "ray")), (["compare", "OUT"], ("torch", "ray")),
        (["show", "OUT", "--trial", "fff"], ("torch", "ray")),
    ],
)  # fmt: skip
def test_nothing_heavy_is_imported(args: list[str], absent: tuple[str, ...], sweep: str, out: str) -> None:
    """Each command imports only what it needs: seconds for torch and ray, half a second for pandas."""
    words = [{"SWEEP": sweep, "OUT": out}.get(word, word) for word in args]
    program = (
        "import sys\nfrom raybench.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"print([name for name in {absent!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_plan_tells_size_and_shows_20_rows(sweep: str) -> None:
    """24 trials in one group; the rest with --all."""
    shown = run("plan", sweep).stdout.replace("\u202f", " ")
    lines = shown.splitlines()
    assert lines[0] == "sweep small  How many?"
    assert lines[1] == "24 trials (24 configs) in 1 worker group of at most 1 worker"
    assert lines[-1] == "... and 4 rows more: --all shows them, --json has every column"
    assert sum("encdec 3.5m s64 b4" in line for line in lines) == 20
    assert "3 502 592" in lines[5]
    assert sum("encdec 3.5m s64 b4" in line for line in run("plan", sweep, "--all").stdout.splitlines()) == 24


def test_dry_run_is_plan(sweep: str) -> None:
    """The same words and where results would go; nothing is run."""
    args = [sweep, "--set", "precision=bf16", "--only", "seed=3", "--quick"]
    planned = run("plan", *args).stdout
    assert planned != ""
    assert run("run", *args, "--dry-run", "--out", "there").stdout == (
        f"{planned}\na run would put its results in there; nothing was started\n"
    )


def test_the_id_of_the_plan_selects_its_trial(sweep: str) -> None:
    """As `plan` prints it, `--only trial_id=` takes it."""
    (line,) = [line for line in run("plan", sweep, "--only", "seed=3", "--only", "precision=bf16").stdout.splitlines()
               if "encdec" in line]  # fmt: skip
    again = run("plan", sweep, "--only", f"trial_id={line.split()[1]}", "--json").stdout.splitlines()
    assert [json.loads(row)["config"]["seed"] for row in again] == [3]


def test_the_id_of_show_finds_its_trial(out: str) -> None:
    """As `show` prints it, `show --trial` takes it."""
    (line,) = [line for line in run("show", out).stdout.splitlines() if "timeout" in line]
    assert "made up: timeout" in run("show", out, "--trial", line.split()[0]).stdout


def test_planned_lengths_are_numbers(sweep: str) -> None:
    """Steps as such, seconds as a sweep writes them."""
    asked = ["plan", sweep, "--set", "warmup=3", "--set", "measure={seconds: 10}"]
    row = json.loads(run(*asked, "--json").stdout.splitlines()[0])
    assert (row["warmup"], row["measure"]) == (3, {"seconds": 10.0})
    shown = run(*asked).stdout
    assert "3 + 10 s" in shown


def test_plan_resolves_auto_against_this_machine(sweep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so: the cluster may be another."""
    monkeypatch.setattr("raybench.cluster.checkup.usable_cores", lambda: 6)
    monkeypatch.setattr("raybench.engine.environment.visible_gpus", lambda: ())
    shown = run("plan", sweep, "--set", "num_workers=auto", "--set", "seed=0", "--set", "precision=fp32").stdout
    assert "num_workers: auto stands for this machine's 6 CPU cores here" in shown
    assert [f"×{workers} " in shown for workers in (1, 2, 4, 6, 8)] == [True, True, True, True, False]


@pytest.mark.parametrize(
    "args",
    [
        ["plan", "SWEEP", "--json"], ["show", "OUT", "--json"], ["show", "OUT", "--trial", "fff", "--json"],
        ["compare", "OUT", "--json"], ["scaling", "OUT", "--json"], ["workloads", "--json"], ["schema", "--json"],
        ["schema", "--columns", "--json"],
    ],
)  # fmt: skip
def test_every_line_of_json_parses(args: list[str], sweep: str, out: str) -> None:
    """Nothing else is on stdout."""
    shown = run(*({"SWEEP": sweep, "OUT": out}.get(word, word) for word in args))
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert rows
    assert all(isinstance(row, dict) for row in rows)


def test_json_holds_every_row(sweep: str, out: str) -> None:
    """All 24 planned trials with their counts; all 3 rows of results."""
    planned = [json.loads(line) for line in run("plan", sweep, "--json").stdout.splitlines()]
    assert len(planned) == 24
    assert {row["parameters"] for row in planned} == {3502592}
    assert len(run("show", out, "--json").stdout.splitlines()) == 3


def test_schema_is_the_one_editors_read() -> None:
    """As a whole it is one JSON document."""
    assert json.loads(run("schema").stdout) == json.loads(run("schema", "--json").stdout)


def test_columns_are_described(out: str) -> None:
    """Each with type, unit, null rule and meaning."""
    rows = [json.loads(line) for line in run("schema", "--columns", "--json").stdout.splitlines()]
    assert {row["table"] for row in rows} == {"trials", "steps", "telemetry", "nodes"}
    (found,) = [row for row in rows if row["name"] == "step_ms_mean"]
    assert found == {
        "table": "trials", "name": "step_ms_mean", "kind": "double", "unit": "ms",
        "meaning": "mean step time of the slowest rank", "over_ranks": "", "null": "unless ok",
    }  # fmt: skip
    assert "step_ms_mean" in run("schema", "--columns").stdout


def test_workloads_are_listed_with_sizes() -> None:
    """Parameter counts of the four sizes at their default sequence length."""
    rows = [json.loads(line) for line in run("workloads", "--json").stdout.splitlines()]
    sizes = {row["preset"]: row["parameters"] for row in rows if row["workload"] == "encdec"}
    assert sizes == {"3.5m": 3527168, "53m": 52668416, "211m": 211266560, "2.9b": 2854240256}
    assert "sq16384" in run("workloads").stdout


def test_show_is_a_line_a_trial(out: str) -> None:
    """Three rows below a header and a rule."""
    lines = run("show", out).stdout.splitlines()
    assert len(lines) == 5
    assert [line.split()[1] for line in lines[2:]] == ["a", "b", "host-a"]


def test_show_one_trial(out: str) -> None:
    """By the beginning of its id."""
    assert "made up: timeout" in run("show", out, "--trial", "fff").stdout


def test_compare_prints_the_ratio(out: str) -> None:
    """b is twice as fast as a."""
    shown = run("compare", out).stdout
    assert "by cluster · baseline: a" in shown
    assert "2.00x" in shown


def test_one_cluster_is_told_the_command_that_compares(tmp_path: Path) -> None:
    """Axes that vary, and a line to paste."""
    rows = [make_trial(make_config(precision=name, num_workers=n)) for name in ("fp32", "bf16") for n in (1, 2)]
    store(tmp_path / "res", *rows)
    done = command("compare", "res", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "error: all rows have the same cluster (host-a), so there is nothing to compare with; "
        "what varies is num_workers, precision: raybench compare res --by num_workers\n"
    )


def test_what_must_be_known_stands_below_the_comparison(tmp_path: Path) -> None:
    """2 workers with 4 samples each are 8 a step, of 1 worker 4; a noisy side marks the ratio at any width."""
    rows = [make_trial(make_config(num_workers=n), sweep_order=n, warnings="noisy_steps" * (n > 1)) for n in (1, 2)]
    quick = make_config(quality="quick", num_workers=2, measure=Extent(steps=10))
    store(tmp_path / "res", *rows, make_trial(quick, sweep_order=2))
    shown = run("compare", str(tmp_path / "res"), "--by", "num_workers", env={"COLUMNS": "80"}).stdout.splitlines()
    assert "~2.00x ⚠" in "\n".join(shown)
    assert shown[-3:] == [
        "ratios marked ~ are not safe to quote (noisy, short or quick): raise measure or repeats",
        "weak scaling: 2 workers do 2x the batch of 1 in a step",
        "1 quick row left out: the work was measured in full too",
    ]


def test_scaling_says_what_more_workers_bring(tmp_path: Path) -> None:
    """1 and 2 workers, 50 ms each on 4 samples a worker: twice the throughput, in every form."""
    of_two = [make_config(num_workers=n, precision=name) for name in ("fp32", "bf16") for n in (1, 2)]
    store(tmp_path / "res", *(make_trial(config, sweep_order=order) for order, config in enumerate(of_two)))
    out = str(tmp_path / "res")
    assert "2.00x" in run("scaling", out).stdout
    assert "near-perfect" in run("scaling", out, "--baseline", "1").stdout
    assert "speed-up" in run("scaling", out, "--pivot").stdout
    assert "geometric mean" in run("scaling", out, "--averages").stdout
    rows = [json.loads(line) for line in run("scaling", out, "--json").stdout.splitlines()]
    assert [row["speedup"] for row in rows] == [1.0, 2.0, 1.0, 2.0]
    (first, _) = [json.loads(line) for line in run("scaling", out, "--averages", "--json").stdout.splitlines()]
    assert (first["shapes"], first["geometric_mean_speedup"]) == (1, 2.0)
    done = command("scaling", out, "--baseline", "4")
    assert (done.returncode, done.stderr) == (2, "error: baseline=4: not measured; there are 1, 2\n")


def test_prices_put_costs_below(tmp_path: Path, out: str) -> None:
    """a at 12 $/h, b without a price, which is told; a wrong price is a mistake with its place."""
    prices = tmp_path / "prices.yaml"
    prices.write_text("cluster:\n  a: 12\n")
    shown = run("compare", out, "--prices", str(prices)).stdout
    assert "$/1M tokens" in shown
    assert "no price for cluster b (no GPU): its cost is blank" in shown
    row = json.loads(run("compare", out, "--prices", str(prices), "--json").stdout.splitlines()[0])
    assert row["usd_per_hour"] == 12.0
    prices.write_text("cluster:\n  a: -12\n")
    done = command("scaling", out, "--prices", str(prices))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{prices}:2:6 cluster.a: must be USD an hour, above 0" in done.stderr


def test_export_says_what_it_wrote(tmp_path: Path, out: str) -> None:
    """Two files for all good trials; a form that there is not is told with those that there are."""
    to = tmp_path / "to"
    assert run("export", out, "--as", "step-csv", "--to", str(to)).stdout == f"2 files in {to}\n"
    assert (to / "benchmark_results.csv").read_text().startswith("model_size,context_length,")
    done = command("export", out, "--as", "csv", "--to", str(to))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there are bench-json, step-csv, training-metrics, run-summary" in done.stderr


def test_errors_are_one_line_and_an_exit_code(tmp_path: Path, sweep: str, out: str) -> None:
    """On stderr, without a traceback, with the class's exit code; a sweep's mistakes keep their own form."""
    for args, code, said in (
        (["show", str(tmp_path / "no")], 4, f"error: {tmp_path}/no: no such folder\n"),
        (["plan", "nosuch"], 2, "error: nosuch: neither a file nor a shipped sweep"),
        (["compare", out, "--by", "precison"], 2, 'error: by=precison: no such axis; did you mean "precision"?\n'),
        (["compare", out, "--by", "sweep"], 2, "error: all rows have the same sweep (quick)"),
        (["plan", sweep, "--set", "precison=fp32"], 2, "--set"),
        (["plan"], 2, "error: missing argument 'SWEEP'; see raybench plan --help\n"),
        (["bogus"], 2, "error: no such command 'bogus'; see raybench --help\n"),
    ):
        done = command(*args)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr.startswith(said)
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [["run"], ["compare"], ["show", "--nosuch"], ["run", "x", "--newer-than", "monday"]])
def test_bad_usage_exits_2(args: list[str]) -> None:
    """As every command line does."""
    assert run(*args).exit_code == 2


def test_an_unexpected_exception_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    """It is our mistake, and somebody must find it."""

    def fail(*_args: object, **_options: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("raybench.judge.compare.side_by_side", fail)
    with pytest.raises(ZeroDivisionError, match="ours"):
        run("compare", out)


def test_a_closed_pipe_is_quiet(sweep: str) -> None:
    """`raybench plan ... --json | head -1` prints its line and nothing else."""
    line = f"{sys.executable} -m raybench plan {sweep} --json | head -1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    assert json.loads(done.stdout)["position"] == 1


@pytest.mark.parametrize(
    "args",
    [
        ["plan", "SWEEP"], ["plan", "SWEEP", "--json"], ["show", "OUT"], ["show", "OUT", "--trial", "fff"],
        ["compare", "OUT"], ["scaling", "OUT"], ["workloads"], ["schema"], ["schema", "--columns"],
    ],
)  # fmt: skip
def test_a_reader_that_left_before_the_first_word_is_no_error(args: list[str], sweep: str, out: str) -> None:
    """Whatever part of the output meets the closed pipe; the exit code stays the command's own."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    words = [{"SWEEP": sweep, "OUT": out}.get(word, word) for word in args]
    done = subprocess.run(
        [sys.executable, "-m", "raybench", *words], stdout=write_end, stderr=subprocess.PIPE, timeout=120, check=False
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_unreadable_file_is_one_line(out: str) -> None:
    """The others are shown all the same."""
    bad = Path(out) / "raybench-v1" / "trials" / "quick" / "20260301T120000Z-0badc0de-0000.parquet"
    bad.write_bytes(b"PAR1 not really")
    done = command("show", out)
    assert done.returncode == 0
    assert done.stderr.startswith(f"warning: {bad}: ")
    assert done.stderr.count("\n") == 1
    assert len(done.stdout.splitlines()) == 5


class RunStub:
    """Stands in for the run: keeps what it was asked, answers with rows that are there."""

    def __init__(self, closed: RunClosed) -> None:
        self.closed = closed
        self.asked: dict[str, Any] = {}

    def __call__(self, sweep: str, *, observer: Observer, **options: Any) -> RunClosed:
        self.asked = {"sweep": sweep, **options}
        observer.closed(self.closed)
        return self.closed


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunStub:
    """Two workers counts of one trial are already there, on cluster a."""
    rows = [make_trial(make_config(num_workers=n), cluster="a", sweep_order=n) for n in (2, 1)]
    out = tmp_path / "out"
    store(out, *rows, make_trial(make_config(seed=9), cluster="a"), make_trial(cluster="elsewhere"))
    closed = RunClosed(
        sweep="quick", cluster="a", trial_ids=tuple(row.trial_id for row in rows), outcomes={"ok": 2}, not_run=0,
        invalid=0, exit_code=0, out=str(out), continue_command="raybench run quick",
    )  # fmt: skip
    made = RunStub(closed)
    monkeypatch.setattr("raybench.cluster.run.run_sweep", made)
    return made


def test_run_prints_the_table_of_what_it_planned_and_the_next_command(stub: RunStub) -> None:
    """Its own trials in the sweep's order, of its own cluster; no rows of others."""
    done = run("run", "quick", "--out", stub.closed.out)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "2 ok"
    assert ["×1" in lines[4], "×2" in lines[5]] == [True, True]
    assert lines[-1] == f"next:  raybench compare {stub.closed.out} --by num_workers"
    assert sum("encdec" in line for line in lines) == 2


def test_run_ends_with_the_runs_exit_code(stub: RunStub) -> None:
    """And then says how to go on."""
    stub.closed = RunClosed(**{**vars(stub.closed), "exit_code": 1, "not_run": 1})
    done = run("run", "quick")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == "to go on:  raybench run quick"


def test_a_command_is_never_wrapped(stub: RunStub) -> None:
    """Pasting what was broken at 80 columns would run something else."""
    command = "raybench run quick --only precision=bf16 --set model.dropout=0.0 --cluster some-cluster --quick"
    stub.closed = RunClosed(**{**vars(stub.closed), "exit_code": 1, "continue_command": command})
    assert f"to go on:  {command}\n" in run("run", "quick", env={"COLUMNS": "60"}).stdout


def test_a_failure_names_the_command_that_tells_why(stub: RunStub) -> None:
    """With an id that `show` finds."""
    failed = make_trial(make_config(num_workers=4), outcome="timeout", cluster="a")
    store(Path(stub.closed.out), failed)
    stub.closed = RunClosed(
        **{**vars(stub.closed), "exit_code": 1, "trial_ids": (*stub.closed.trial_ids, failed.trial_id)}
    )
    (why,) = [line for line in run("run", "quick").stdout.splitlines() if line.startswith("why:  raybench show ")]
    assert "made up: timeout" in run(*why.split()[2:]).stdout


def test_options_of_run_reach_the_run(stub: RunStub) -> None:
    """Every one, with its type."""
    words = (
        "run x.yaml --out o --local --cluster c --set a=1 --set b.c=2 --only k=v --quick --no-plugins "
        "--newer-than 2026-03-01T12:00Z --retry none --accept oom_cuda --tag image=3 --tag who=me=you --note hello "
        "--wait-for-nodes 60 --strict -v"
    )
    run(*words.split())
    assert stub.asked == {
        "sweep": "x.yaml", "out": "o", "local": True, "address": None, "cluster": "c", "overrides": ["a=1", "b.c=2"],
        "only": ["k=v"], "quick": True, "no_plugins": True, "fresh": False, "retry": "none", "accept": "oom_cuda",
        "newer_than": datetime(2026, 3, 1, 12, tzinfo=timezone.utc), "tags": {"image": "3", "who": "me=you"},
        "note": "hello", "wait_for_nodes_s": 60.0, "strict": True, "verbose": True, "take_signals": True,
    }  # fmt: skip


def test_a_tag_without_a_value_is_bad_usage(stub: RunStub) -> None:
    """Before anything is started."""
    assert run("run", "quick", "--tag", "image").exit_code == 2
    assert stub.asked == {}


def test_python_reaches_what_commands_do() -> None:
    """`raybench.load` and the others, imported when they are used."""
    from raybench.judge.compare import compare
    from raybench.results.load import load

    assert raybench.compare is compare
    assert raybench.load is load
    assert {"run", "plan", "load", "compare", "__version__"} <= set(dir(raybench))
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = raybench.nosuch


def test_import_raybench_costs_nothing() -> None:
    """Everything heavy waits for its first use."""
    program = f"import raybench, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[]\n"


def test_every_error_of_raybench_has_an_exit_code() -> None:
    """0 is for success, 130 for signals."""
    kinds = [RaybenchError, *RaybenchError.__subclasses__()]
    assert {kind.exit_code for kind in kinds} == {1, 2, 3, 4}
