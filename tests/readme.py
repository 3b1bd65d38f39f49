"""The README as tests see it: its code blocks, and the parts that are made from the code.

`python -m tests.readme` writes the made parts anew, after a column, outcome or rule was added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybench.report.columns_list import column_rows
from raybench.spec.built_in import BUILT_IN
from raybench.spec.combinations import COMBINATIONS, Applies

README = Path(__file__).parent.parent / "README.md"
_BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
_TABLES = {
    "trials": "one row an attempt",
    "steps": "one row a rank and step, warm-up flagged",
    "telemetry": "one row a GPU or node and sample; empty today",
    "nodes": "one row a machine, and a change of its facts",
}


@dataclass(frozen=True)
class Block:
    """A fenced block. `file` is the path that a comment above it gives, where it is a whole file."""

    language: str
    text: str
    line: int
    file: str | None


def blocks(*languages: str) -> list[Block]:
    """The fenced blocks in these languages, in order."""
    text = README.read_text()
    found = [
        Block(match["language"], match["text"], text.count("\n", 0, match.start()) + 1, match["file"])
        for match in _BLOCK.finditer(text)
    ]
    return [block for block in found if block.language in languages]


def made(name: str) -> str:
    """What stands between the markers `<!-- NAME:begin -->` and `<!-- NAME:end -->`."""
    return README.read_text().split(f"<!-- {name}:begin -->\n")[1].split(f"<!-- {name}:end -->")[0]


def commands() -> Iterator[tuple[int, str]]:
    """Every `raybench ...` line of shell blocks with its place, prompts, comments and continuations gone."""
    for block in blocks("sh", "console"):
        for offset, line in enumerate(block.text.replace("\\\n", " ").splitlines(), 1):
            typed = line.removeprefix("$ ")
            if typed.startswith("raybench ") and (block.language == "sh" or line.startswith("$ ")):
                yield block.line + offset, typed


def inline_commands() -> list[str]:
    """Every `raybench ...` in running text."""
    prose = _BLOCK.sub("", README.read_text())
    return re.findall(r"`(raybench [^`]+)`", prose)


def columns_text() -> str:
    """A folded table for each of the results' tables."""
    rows = column_rows()
    of_table = {name: [row for row in rows if row["table"] == name] for name in _TABLES}
    return "\n".join(_folded(name, what, of_table[name]) for name, what in _TABLES.items())


def _folded(name: str, what: str, rows: list[dict[str, Any]]) -> str:
    head = f"<details>\n<summary><b><code>{name}</code></b>: {what} ({len(rows)} columns)</summary>\n"
    cells = [
        (f"`{row['name']}`", row["kind"], row["unit"], row["meaning"], row["over_ranks"], _null(row["null"]))
        for row in rows
    ]
    table = _markdown(("column", "type", "unit", "meaning", "over ranks", "null"), cells)
    return f"{head}\n{table}\n</details>\n"


def _null(rule: str) -> str:
    return "" if rule == "never" else rule


def _markdown(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def combinations_text() -> str:
    """Strategies, and what each goes with."""
    known = {name: [each.name for each in BUILT_IN if name in each.strategies] for name in COMBINATIONS}
    rows = [
        (
            f"`{name}`", applies.meaning, ", ".join(known[name]), "1" if applies.one_worker_only else "any",
            *(_goes_with(applies, field) for field in ("phase", "precision", "compile")),
            ", ".join(f"`{option}`" for option in sorted(applies.options)),
        )
        for name, applies in COMBINATIONS.items()
    ]  # fmt: skip
    return _markdown(("strategy", "", "workloads", "workers", "phase", "precision", "compile", "settings"), rows)


def _goes_with(applies: Applies, field: str) -> str:
    possible, every = getattr(applies, field), getattr(Applies, field)
    if not possible:
        return "none"
    return "all" if possible == every else ", ".join(f"`{value}`" for value in possible)


def _remade(text: str, name: str, made_text: str) -> str:
    before, rest = text.split(f"<!-- {name}:begin -->\n")
    _, after = rest.split(f"<!-- {name}:end -->")
    return f"{before}<!-- {name}:begin -->\n{made_text}<!-- {name}:end -->{after}"


def main() -> None:
    """Write the made parts into the README."""
    text = _remade(README.read_text(), "columns", columns_text())
    README.write_text(_remade(text, "combinations", combinations_text()))


if __name__ == "__main__":
    main()
