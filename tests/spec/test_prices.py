"""Prices are read as strictly as sweeps: what is no price is told with its place, and nothing hostile gets through."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from raybench.errors import SweepError, UsageError
from raybench.spec.prices import PriceBook, read_prices

GOOD = """\
gpu:
  NVIDIA H200: 3.50            # USD an hour for one GPU
  Tesla V100-SXM2-32GB: 1
cluster:
  big-purple: 12.5             # USD an hour for all of it
"""


def told(tmp_path: Path, text: str) -> list[str]:
    """What is wrong with a file of that text, a line each, without the file's name."""
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(SweepError) as error:
        read_prices(path)
    return [line.replace(f"{path}:", "") for line in str(error.value).splitlines()]


def test_prices_go_by_the_driver_s_name(tmp_path: Path) -> None:
    """Capitals and the maker's name do not count; a longer name is another GPU."""
    path = tmp_path / "prices.yaml"
    path.write_text(GOOD)
    book = read_prices(path)
    assert book.usd_per_hour("a", ["NVIDIA H200"] * 8) == 28.0
    assert book.usd_per_hour("a", ["h200"]) == 3.5
    assert book.usd_per_hour("a", ["NVIDIA H200 NVL"]) is None
    assert book.usd_per_hour("a", ["V100-SXM2-32GB", "NVIDIA H200"]) == 4.5       # a mixed group: the sum
    assert book.usd_per_hour("a", ["NVIDIA H200", "NVIDIA L4"]) is None           # half a price is none
    assert book.usd_per_hour("big-purple", ["NVIDIA L4"] * 4) == 12.5             # all of it, whatever is used
    assert book.usd_per_hour("a", []) is None


def test_a_mapping_is_read_by_the_same_rules() -> None:
    """From Python; and a book stays what it is."""
    book = read_prices({"gpu": {"NVIDIA L4": 0.7}})
    assert book == PriceBook(gpu={"l4": 0.7})
    assert read_prices(book) is book
    with pytest.raises(SweepError, match=r"prices:1:\d+ gpu.NVIDIA L4: must be USD an hour, above 0"):
        read_prices({"gpu": {"NVIDIA L4": float("inf")}})
    with pytest.raises(UsageError, match="not JSON serializable"):
        read_prices({"gpu": {"NVIDIA L4": {1}}})


@pytest.mark.parametrize(("value", "shown"), [
    ("0", "0"), ("-3.5", "-3.5"), (".nan", "nan"), (".inf", "inf"), ("1e7", "10000000.0"), ("true", "true"),
    ("null", "null"), ('"3.50"', '"3.50"'), ("3,50", '"3,50"'), ("[3.5]", "a list"), ("{usd: 3.5}", "a mapping"),
    ("9" * 299, "9" * 57 + "..."),
])  # fmt: skip
def test_what_is_no_price_is_refused(tmp_path: Path, value: str, shown: str) -> None:
    """With its place: line 2, behind the name."""
    assert told(tmp_path, f"gpu:\n  NVIDIA H200: {value}\n") == [
        f"2:16 gpu.NVIDIA H200: must be USD an hour, above 0 and at most 1000000, not {shown}"
    ]


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    """In the order of the file."""
    gpus = "gpus: {NVIDIA H200: 1}\ngpu:\n  NVIDIA H200: 1\n  h200: 2\n  '!!': 3\n"
    lines = told(tmp_path, f"{gpus}cluster:\n  Big Purple: 1\n  ok: 1\n  ok: 2\n")
    assert [line.split(" ")[0] for line in lines] == ["1:1", "4:3", "5:3", "7:3", "9:3"]
    assert 'gpus: unknown key; did you mean "gpu"?' in lines[0]
    assert lines[1].endswith('gpu.h200: is the same GPU as "NVIDIA H200"')
    assert "a name is 1 to 64" in lines[3]
    assert lines[4].endswith("duplicate key; first given in line 8")


@pytest.mark.parametrize(("text", "said"), [
    ("", "the file is empty"),
    ("- 1\n", "prices are a mapping: gpu, cluster"),
    ("{}\n", "no prices: give gpu or cluster"),
    ("gpu: 3.5\n", "must be a mapping from name to USD an hour"),
    ("gpu: {}\n", "must be a mapping from name to USD an hour"),
    ("gpu: &a {NVIDIA H200: 1}\ncluster: *a\n", "anchors (&) and aliases (*) are not allowed"),
    ("gpu: !!python/object/apply:os.system [id]\n", "tags are not allowed"),
    ("gpu: {NVIDIA H200: 1\n", "not YAML"),
    ("gpu: " + "{a: " * 30 + "1" + "}" * 30, "nested deeper than 20 levels"),
    ("# " + "x" * 300_000, "over 256 kB"),
])  # fmt: skip
def test_hostile_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """By the reader of the sweep files."""
    assert any(said in line for line in told(tmp_path, text))


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    """A pipe would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    cases: list[tuple[Any, str]] = [
        (tmp_path / "no.yaml", "no such file of prices"), (tmp_path, "is no file of prices"),
        (tmp_path / "pipe", "is no file of prices"), (3.5, "not float"),
    ]  # fmt: skip
    for given, said in cases:
        with pytest.raises(UsageError, match=said):
            read_prices(given)
