"""From a name or a path to a `SweepSpec`, with all that is wrong with it told at once."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import raybench
from raybench.errors import UsageError
from raybench.spec.document import MAX_BYTES, read_document
from raybench.spec.expand import find_mistakes
from raybench.spec.mistakes import Mistakes, meant, printable
from raybench.spec.overrides import override, read_overrides
from raybench.spec.sweep import SweepSpec, sweep_from
from raybench.spec.synonyms import quoted

SUFFIXES = (".yaml", ".yml")


def read_sweep(
    path_or_name: str | os.PathLike[str], overrides: str | Sequence[str] = (), *, no_plugins: bool = False
) -> SweepSpec:
    """The sweep in a file, or the shipped one of that name, with `--set` texts applied.

    With `no_plugins` it may name built-in workloads only, and no plug-in is loaded.

    Raises SweepError with every mistake, UsageError where there is no such sweep.
    """
    path = find_sweep(path_or_name)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # never more of it, however long it is
    except OSError as error:
        raise UsageError(f"{printable(str(path))}: cannot be read: {error.strerror}") from error
    told = str(path_or_name) if os.path.isfile(path_or_name) else str(path)
    return sweep_from_bytes(data, told, overrides, no_plugins=no_plugins)


def sweep_from_bytes(
    data: bytes, file: str, overrides: str | Sequence[str] = (), *, no_plugins: bool = False
) -> SweepSpec:
    """The sweep in the text of a file that mistakes call `file`. Raises SweepError."""
    mistakes = Mistakes()
    root = read_document(data, file, mistakes)
    asked = read_overrides(overrides, mistakes)
    spec = sweep_from(override(root, asked), mistakes) if root is not None else None
    if spec is not None:
        spec = replace(spec, no_plugins=no_plugins)
        if mistakes:
            find_mistakes(spec, mistakes)
    mistakes.raise_if_any()
    assert spec is not None  # a document that cannot be read is a mistake
    return spec


def find_sweep(name_or_path: str | os.PathLike[str]) -> Path:
    """The file, or the shipped sweep of that name. Raises UsageError with what there is."""
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise UsageError(f"a sweep is the path of a file or the name of a shipped one, not {_kind(name_or_path)}")
    asked = os.fspath(name_or_path)
    if os.path.isfile(asked):
        return Path(asked)
    shipped = shipped_sweeps()
    if asked in shipped:
        return shipped[asked]
    raise UsageError(f"{_no_sweep(asked, shipped)}{_shipped_hint(asked, shipped)}")


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _no_sweep(asked: str, shipped: Collection[str]) -> str:
    if not asked:
        return "no sweep is named: give a sweep file" + (" or the name of a shipped sweep" if shipped else "")
    if os.path.isdir(asked):
        return f"{printable(asked)}: is a folder; give a sweep file in it"
    if os.path.exists(asked):
        return f"{printable(asked)}: is no plain file; save the sweep as one"
    is_path = asked.endswith(SUFFIXES) or "/" in asked
    return f"{printable(asked)}: {'no such file' if is_path else 'neither a file nor a shipped sweep'}"


def _shipped_hint(asked: str, shipped: Collection[str]) -> str:
    """The nearest shipped sweep and the list of them; nothing for a folder, where the cure is another."""
    if not shipped or os.path.exists(asked):
        return ""
    listed = f"shipped sweeps: {', '.join(shipped)}"
    near = meant(Path(asked).stem, shipped)
    return f"; did you mean {quoted(near)}? ({listed})" if near else f"; {listed}"


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
