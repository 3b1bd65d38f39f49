"""What is wrong with a sweep and where: mistakes are collected, so that all of them are told at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from raybench.errors import SweepError
from raybench.spec.synonyms import ours, quoted

MAX_TOLD = 50
"""A file that is wrong a thousand times is wrong in a few ways."""
LIKENESS = 0.75
"""One slip in a short word passes; `batch_size` is no `vocab_size`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written. Lines and columns count from 1; `line` 0 means that there are none."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Mistake:
    """One line for the user: `file:line:column path: what`."""

    place: Place
    path: str
    what: str

    def __str__(self) -> str:
        told_by_place = self.place.file.startswith(f"--set {self.path}=")
        path = f" {printable(self.path)}" if self.path and not told_by_place else ""
        return f"{printable(str(self.place))}{path}: {self.what}"


class Mistakes:
    """Mistakes as they are found; each is told once."""

    def __init__(self) -> None:
        self._found: dict[Mistake, None] = {}

    def add(self, place: Place, path: str, what: str) -> None:
        self._found[Mistake(place, path, what)] = None

    def extend(self, mistakes: Iterable[Mistake]) -> None:
        self._found.update(dict.fromkeys(mistakes))

    def __iter__(self) -> Iterator[Mistake]:
        return iter(self._found)

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def are_plenty(self) -> bool:
        """Whether there are more than will be told, so that looking for others is idle."""
        return len(self._found) > MAX_TOLD

    def raise_if_any(self) -> None:
        """Raise a `SweepError` of one line a mistake, in the order of the file."""
        if not self._found:
            return
        told = sorted(self._found, key=lambda mistake: (mistake.place.line, mistake.place.column))
        lines = [str(mistake) for mistake in told[:MAX_TOLD]]
        if len(told) > MAX_TOLD:
            lines.append(f"... and {len(told) - MAX_TOLD} more")
        raise SweepError("\n".join(lines))


def nearest(wrong: str, known: Iterable[str], *, likeness: float = LIKENESS) -> str | None:
    """The known word that was probably meant, at least so much like it (0 to 1)."""
    return _nearest(wrong.lower()[:100], tuple(known), likeness)


@lru_cache(maxsize=256)
def _nearest(wrong: str, known: tuple[str, ...], likeness: float) -> str | None:
    return next(iter(get_close_matches(wrong, known, n=1, cutoff=likeness)), None)


def meant(wrong: str, known: Iterable[str], *, likeness: float = LIKENESS) -> tuple[str, ...]:
    """The known words that were probably meant: what another tool's word stands for, else the nearest in spelling."""
    known = tuple(known)
    near = ours(wrong, known) or (nearest(wrong, known, likeness=likeness),)
    return tuple(word for word in near if word is not None)


def instead(wrong: str, known: Iterable[str]) -> str:
    """`; did you mean "..."?`, or what there is where that is a short list, or nothing."""
    known = list(known)
    if words := meant(wrong, known):
        return f"; did you mean {quoted(words)}?"
    return f"; known: {', '.join(known)}" if 0 < len(known) <= 12 else ""


def either(words: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def shown(value: Any) -> str:
    """A value as its writer would recognise it, in at most 60 characters."""
    if isinstance(value, (dict, list, tuple)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'"{printable(value, at_most=60)}"'
    return printable(str(value), at_most=60)


def printable(text: str, *, at_most: int = 200) -> str:
    """The text with control and direction characters escaped, so that it prints literally, cut to `at_most`."""
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return safe if len(safe) <= at_most else f"{safe[: at_most - 3]}..."
