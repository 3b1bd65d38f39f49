"""Results in an object store: a real server, its outages and kills in the middle of an upload."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from raybench import cli
from raybench.cluster.doctor import _storage
from raybench.errors import StoreError
from raybench.record.trial import Trial
from raybench.report.find_trial import traceback_file
from raybench.results import objects, upload
from raybench.results import store as store_module
from raybench.results.load import load, load_steps
from raybench.results.objects import ObjectPath
from raybench.results.place import place_of
from raybench.results.resume import earlier_attempts
from raybench.results.store import RunStore
from tests.factories import RUN_ID, make_config, make_node, make_steps, make_trial
from tests.results.s3 import CREDENTIALS, S3, Gate, started_s3, until

REPOSITORY = Path(__file__).parents[2]
NEXT_RUN = "20260302T120000Z-00c0ffee"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A server for all tests here, each of which uses a prefix of its own."""
    with started_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def gate(s3: S3) -> Gate:
    """A way to the server that can be shut."""
    return Gate(s3.port)


@pytest.fixture(autouse=True)
def spools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Credentials, and a folder of its own for what waits."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAYBENCH_SPOOL_DIR", str(tmp_path / "spool"))
    return tmp_path / "spool"


def waiting(spools: Path) -> list[str]:
    """Names of the files in any spool."""
    return sorted(path.name for path in spools.rglob("raybench-v1/*/*/*") if path.is_file())


def commit(store: RunStore, number: int) -> Trial:
    """Commit one made-up trial with its steps, not waiting for the store."""
    run_id = store.files.sweep_run_id
    trial = make_trial(sweep_run_id=run_id, config_key=f"{number:016x}")
    store.commit(trial, make_steps(trial), nodes=[make_node(sweep_run_id=run_id)])
    return trial


def names(place: ObjectPath) -> list[str]:
    """Every object below a place."""
    return [str(path).removeprefix(f"{place}/raybench-v1/") for path in place.below()]


def test_a_run_is_read_by_its_uri(s3: S3, spools: Path):
    """Three trials: readable as soon as each is settled; one object a table; nothing is left on this machine."""
    uri = s3.uri("whole")
    place = place_of(uri)
    store = RunStore(place, "quick", RUN_ID)
    committed = []
    for number in range(3):
        committed.append(commit(store, number).trial_uid)
        assert store.settle() == []
        assert list(load(uri, strict=True)["trial_uid"].sort_values()) == sorted(committed)
    store.write_traceback(committed[0], "Traceback: ...")
    store.finish(planned=3, committed=3)
    store.close()
    assert names(place) == [
        f"_meta/quick/{RUN_ID}/COMPLETE.json", f"_meta/quick/{RUN_ID}/log.jsonl",
        f"_meta/quick/{RUN_ID}/tracebacks/{committed[0]}.txt", f"nodes/quick/{RUN_ID}.parquet",
        f"steps/quick/{RUN_ID}-0000.parquet", f"trials/quick/{RUN_ID}-0000.parquet",
    ]  # fmt: skip
    assert waiting(spools) == []
    assert len(load(uri, f"{uri.replace('/whole?', '/whole/raybench-v1?')}", table="steps")) == 150
    assert len(load_steps(uri, committed[1])) == 50
    assert {one.trial_uid for one in earlier_attempts(place, "quick")} == set(committed)
    row = load(uri).set_index("trial_uid", drop=False).loc[committed[0]].to_dict()
    assert traceback_file([uri], row) == f"{place}/raybench-v1/_meta/quick/{RUN_ID}/tracebacks/{committed[0]}.txt"


READING = ("show {}", "compare {} --by num_workers", "scaling {}", "export {} --as bench-json --to {}")


