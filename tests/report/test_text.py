"""Text from outside prints literally."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from raybench.report.text import cell, literal, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;x", "]0;x"), ("\x1b[31mred\x1b[0m", "red"), ("[red]bold[/red]", "[red]bold[/red]"),
        ("a\nb\tc", "a b c"), ("a\rb\x00\x7f", "a b"), ("\u202eabc", "abc"), ("\x9b31mx", "31mx"), (" x ", "x"),
    ],
)  # fmt: skip
def test_control_characters_go_and_brackets_stay(text: str, shown: str) -> None:
    """Nothing left can move a cursor, set a title, or turn the reading direction."""
    assert literal(text) == shown


def test_lines_stay_where_lines_are_wanted() -> None:
    """An error's text may have several."""
    assert literal("a\r\nb\x1b[1m", lines=True) == "a\nb"


def test_rich_looks_for_no_markup_in_a_cell() -> None:
    """What is printed is what was stored."""
    file = io.StringIO()
    Console(file=file, width=40, force_terminal=False).print(cell("[red]x[/red] \x1b]0;y"))
    assert file.getvalue() == "[red]x[/red] ]0;y\n"


def test_long_text_ends_in_an_ellipsis() -> None:
    """At most the width."""
    assert (shortened("abcdef", 4), shortened("abc", 4), shortened("ab cd", 4)) == ("abc…", "abc", "ab…")
