"""YAML 1.2's core schema, and where things stand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybench.spec.document import core_schema, read_document
from raybench.spec.mistakes import Mistakes, Place, printable


@pytest.mark.parametrize(("text", "value"), [
    ("no", "no"), ("yes", "yes"), ("on", "on"), ("true", True), ("False", False), ("~", None), ("", None),
    ("null", None), ("1e-3", 0.001), ("1", 1), ("-7", -7), ("010", 10), ("0o10", 8), ("0x1F", 31), ("1.", 1.0),
    (".5", 0.5), ("1_000", "1_000"), ("-.inf", float("-inf")), ("2024-01-01", "2024-01-01"), ("12:30", "12:30"),
    ("3.5m", "3.5m"), ("9" * 301, "9" * 301),
])  # fmt: skip
def test_plain_scalars(text: str, value: Any) -> None:
    """As YAML 1.2.2 section 10.3 has it: no octal by a leading zero, no words for booleans, no dates."""
    found = core_schema(text)
    assert (found, type(found)) == (value, type(value))


def test_places_and_paths() -> None:
    """Lines and columns count from 1; a quoted number is text; a list's elements know its key."""
    mistakes = Mistakes()
    root = read_document(b'a: {b: "1"}\nc:\n  - 2\n', "f", mistakes)
    assert root is not None
    assert not mistakes
    assert root.plain == {"a": {"b": "1"}, "c": [2]}
    inner, element = root.items["a"].items["b"], root.items["c"].elements[0]
    assert (inner.path, inner.place, inner.key) == ("a.b", Place("f", 1, 8), Place("f", 1, 5))
    assert (element.path, element.place, element.key) == ("c[0]", Place("f", 3, 5), Place("f", 2, 1))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_told(data: bytes) -> None:
    """Whatever a file holds, it is a document or a mistake, and never another exception."""
    mistakes = Mistakes()
    assert read_document(data, "f", mistakes) is not None or mistakes


@given(st.text(alphabet="ab:-[]{},&*!%#|>'\"\n ?~1", max_size=60))
def test_any_yaml_is_read_or_told(text: str) -> None:
    """The same with text that is nearly YAML."""
    mistakes = Mistakes()
    assert read_document(text.encode(), "f", mistakes) is not None or mistakes


@given(st.text())
def test_printable(text: str) -> None:
    """No control or direction character gets through, and a long text is cut."""
    assert printable(text).isprintable()
    assert len(printable(text, at_most=60)) <= 60
