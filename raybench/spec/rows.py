"""Work that is split over the workers by rows: what does not divide is refused, with the nearest that does."""

from __future__ import annotations

from collections.abc import Iterable


def rows_divide(rows: int, workers: int) -> Iterable[str]:
    """A sentence for a `Family`'s rule where the workers would not all have the same number of rows."""
    if rows % workers:
        yield f"model: {rows} rows do not divide over {workers} workers; {near(rows, workers)} do"


def near(number: int, divisor: int) -> str:
    """The multiples of `divisor` on both sides of a number between them: `1023 and 1026`."""
    below = number - number % divisor
    return f"{below} and {below + divisor}" if below else str(divisor)
