"""Names and places of files: users' scripts point at them for years."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from raybench.errors import StoreError, UsageError
from raybench.results.layout import RunFiles, check_name, find_root, new_run_id, table_files

RUN = "20260301T120000Z-00c0ffee"
FILES = RunFiles(Path("out/raybench-v1"), "quick", RUN)


def test_places_are_those_of_the_documentation():
    """Each table's file, written out."""
    assert FILES.segment("trials", 3) == Path(f"out/raybench-v1/trials/quick/{RUN}-0003.parquet")
    assert FILES.segment("steps", 12345) == Path(f"out/raybench-v1/steps/quick/{RUN}-12345.parquet")
    assert FILES.nodes == Path(f"out/raybench-v1/nodes/quick/{RUN}.parquet")
    assert FILES.log == Path(f"out/raybench-v1/_meta/quick/{RUN}/log.jsonl")
    assert FILES.traceback("a" * 32) == Path(f"out/raybench-v1/_meta/quick/{RUN}/tracebacks/{'a' * 32}.txt")


def test_run_id_is_a_utc_stamp_and_eight_hex():
    """14:00 two hours east of Greenwich is 12:00; two ids of one moment differ."""
    now = datetime(2026, 3, 1, 14, 0, 0, tzinfo=timezone(timedelta(hours=2)))
    first, second = new_run_id(now), new_run_id(now)
    assert first.startswith("20260301T120000Z-")
    assert first != second
    assert RunFiles(Path("x"), "quick", first).sweep_run_id == first


@pytest.mark.parametrize("name", ["a", "0", "quick", "a.b-c_d", "x" * 64])
def test_usable_names(name: str):
    """Letters, digits and `._-`, 1 to 64 of them."""
    assert check_name("sweep", name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 65,
        "Quick",
        "_x",
        ".x",
        "-x",
        "..",
        "a..b",
        "../x",
        "a/b",
        "/etc/x",
        "C:\\x",
        "a\0",
        "a\n",
        "%2e%2e",
        "é",
        "\u202ea",
    ],
)
def test_names_that_could_reach_another_place_are_refused(name: str):
    """Separators, dots in a row, control and look-alike characters; the message says what is named."""
    with pytest.raises(UsageError, match="sweep"):
        RunFiles(Path("out"), name, RUN)


def test_root_is_found_from_both_folders(tmp_path: Path):
    """`out` may be the folder that holds `raybench-v1` or that folder."""
    root = tmp_path / "raybench-v1"
    root.mkdir()
    assert find_root(tmp_path) == root
    assert find_root(root) == root


def test_what_holds_no_results_says_so(tmp_path: Path):
    """Nothing there, no such folder, and a file: three different lines."""
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path, "no raybench results under"),
        (tmp_path / "gone", "no such folder"),
        (tmp_path / "file", "not a folder"),
    ):
        with pytest.raises(StoreError, match=reason):
            find_root(path)


def test_a_newer_layout_is_refused(tmp_path: Path):
    """Reading only what an old raybench knows would silently drop the newer half."""
    (tmp_path / "raybench-v1").mkdir()
    (tmp_path / "raybench-v2").mkdir()
    for path in (tmp_path, tmp_path / "raybench-v2"):
        with pytest.raises(StoreError, match=r"raybench-v2: written by a newer raybench.*upgrade"):
            find_root(path)


def test_temporary_and_foreign_files_are_no_tables(tmp_path: Path):
    """Only `*.parquet` without a leading underscore, of all sweeps or one."""
    for name in ("a/1.parquet", "a/_2.parquet.host.part", "a/_3.parquet", "a/notes.txt", "b/4.parquet"):
        path = tmp_path / "trials" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert [path.name for path in table_files(tmp_path, "trials")] == ["1.parquet", "4.parquet"]
    assert [path.name for path in table_files(tmp_path, "trials", "b")] == ["4.parquet"]
