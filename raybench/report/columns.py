"""A table as data: header, key, formatter. Rendering knows nothing of what the columns are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from raybench.report.numbers import is_null
from raybench.report.text import NULL, literal, shortened

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
GAP = 2       # cells between columns: one of padding, one that the box draws
ALWAYS = 0


def as_text(value: Any) -> str:
    """Any value as its `str`, on one line."""
    return NULL if is_null(value) else literal(str(value))


@dataclass(frozen=True)
class Shown:
    """One column as shown: `show` makes a cell of the value at `key` (of the row for `of_row`); `header` has the unit.

    `priority` `ALWAYS` never goes; where a table is too wide the highest goes first. A column of words may say with
    `least` to how many characters its cells may be shortened instead. `style` colours a cell by its row. A column of
    which every cell is empty is left out; `if_varied`: one whose cells are all equal, too. `spare` ones go where even
    shortened words do not fit: no cell is cut by the terminal. `wraps`: its words go on below instead.
    """

    header: str
    key: str
    show: Callable[[Any], str] = as_text
    align: Literal["left", "right"] = "right"
    priority: int = ALWAYS
    style: Callable[[Row], str] | None = None
    of_row: bool = False
    if_varied: bool = False
    least: int | None = None
    spare: bool = False
    wraps: bool = False

    def text(self, row: Row) -> str:
        """The cell of a row."""
        return literal(self.show(row if self.of_row else row.get(self.key)))


@dataclass(frozen=True)
class Filled:
    """A column with its cells."""

    column: Shown
    cells: tuple[str, ...]
    wrapped_to: int | None = None

    @property
    def width(self) -> int:
        """Terminal cells it takes."""
        return self.wrapped_to or max(map(cell_len, (self.column.header, *self.cells)))

    @property
    def shortest(self) -> int:
        """Terminal cells it takes when its words are shortened."""
        return self.width if self.column.least is None else min(self.width, self.column.least)

    @property
    def wanted(self) -> int:
        """Terminal cells that other columns make room for: what must stay should also stay whole."""
        return self.width if self.column.priority == ALWAYS and not self.column.wraps else self.shortest

    def shortened_by(self, cells: int) -> Filled:
        """The same in fewer terminal cells."""
        if self.column.wraps:
            return replace(self, wrapped_to=self.width - cells)
        return replace(self, cells=tuple(shortened(text, self.width - cells) for text in self.cells))

    @property
    def says_something(self) -> bool:
        """Whether a reader would miss it."""
        if self.column.priority == ALWAYS and not self.column.if_varied:
            return True
        different = set(self.cells) - {NULL, ""}
        return len(different) > (1 if self.column.if_varied else 0)


def table(columns: Sequence[Shown], rows: Sequence[Row], width: int) -> Table:
    """The rows as a rich table of at most `width` cells: words are shortened, then columns go; no figure is cut."""
    fitting = fit(filled_with(columns, rows), width)
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0), show_edge=False, header_style="bold")
    for filled in fitting:
        shown = filled.column
        drawn.add_column(Text(shown.header), justify=shown.align, no_wrap=not shown.wraps, width=filled.width)
    for index, row in enumerate(rows):
        drawn.add_row(*(_cell(filled, index, row) for filled in fitting))
    return drawn


def filled_with(columns: Iterable[Shown], rows: Sequence[Row]) -> list[Filled]:
    """The columns with their cells."""
    return [Filled(column, tuple(column.text(row) for row in rows)) for column in columns]


def fit(filled: Iterable[Filled], width: int) -> list[Filled]:
    """The columns that say something, less the least important ones where they do not fit."""
    kept = [column for column in filled if column.says_something]
    while sum(column.wanted + GAP for column in kept) - GAP > width:
        last = max(kept, key=lambda column: column.column.priority)
        if last.column.priority == ALWAYS:
            break
        kept.remove(last)
    while sum(column.shortest + GAP for column in kept) - GAP > width:
        spare = [column for column in kept if column.column.spare]
        if not spare:
            break
        kept.remove(spare[-1])
    return _shortened(kept, width)


def _shortened(kept: Sequence[Filled], width: int) -> list[Filled]:
    """The last columns give way first: what is on the left says what a row is about."""
    too_much = sum(column.width + GAP for column in kept) - GAP - width
    given: list[Filled] = []
    for column in reversed(kept):
        gives = max(min(too_much, column.width - column.shortest), 0)
        given.append(column.shortened_by(gives) if gives else column)
        too_much -= gives
    return given[::-1]


def _cell(filled: Filled, index: int, row: Row) -> Text:
    style = filled.column.style(row) if filled.column.style else ""
    return Text(filled.cells[index], style=style)


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, each a mapping from column to value."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
