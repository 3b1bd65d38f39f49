"""What was committed is never lost and never half there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from raybench.errors import StoreError
from raybench.record.rank import RankSteps
from raybench.record.trial import Trial
from raybench.results import store as store_module
from raybench.results.atomic import LEFTOVER_AGE_S, remove_leftovers
from raybench.results.load import load
from raybench.results.store import SEGMENT_TRIALS, RunStore
from tests.factories import RUN_ID, make_node, make_steps, make_trial

REPOSITORY = Path(__file__).parents[2]


def names(root: Path, table: str) -> list[str]:
    """Everything that lies in a table's folder, temporary files too."""
    return sorted(path.name for path in (root / "raybench-v1" / table).rglob("*") if path.is_file())


def uids(root: Path, table: str = "trials") -> list[str]:
    """The trials that have rows in a table, each once, in the order of files and rows."""
    files = sorted((root / "raybench-v1" / table).rglob("*.parquet"))
    found = [uid for file in files for uid in pq.read_table(file, partitioning=None)["trial_uid"].to_pylist()]
    return list(dict.fromkeys(found))


def commit(store: RunStore, **overrides: object) -> Trial:
    """Commit one made-up trial of the store's run with its steps."""
    trial = make_trial(sweep=store.files.sweep, sweep_run_id=store.files.sweep_run_id, **overrides)
    store.commit(trial, make_steps(trial) if trial.outcome == "ok" else ())
    return trial


def test_each_commit_is_readable_at_once_and_adds_no_file(tmp_path: Path):
    """Three commits rewrite one segment a table; rows keep their order; 0644 for others to read."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    committed = []
    for _ in range(3):
        committed.append(commit(store).trial_uid)
        assert uids(tmp_path) == uids(tmp_path, "steps") == committed
    assert names(tmp_path, "trials") == names(tmp_path, "steps") == [f"{RUN_ID}-0000.parquet"]
    assert stat.S_IMODE(store.files.segment("trials", 0).stat().st_mode) == 0o644


def test_a_segment_closes_at_64_trials(tmp_path: Path):
    """65 commits are a segment of 64 and one of 1, and the closed one is not touched again."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    for number in range(SEGMENT_TRIALS):
        commit(store, outcome="timeout" if number else "ok")
    closed = store.files.segment("trials", 0).stat().st_mtime_ns
    commit(store)
    rows = [pq.read_metadata(store.files.segment("trials", number)).num_rows for number in (0, 1)]
    assert rows == [64, 1]
    assert store.files.segment("trials", 0).stat().st_mtime_ns == closed
    # Steps carry the number of their trials' segment: 50 rows of the first trial, 50 of the last.
    assert [pq.read_metadata(store.files.segment("steps", number)).num_rows for number in (0, 1)] == [50, 50]


def test_a_segment_closes_when_a_file_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With the size lowered to one byte every commit closes its segment."""
    monkeypatch.setattr(store_module, "SEGMENT_BYTES", 1)
    store = RunStore(tmp_path, "quick", RUN_ID)
    commit(store)
    commit(store)
    assert names(tmp_path, "trials") == [f"{RUN_ID}-0000.parquet", f"{RUN_ID}-0001.parquet"]


def test_steps_may_come_as_the_ranks_measured_them(tmp_path: Path):
    """Two ranks of three steps are six rows, without a record for each."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    trial = make_trial()
    ranks = RankSteps(
        is_warmup=(True, False, False), start_s=(0.0, 0.1, 0.2), step_ms=(100.0, 99.0, 101.0), epoch=(0, 0, None),
        host_step_ms=(100.0, 99.0, 101.0), data_wait_ms=(1.0, 1.0, 1.0), loss=(9.0, 8.0, None),
        **dict.fromkeys(
            ("forward_ms", "backward_ms", "optimizer_ms", "compute_ms", "device_gap_ms"), (None, None, 2.0)
        ),
    )  # fmt: skip
    store.commit(trial, {0: ranks, 1: ranks})
    rows = pq.read_table(store.files.segment("steps", 0), partitioning=None).to_pylist()
    assert [(row["rank"], row["step"], row["step_ms"], row["loss"]) for row in rows] == [
        (rank, step, step_ms, loss)
        for rank in (0, 1)
        for step, step_ms, loss in ((0, 100.0, 9.0), (1, 99.0, 8.0), (2, 101.0, None))
    ]


