"""Reading back: whatever lies in the folder, good rows come out with the same types, and bad files by name."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raybench.errors import StoreError, UsageError
from raybench.record.column import columns
from raybench.record.trial import Trial
from raybench.results.load import load, load_steps
from raybench.results.read import UnreadableFileWarning
from raybench.results.schema import from_records, schema
from raybench.results.store import RunStore
from tests.factories import EPOCH, RUN_ID, make_node, make_steps, make_trial

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with three trials: one ok, one out of memory, one interrupted and then ok."""
    half_past = EPOCH + timedelta(minutes=30)
    failed = make_trial(config_key="b" * 16, outcome="oom_cuda", started_at=half_past)
    commit(tmp_path, make_trial(config_key="a" * 16), failed)
    commit(
        tmp_path,
        make_trial(config_key="c" * 16, outcome="interrupted"),
        make_trial(config_key="c" * 16, attempt=2),
        run_id="20260302T120000Z-00c0ffee",
    )
    return tmp_path


def commit(out: Path, *trials: Trial, run_id: str = RUN_ID) -> Path:
    """Commit trials as one run; the file of its first segment."""
    store = RunStore(out, "quick", run_id)
    for trial in trials:
        owned = make_trial(**{**vars(trial), "sweep_run_id": run_id})
        store.commit(owned, make_steps(owned), nodes=[make_node(sweep_run_id=run_id)])
    return store.files.segment("trials", 0)


def trials_folder(out: Path) -> Path:
    """Where the fixture's trials lie."""
    return out / "raybench-v1" / "trials" / "quick"


def test_latest_attempts_in_the_order_they_started(out: Path):
    """Four attempts at three trials are three rows; all four when asked."""
    rows = load(out)
    assert rows[["trial_id", "outcome", "attempt"]].to_numpy().tolist() == [
        ["a" * 16 + "-01", "ok", 1],
        ["b" * 16 + "-01", "oom_cuda", 1],
        ["c" * 16 + "-01", "ok", 2],
    ]
    assert len(load(out, latest=False)) == 4


def test_dtypes_are_nullable_and_valid_is_plain_to_use(out: Path):
    """A failed row's null leaves an integer column integer, and `df[df.valid]` works."""
    rows = load(out)
    wanted = {
        "sweep": "string", "error_rank": "Int64", "attempt": "Int64", "samples_per_s": "Float64", "valid": "boolean",
        "loss_finite": "boolean", "started_at": "datetime64[us, UTC]", "energy_j": "Float64",
    }  # fmt: skip
    assert {name: str(rows[name].dtype) for name in wanted} == wanted
    assert len(rows[rows.valid]) == 2
    assert rows["measured_samples"].isna().sum() == 1
    assert list(rows.columns) == schema("trials").names


def test_several_folders_each_form_once(out: Path, tmp_path_factory: pytest.TempPathFactory):
    """A folder, the layout folder in it, a string, a list of them: the same rows; another folder's come on top."""
    for outs in ((out,), (str(out / "raybench-v1"),), ([out, str(out)],), (out, out / "raybench-v1")):
        assert len(load(*outs)) == 3
    other = tmp_path_factory.mktemp("other")
    commit(other, make_trial(cluster="b", config_key="a" * 16))
    assert load(out, other)["cluster"].value_counts().to_dict() == {"host-a": 3, "b": 1}


def test_a_copied_folder_adds_no_row(out: Path, tmp_path_factory: pytest.TempPathFactory):
    """The same attempt found twice is one attempt."""
    copy = tmp_path_factory.mktemp("copy")
    target = copy / "raybench-v1" / "trials" / "quick"
    target.mkdir(parents=True)
    for path in trials_folder(out).iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    assert len(load(out, copy, latest=False)) == 4


def test_nothing_to_read_is_one_clear_line(tmp_path: Path):
    """No folder, no results in it, results without a row, no table of that name."""
    with pytest.raises(StoreError, match="no such folder"):
        load(tmp_path / "gone")
    with pytest.raises(StoreError, match="no raybench results under"):
        load(tmp_path)
    RunStore(tmp_path, "quick", RUN_ID)
    with pytest.raises(StoreError, match="no raybench results under"):
        load(tmp_path)
    with pytest.raises(UsageError, match="no table 'rows': there are trials, steps, telemetry, nodes"):
        load(tmp_path, table="rows")


def test_the_other_tables(out: Path):
    """Steps only of the latest attempts: 2 ok trials x 2 ranks x 25 steps; a node a run; telemetry has no row yet."""
    assert len(load(out, table="steps")) == 100
    assert set(load(out, table="steps")["trial_uid"]) <= set(load(out)["trial_uid"])
    assert len(load(out, table="nodes")) == 2
    assert load(out, table="telemetry").empty


