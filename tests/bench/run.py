"""What raybench itself costs, as ratios measured side by side in one run: `make bench` prints one table.

    python -m tests.bench.run [overhead] [bare] [fresh] [commands] [sources] [keeping_up] [ray_data] [attribution]

Every promise is a row with its bound; the exit code is 1 when one is not kept.
"""

from __future__ import annotations

import sys

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tests.bench import attribution, commands, keeping_up, overhead, ray_data, sources, step_time
from tests.bench.promise import Promise

PARTS = {
    "overhead": overhead.measure,
    "bare": step_time.against_bare,
    "fresh": step_time.warm_against_fresh,
    "commands": commands.measure,
    "sources": sources.measure,
    "keeping_up": keeping_up.measure,
    "ray_data": ray_data.measure,
    "attribution": attribution.measure,
}


def main(names: list[str]) -> int:
    """Measure the named parts, all without a name."""
    promises = [promise for name in names or PARTS for promise in PARTS[name]()]
    Console(width=None if sys.stdout.isatty() else 150).print(table(promises))
    return 0 if all(promise.kept for promise in promises) else 1


def table(promises: list[Promise]) -> Table:
    """One row a promise."""
    drawn = Table("what", "measured", "promise", "", title="raybench's own cost", title_justify="left", box=SIMPLE_HEAD)
    for promise in promises:
        drawn.add_row(promise.what, promise.measured, promise.bound, "kept" if promise.kept else "[red]BROKEN[/red]")
    return drawn


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