def test_a_node_is_written_once_and_again_when_its_facts_change(tmp_path: Path):
    """One row a `node_key`, however often it is seen."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    for key in ("a" * 16, "a" * 16, "b" * 16):
        store.commit(make_trial(), nodes=[make_node(node_key=key)])
    assert pq.read_table(store.files.nodes, partitioning=None)["node_key"].to_pylist() == ["a" * 16, "b" * 16]


def test_threads_commit_side_by_side(tmp_path: Path):
    """A signal's thread commits beside the driver's: no row is lost, and no file half written."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    threads = [threading.Thread(target=lambda: [commit(store) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(uids(tmp_path)) == 40
    assert set(uids(tmp_path, "steps")) == set(uids(tmp_path))


def test_meta_keeps_log_texts_and_tracebacks(tmp_path: Path):
    """One JSON object a line in the log; texts as they are; a note at the end."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    store.append_log({"event": "trial_started", "trial_id": "a\nb"})
    store.append_log({"event": "trial_started", "trial_id": "é"})
    events = [json.loads(line) for line in store.files.log.read_text().splitlines()]
    assert [event["trial_id"] for event in events] == ["a\nb", "é"]
    assert all(event["at"].endswith("+00:00") for event in events)
    assert store.write_meta("sweep.yaml", "name: quick\n").read_text() == "name: quick\n"
    assert store.write_traceback("a" * 32, "lone surrogate \ud800").read_text() == "lone surrogate \\ud800"
    store.finish(planned=16, committed=15)
    note = json.loads((store.meta / "COMPLETE.json").read_text())
    assert (note["planned"], note["committed"]) == (16, 15)


def test_a_link_planted_at_the_temporary_name_is_refused(tmp_path: Path):
    """In a shared folder somebody's link must not decide what is overwritten."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    first = commit(store)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with seen_parts(store) as parts:
        commit(store)
    parts["trials"].symlink_to(victim)
    with pytest.raises(StoreError, match="File exists; something else made it"):
        commit(store)
    assert victim.read_text() == "precious"
    assert first.trial_uid in uids(tmp_path)


@contextmanager
def seen_parts(store: RunStore) -> Iterator[dict[str, Path]]:
    """The temporary names that a commit uses, by table."""
    found: dict[str, Path] = {}
    replace = os.replace

    def remember(source: Path, target: Path) -> None:
        found[target.parent.parent.name] = source
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", remember)
        yield found


def test_temporary_names_are_hidden_from_every_reader(tmp_path: Path):
    """Leading underscore for pandas, no `.parquet` at the end for DuckDB and Polars; private until it is whole."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    with seen_parts(store) as parts:
        commit(store)
    assert all(part.name.startswith("_") and part.suffix == ".part" for part in parts.values())
    assert list(parts) == ["steps", "trials"]  # a row is visible last: it implies the rest


def test_old_leftovers_of_this_host_are_removed(tmp_path: Path):
    """After a day; not younger ones, not another host's, not finished files."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    with seen_parts(store) as parts:
        commit(store)
    part = parts["trials"]
    other = part.with_name("_x.parquet.another-host.part")
    for path in (part, other):
        path.touch()
    now_s = part.stat().st_mtime
    remove_leftovers(store.files.root, now_s + LEFTOVER_AGE_S - 60)
    assert part.exists()
    remove_leftovers(store.files.root, now_s + LEFTOVER_AGE_S + 60)
    assert names(tmp_path, "trials") == [f"{RUN_ID}-0000.parquet", other.name]


def test_out_that_is_a_file_is_one_clear_line(tmp_path: Path):
    """Said at the start, before any trial runs."""
    out = tmp_path / "results"
    out.touch()
    with pytest.raises(StoreError, match=r"cannot write .*Not a directory; a file is in the way: choose .* --out"):
        RunStore(out, "quick", RUN_ID)