@pytest.mark.parametrize("words", READING)
def test_reading_commands_take_a_uri(s3: S3, tmp_path: Path, words: str):
    """The same rows on one worker and on two."""
    uri = s3.uri(words.split()[0])
    store = RunStore(place_of(uri), "quick", RUN_ID)
    for workers, step_ms in ((1, 50.0), (2, 60.0)):
        store.commit(make_trial(make_config(num_workers=workers), step_ms=step_ms))
    store.close()
    done = CliRunner().invoke(cli.app, words.format(uri, tmp_path / "files").split(), env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert (done.exit_code, done.stdout != "") == (0, True), done.output


def test_closed_segments_leave_this_machine(s3: S3, spools: Path, monkeypatch: pytest.MonkeyPatch):
    """A long sweep does not fill the disk: of 5 trials in segments of 2, the last one's wait for more."""
    monkeypatch.setattr(store_module, "SEGMENT_TRIALS", 2)
    uri = s3.uri("segments")
    store = RunStore(place_of(uri), "quick", RUN_ID)
    for number in range(5):
        commit(store, number)
        store.settle()
    assert waiting(spools) == [f"{RUN_ID}-0002.parquet", f"{RUN_ID}-0002.parquet", f"{RUN_ID}.parquet"]
    store.close()
    assert len(load(uri, strict=True)) == 5


def test_a_store_that_was_away_lost_nothing(s3: S3, gate: Gate, spools: Path):
    """Refused for three trials of five: said once, waited for by none, and put when it answers again."""
    store = RunStore(place_of(s3.uri("away", gate.port)), "quick", RUN_ID)
    commit(store, 0)
    assert store.settle() == []
    gate.shut()
    commit(store, 1)
    (told,) = store.settle()
    assert "network connection" in told
    assert f"rows wait in {spools}" in told
    for number in (2, 3):
        commit(store, number)
        assert store.settle() == []      # known to be away: nobody waits
    assert len(load(s3.uri("away"))) == 1
    gate.open()
    commit(store, 4)
    store.close()
    assert store.news() == []
    rows = load(s3.uri("away"), strict=True)
    assert sorted(rows["config_key"].str[-1]) == ["0", "1", "2", "3", "4"]
    assert len(load(s3.uri("away"), table="steps")) == 250
    assert waiting(spools) == []


def test_a_store_that_stays_away(s3: S3, gate: Gate, spools: Path, monkeypatch: pytest.MonkeyPatch):
    """Exit code 4 with the spool's path, which can be read as it is; the next run puts it all, and says so."""
    monkeypatch.setattr(store_module, "END_LIMIT_S", 1.0)
    uri = s3.uri("gone", gate.port)
    store = RunStore(place_of(uri), "quick", RUN_ID)
    gate.shut()
    committed = {commit(store, number).trial_uid for number in range(3)}
    with pytest.raises(StoreError) as caught:
        store.close()
    assert caught.value.exit_code == 4
    (spool,) = spools.glob(f"*/{RUN_ID}")
    assert f"rows wait in {spool}; the next run into the same place puts them there" in str(caught.value)
    assert set(load(spool, strict=True)["trial_uid"]) == committed
    monkeypatch.setattr(objects, "_FIRST_PAUSE_S", 0.0)
    with pytest.raises(StoreError, match=f"rows wait in {spool}"):
        RunStore(place_of(uri), "quick", NEXT_RUN)
    gate.open()
    again = RunStore(place_of(uri), "quick", NEXT_RUN)
    assert again.news() == [
        f"4 files of {RUN_ID}, which had waited on this machine, were put into s3://bucket/gone"
    ]
    assert {one.trial_uid for one in earlier_attempts(place_of(uri), "quick")} == committed
    again.close()
    assert set(load(uri, strict=True)["trial_uid"]) == committed
    assert len(load(uri, table="steps")) == 150
    assert waiting(spools) == []


def test_a_run_that_is_told_to_stop_does_not_wait(s3: S3, spools: Path):
    """A stopped server takes ten seconds to be known as away; leaving takes the second it is given."""
    uri = s3.uri("left")
    store = RunStore(place_of(uri), "quick", RUN_ID)
    s3.stop()
    try:
        trial = commit(store, 0)
        started_s = time.monotonic()
        told = store.leave(1.0)
        took_s = time.monotonic() - started_s
    finally:
        s3.go_on()
    assert told is not None
    assert str(spools) in told
    assert took_s < 2.0
    with pytest.raises(StoreError, match="the run has ended"):      # its spool may be the next run's by now
        commit(store, 1)
    RunStore(place_of(uri), "quick", NEXT_RUN).close()
    assert list(load(uri, strict=True)["trial_uid"]) == [trial.trial_uid]


def test_what_the_store_refuses_is_told_at_the_start(s3: S3, monkeypatch: pytest.MonkeyPatch):
    """No such bucket, nobody there: one line with the cure, before anything runs."""
    monkeypatch.setattr(objects, "_FIRST_PAUSE_S", 0.0)
    for uri, told in (
        (s3.uri("x").replace("//bucket", "//another"), r"no such bucket .*; make the bucket, or name another"),
        (s3.uri("x", 1), r"network connection .*; see that the store's endpoint is right"),
    ):
        with pytest.raises(StoreError, match=told):
            RunStore(place_of(uri), "quick", RUN_ID)


def test_the_doctor_tries_the_store(s3: S3, monkeypatch: pytest.MonkeyPatch):
    """It writes, lists and removes; what cannot be written is a finding with its cure."""
    place = place_of(s3.uri("doctor"))
    assert isinstance(place, ObjectPath)
    assert (list(_storage(place)), place.below()) == ([], [])
    (found,) = _storage(place_of(s3.uri("x").replace("//bucket", "//another")))
    assert (found.level, found.cure) == ("error", "make the bucket, or name another")


def test_reading_from_a_store_that_is_away_is_an_error(s3: S3, gate: Gate, monkeypatch: pytest.MonkeyPatch):
    """Never fewer rows with a warning: a sweep would run again what is done."""
    monkeypatch.setattr(objects, "_FIRST_PAUSE_S", 0.0)
    store = RunStore(place_of(s3.uri("read", gate.port)), "quick", RUN_ID)
    commit(store, 0)
    store.close()
    assert len(load(s3.uri("read", gate.port))) == 1
    gate.shut()
    with pytest.raises(StoreError, match=r"cannot list s3://bucket/read: network connection"):
        load(s3.uri("read", gate.port))
    with pytest.raises(StoreError, match="no raybench results under s3://bucket/nothing"):
        load(s3.uri("nothing"))


def test_a_late_arrival_is_put_right(s3: S3, gate: Gate, monkeypatch: pytest.MonkeyPatch):
    """A try that failed reaches the server after the one that did not, with fewer rows: the end sees and mends it."""
    monkeypatch.setattr(upload, "FIRST_PAUSE_S", 0.0)
    store = RunStore(place_of(s3.uri("late", gate.port)), "quick", RUN_ID)
    commit(store, 0)
    store.settle()
    target = place_of(s3.uri("late")) / "raybench-v1" / "steps" / "quick" / f"{RUN_ID}-0000.parquet"
    assert isinstance(target, ObjectPath)
    older = target.read_bytes()
    gate.shut()
    commit(store, 1)
    until(lambda: store.news() != [])      # steps go first, so it was they
    gate.open()
    until(lambda: len(load(s3.uri("late"))) == 2)
    target.write_bytes(older)
    store.close()
    assert len(load(s3.uri("late"), table="steps")) == 100


COMMIT_FOR_EVER = """
import sys
from datetime import datetime, timezone
from raybench.results.layout import new_run_id
from raybench.results.place import place_of
from raybench.results.store import RunStore
from tests.factories import make_config, make_node, make_steps, make_trial

store = RunStore(place_of(sys.argv[1]), "quick", new_run_id(datetime.now(timezone.utc)))
print("open", flush=True)
for number in range(int(sys.argv[2])):
    trial = make_trial(sweep_run_id=store.files.sweep_run_id, cluster=sys.argv[3], config_key=f"{number:016x}")
    store.commit(trial, make_steps(trial), nodes=[make_node(sweep_run_id=store.files.sweep_run_id)])
    print(trial.trial_uid, flush=True)
    store.settle()
store.close()
"""


def start_writer(uri: str, count: int, cluster: str = "a") -> subprocess.Popen[str]:
    """A process that commits `count` trials one after another and prints each uid once it is committed."""
    command = [sys.executable, "-c", COMMIT_FOR_EVER, uri, str(count), cluster]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, env=os.environ)