def test_steps_of_one_trial(out: Path):
    """Rank by rank and step by step; none for one that never ran a step."""
    uid = load(out).set_index("outcome").loc["ok", "trial_uid"].iloc[0]
    steps = load_steps(out, uid)
    assert steps["rank"].tolist() == [0] * 25 + [1] * 25
    assert steps["step"].tolist() == list(range(25)) * 2
    assert load_steps(out, "0" * 32).empty


def test_files_of_an_older_version_mix_with_todays(out: Path):
    """What an older file lacks is null, with today's types and order; what a newer one adds is ignored."""
    older = from_records("trials", [make_trial(config_key="d" * 16)]).drop_columns(
        ["energy_j", "compile_cache", "note"]
    )
    newer = from_records("trials", [make_trial(config_key="e" * 16)]).append_column("added_later", pa.array([1]))
    pq.write_table(older, trials_folder(out) / "00-older.parquet")
    pq.write_table(newer, trials_folder(out) / "zz-newer.parquet")
    rows = load(out, strict=True)
    assert len(rows) == 5
    assert list(rows.columns) == schema("trials").names
    assert rows.dtypes.equals(load(out).dtypes)
    old = rows.set_index("trial_id").loc["d" * 16 + "-01"]
    assert old[["energy_j", "compile_cache", "note"]].isna().all()
    assert old["samples_per_s"] == pytest.approx(160.0)


def test_files_rewritten_by_other_tools_are_read(out: Path):
    """Polars writes large strings and no note of ours: the same rows come back."""
    (path, *_) = sorted(trials_folder(out).iterdir())
    before = load(out)
    pl.read_parquet(path).write_parquet(path)
    pd.testing.assert_frame_equal(load(out, strict=True), before)


