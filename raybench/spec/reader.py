"""From a name or a path to a `SweepSpec`, with all that is wrong with it told at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import raybench
from raybench.errors import UsageError
from raybench.spec.document import MAX_BYTES, read_document
from raybench.spec.expand import find_mistakes
from raybench.spec.mistakes import Mistakes, instead, printable
from raybench.spec.overrides import override, read_overrides
from raybench.spec.sweep import SweepSpec, sweep_from

SUFFIXES = (".yaml", ".yml")


def read_sweep(path_or_name: str | os.PathLike[str], overrides: str | Sequence[str] = ()) -> SweepSpec:
    """The sweep in a file, or the shipped one of that name, with `--set` texts applied.

    Raises SweepError with every mistake, UsageError where there is no such sweep.
    """
    path = find_sweep(path_or_name)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # never more of it, however long it is
    except OSError as error:
        raise UsageError(f"{printable(str(path))}: cannot be read: {error.strerror}") from error
    return sweep_from_bytes(data, str(path_or_name) if os.path.isfile(path_or_name) else str(path), overrides)


def sweep_from_bytes(data: bytes, file: str, overrides: str | Sequence[str] = ()) -> SweepSpec:
    """The sweep in the text of a file that mistakes call `file`. Raises SweepError."""
    mistakes = Mistakes()
    root = read_document(data, file, mistakes)
    asked = read_overrides(overrides, mistakes)
    spec = sweep_from(override(root, asked), mistakes) if root is not None else None
    if mistakes and spec is not None:
        find_mistakes(spec, mistakes)
    mistakes.raise_if_any()
    assert spec is not None  # a document that cannot be read is a mistake
    return spec


def find_sweep(name_or_path: str | os.PathLike[str]) -> Path:
    """The file, or the shipped sweep of that name. Raises UsageError with what there is."""
    asked = os.fspath(name_or_path)
    if os.path.isfile(asked):
        return Path(asked)
    shipped = shipped_sweeps()
    if asked in shipped:
        return shipped[asked]
    what = "no such file" if asked.endswith(SUFFIXES) or "/" in asked else "neither a file nor a shipped sweep"
    hint = instead(Path(asked).stem, shipped) if shipped else ""
    listed = "" if hint.startswith("; known") else f" (shipped: {', '.join(shipped)})"
    raise UsageError(f"{printable(asked)}: {what}{hint}{listed if shipped else ''}")


def shipped_sweeps() -> dict[str, Path]:
    """The sweeps that come with raybench, by name."""
    return {path.stem: path for path in sorted(_shipped_folder().glob("*.yaml"))}


def _shipped_folder() -> Path:
    """Package data of a wheel; in a checkout the folder beside the package."""
    package = Path(next(iter(raybench.__path__)))
    in_checkout = package.parent / "sweeps"
    if not (package / "sweeps").is_dir() and (package.parent / "pyproject.toml").is_file():
        return in_checkout
    return package / "sweeps"