def check_whole(place: ObjectPath) -> None:
    """Every object that is listed can be read to its end."""
    for path in place.below():
        data = path.read_bytes()
        if path.name.endswith(".parquet"):
            assert pq.read_table(io.BytesIO(data)).num_rows > 0


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_killed_in_the_middle_of_an_upload(s3: S3, gate: Gate, spools: Path, kills: int):
    """SIGKILL after a varying number of bytes went to the server: no partial object, and nothing committed is lost."""
    prefix = f"killed-{kills}"
    place = place_of(s3.uri(prefix))
    assert isinstance(place, ObjectPath)
    said: list[str] = []
    for kill in range(kills):
        gate.hold_after(None)
        writer = start_writer(s3.uri(prefix, gate.port), 1_000_000)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        said += [writer.stdout.readline().strip() for _ in range(1 + kill % 3)]
        gate.hold_after(2_000 + kill * 7_919 % 60_000)      # a commit sends some 60 kB
        assert gate.holding.wait(300)
        writer.kill()
        said += writer.stdout.read().split()
        writer.wait()
        writer.stdout.close()
        gate.release()
        check_whole(place)
    assert waiting(spools) != []
    gate.hold_after(None)
    RunStore(place_of(s3.uri(prefix, gate.port)), "quick", NEXT_RUN).close()
    committed = earlier_attempts(place, "quick")
    assert set(said) <= {one.trial_uid for one in committed}
    assert {len(load_steps(s3.uri(prefix), one.trial_uid)) for one in committed} == {50}
    assert waiting(spools) == []


def test_two_runs_into_one_prefix(s3: S3):
    """Two processes, the same trials under two cluster names: 40 rows, in objects of their own."""
    writers = [start_writer(s3.uri("both"), 20, cluster) for cluster in ("a", "b")]
    assert [len(writer.communicate()[0].split()) for writer in writers] == [21, 21]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert load(s3.uri("both"), strict=True).groupby("cluster").size().to_dict() == {"a": 20, "b": 20}


@pytest.mark.soak
def test_a_store_stopped_for_half_a_minute(s3: S3, spools: Path):
    """The server takes what it is sent and answers nothing for 30 s, then all at once: nothing is lost."""
    writer = start_writer(s3.uri("stopped"), 60)
    assert writer.stdout is not None
    said = [writer.stdout.readline().strip() for _ in range(6)][1:]
    s3.stop()
    time.sleep(30.0)      # the outage itself
    s3.go_on()
    said += writer.communicate(timeout=600)[0].split()
    assert writer.returncode == 0
    assert len(said) == 60
    rows, steps = load(s3.uri("stopped"), strict=True), load(s3.uri("stopped"), table="steps")
    assert set(rows["trial_uid"]) == set(said)
    assert len(steps) == 60 * 50
    assert waiting(spools) == []