def test_what_does_not_read_back_is_not_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file cut on its way to disk is found before it replaces the good one."""
    store = RunStore(tmp_path, "quick", RUN_ID)
    first = commit(store)
    monkeypatch.setattr("raybench.results.atomic._write_all", lambda descriptor, data: os.write(descriptor, data[:-20]))
    with pytest.raises(StoreError, match="does not read back"):
        commit(store)
    assert uids(tmp_path) == [first.trial_uid]
    assert names(tmp_path, "steps") == [f"{RUN_ID}-0000.parquet"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, which only root can make."""
    mount = shutil.which("mount")
    place = tmp_path / "disk"
    place.mkdir()
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small file system here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_told_and_leaves_nothing_partial(small_disk: Path):
    """The rows before stay; nothing half written is visible or left; with space again the run goes on."""
    store = RunStore(small_disk, "quick", RUN_ID)
    before = [commit(store).trial_uid for _ in range(3)]
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(bytes(2**20))
    with pytest.raises(StoreError, match=r"cannot write .*No space left on device; free some space"):
        commit(store)
    assert uids(small_disk) == before
    assert [name for name in names(small_disk, ".") if name.endswith(".part")] == []
    filler.unlink()
    after = commit(store).trial_uid
    assert uids(small_disk) == uids(small_disk, "steps") == [*before, after]


def test_a_read_only_folder_is_told(small_disk: Path):
    """Mounted read-only in the middle of a run: one line, and what was committed can still be read."""
    store = RunStore(small_disk, "quick", RUN_ID)
    before = commit(store).trial_uid
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for write in (lambda: commit(store), lambda: store.append_log({"event": "x"}), lambda: store.finish(1, 1)):
        with pytest.raises(StoreError, match=r"Read-only file system; choose a folder that may be written"):
            write()
    with pytest.raises(StoreError, match="Read-only file system"):
        RunStore(small_disk / "new", "quick", RUN_ID)
    assert uids(small_disk) == [before]


COMMIT_FOR_EVER = """
import sys
from datetime import datetime, timezone
from pathlib import Path
from raybench.results.layout import new_run_id
from raybench.results.store import RunStore
from tests.factories import make_node, make_steps, make_trial

store = RunStore(Path(sys.argv[1]), "quick", new_run_id(datetime.now(timezone.utc)))
for number in range(int(sys.argv[2])):
    trial = make_trial(sweep_run_id=store.files.sweep_run_id, cluster=sys.argv[3], config_key=f"{number:016x}")
    store.append_log({"event": "trial_started", "trial_uid": trial.trial_uid})
    store.commit(trial, make_steps(trial), nodes=[make_node(sweep_run_id=store.files.sweep_run_id)])
    print(trial.trial_uid, flush=True)
"""


def start_writer(out: Path, count: int, cluster: str = "a") -> subprocess.Popen[str]:
    """A process that commits `count` trials one after another and prints each uid once it is committed."""
    command = [sys.executable, "-c", COMMIT_FOR_EVER, str(out), str(count), cluster]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


def test_killed_at_any_moment_nothing_committed_is_lost(tmp_path: Path):
    """20 SIGKILLs while committing: every file opens, every row said to be committed is there with all its steps."""
    said: list[str] = []
    for kill in range(20):
        writer = start_writer(tmp_path, 1_000_000)
        assert writer.stdout is not None
        # Killed after a few commits and then a varying bit of the next: the moments spread over the whole protocol.
        said += [writer.stdout.readline().strip() for _ in range(1 + kill % 3)]
        spin(kill * 500_000)
        writer.send_signal(signal.SIGKILL)
        said += writer.stdout.read().split()
        writer.wait()
        writer.stdout.close()
    visible = sorted((tmp_path / "raybench-v1").glob("[a-z]*/*/*.parquet"))
    step_files = [path for path in visible if "steps" in path.parts]
    steps = [uid for path in step_files for uid in pq.read_table(path, partitioning=None)["trial_uid"].to_pylist()]
    committed = uids(tmp_path)
    assert len(visible) >= 40
    assert all(pq.read_metadata(path).num_rows for path in visible)
    assert set(said) <= set(committed)
    assert {uid: steps.count(uid) for uid in committed} == dict.fromkeys(committed, 50)


def spin(nanoseconds: int) -> None:
    """Let some time pass without giving the processor away, which on a busy machine could take much longer."""
    end = time.perf_counter_ns() + nanoseconds
    while time.perf_counter_ns() < end:
        pass


def test_two_runs_write_into_one_folder(tmp_path: Path):
    """Two processes, the same trials under two cluster names: 100 rows, in files of their own."""
    writers = [start_writer(tmp_path, 50, cluster) for cluster in ("a", "b")]
    assert [len(writer.communicate()[0].split()) for writer in writers] == [50, 50]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert load(tmp_path, strict=True).groupby("cluster").size().to_dict() == {"a": 50, "b": 50}
    assert len(names(tmp_path, "trials")) == 2