def spoil(out: Path) -> dict[str, str]:
    """Put files that are no trials beside the good ones; what is said of each."""
    folder = trials_folder(out)
    good = next(folder.iterdir()).read_bytes()
    newer = schema("trials").with_metadata({b"raybench.schema_version": b"2"})
    table = from_records("trials", [make_trial()])
    retyped = table.set_column(table.schema.get_field_index("attempt"), "attempt", pa.array(["1"]))
    (folder / "empty.parquet").write_bytes(b"")
    (folder / "truncated.parquet").write_bytes(good[: len(good) // 2])
    (folder / "json.parquet").write_text(json.dumps({"trial": 1}))
    pq.write_table(pa.table({"a": [1]}), folder / "foreign.parquet")
    pq.write_table(from_records("steps", make_steps(make_trial())), folder / "steps.parquet")
    pq.write_table(table.cast(newer), folder / "newer.parquet")
    pq.write_table(retyped, folder / "retyped.parquet")
    return {
        "empty": "file size is 0 bytes", "truncated": "Parquet magic bytes not found", "json": "",
        "foreign": "not a trials file: it lacks trial_uid", "steps": "holds the table steps, not trials",
        "newer": "schema version 2 is newer than this raybench; upgrade it", "retyped": "attempt is string, not int64",
    }  # fmt: skip


def test_unreadable_files_are_left_out_by_name(out: Path):
    """Each bad file is one warning with its path and reason; the good rows come out whole."""
    before = load(out)
    reasons = spoil(out)
    with pytest.warns(UnreadableFileWarning) as caught:
        rows = load(out)
    pd.testing.assert_frame_equal(rows, before)
    said = {Path(str(warning.message).split(": ")[0]).stem: str(warning.message) for warning in caught}
    assert said.keys() == reasons.keys()
    assert {name: reason for name, reason in reasons.items() if reason not in said[name]} == {}


def test_strict_stops_at_an_unreadable_file(out: Path):
    """For whoever would rather have no answer than one with a gap."""
    (trials_folder(out) / "empty.parquet").touch()
    with pytest.raises(StoreError, match=r"empty\.parquet"):
        load(out, strict=True)


def test_long_text_is_cut(out: Path):
    """A text of a million characters becomes one of 4096; its neighbours stay whole."""
    commit(out, make_trial(note="x" * 1_000_000), run_id="20260303T120000Z-00c0ffee")
    lengths = load(out)["note"].str.len()
    assert lengths.max() == 4096
    assert load(out)["config"].str.endswith("}").all()


def repeated(value: object, count: int) -> pa.Array:
    """One value many times, stored once."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([value]))


COLUMNS = len(columns(Trial))
BOMBS = {
    "one text many times": (100_000, {"note": "x" * 40_000}, "decodes to more than 256 MiB"),
    "too many rows": (100_001, {}, f"100001 rows and {COLUMNS} columns are more than any run writes"),
    "too many columns": (
        1, {f"c{number}": "" for number in range(500)}, f"{COLUMNS + 500} columns are more than any run writes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_left_out_with_bounded_memory(out: Path, bomb: str):
    """A file of some kB that decodes to 4 GB costs no memory: 600 MB at most, all of pandas included."""
    count, texts, reason = BOMBS[bomb]
    base = from_records("trials", [make_trial()]).to_pylist()[0] | texts
    columns = {name: repeated(value, count) for name, value in base.items() if value is not None}
    columns |= {name: pa.nulls(count) for name, value in base.items() if value is None}
    path = trials_folder(out) / "bomb.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 2**20
    script = f"""
        import re, warnings
        from pathlib import Path
        from raybench.results.load import load
        with warnings.catch_warnings(record=True) as caught:
            rows = load({str(out)!r})
        assert len(rows) == 3, len(rows)
        print(caught[0].message)
        # Not ru_maxrss: that counts what the process that started this one held.
        print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
    """
    said, peak_kb = run_python(script).splitlines()
    assert "bomb.parquet" in said
    assert reason in said
    assert int(peak_kb) < 600 * 1024


def run_python(script: str) -> str:
    """What a script prints in a process of its own, which must end well."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_flipped_bytes_give_rows_or_a_named_file(out: Path):
    """200 files with one to eight bytes changed at random: the reader survives all, and says which it left out."""
    good = sorted(trials_folder(out).iterdir())[0].read_bytes()
    draw = random.Random(20260301)
    for number in range(200):
        spoiled = bytearray(good)
        for _ in range(draw.randint(1, 8)):
            spoiled[draw.randrange(len(spoiled))] = draw.randrange(256)
        (trials_folder(out) / f"flipped-{number:03d}.parquet").write_bytes(spoiled)
    script = f"""
        import warnings
        from raybench.results.load import load
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows = load({str(out)!r}, latest=False)
        assert len(rows) >= 4
        assert all("flipped-" in str(one.message) for one in caught)
        print(len(caught))
    """
    assert int(run_python(script)) > 100


def test_plain_pandas_duckdb_and_polars_agree_with_load(out: Path):
    """Finished runs need no raybench to be read: all four see the same attempts and figures."""
    folder = out / "raybench-v1" / "trials"
    everything = load(out, latest=False).sort_values("trial_uid")
    expected = list(zip(everything["trial_uid"], everything["samples_per_s"].fillna(-1.0), strict=True))
    plain = pd.read_parquet(folder).sort_values("trial_uid")
    assert list(zip(plain["trial_uid"], plain["samples_per_s"].fillna(-1.0), strict=True)) == expected
    assert len(plain[plain.valid]) == 2
    query = f"select trial_uid, coalesce(samples_per_s, -1.0) from '{folder}/*/*.parquet' order by trial_uid"
    assert duckdb.sql(query).fetchall() == expected
    frame = pl.read_parquet(f"{folder}/*/*.parquet").sort("trial_uid")
    assert frame.select("trial_uid", pl.col("samples_per_s").fill_null(-1.0)).rows() == expected


COMMIT_WHEN_TOLD = """
import sys
from pathlib import Path
from raybench.results.store import RunStore
from tests.factories import make_steps, make_trial

store = RunStore(Path(sys.argv[1]), "quick", sys.argv[2])
for number, _ in enumerate(sys.stdin):
    for half in "ab":
        trial = make_trial(sweep_run_id=sys.argv[2], config_key=f"{number:015x}{half}")
        store.commit(trial, make_steps(trial))
    print(number, flush=True)
"""


def test_reading_while_a_run_writes(tmp_path: Path):
    """100 times: told to commit twice, and read meanwhile by `load`, pandas and step by step: no error, no row lost."""
    command = [sys.executable, "-c", COMMIT_WHEN_TOLD, str(tmp_path), RUN_ID]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
        writer.stdout.readline()
        for told in range(1, 101):
            writer.stdin.write("go\n")
            writer.stdin.flush()
            rows = load(tmp_path, strict=True)
            plain = pd.read_parquet(tmp_path / "raybench-v1" / "trials")
            steps = load_steps(tmp_path, rows["trial_uid"].iloc[-1])
            assert 2 * told <= len(rows) <= len(plain) <= 2 * told + 2
            assert len(steps) == 50
            writer.stdout.readline()
        writer.stdin.close()
    assert len(load(tmp_path)) == 202
