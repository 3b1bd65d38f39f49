"""Where results lie: a folder, or a prefix in an object store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from raybench.errors import UsageError
from raybench.results.objects import ObjectPath, object_path, retried

Place: TypeAlias = Path | ObjectPath

_URI = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def files_below(place: Place) -> list[tuple[tuple[str, ...], Place]]:
    """Every file below a place, sorted, with its names from there on."""
    if isinstance(place, ObjectPath):
        return [(tuple(path.key[len(place.key) + 1 :].split("/")), path) for path in retried(place.below)]
    return [(path.relative_to(place).parts, path) for path in sorted(place.rglob("*")) if path.is_file()]


def place_of(out: str | Path | ObjectPath) -> Place:
    """The place that a person means. Raises UsageError for a URI that cannot be used, or a `~user` that is not."""
    if isinstance(out, ObjectPath) or (isinstance(out, Path) and not str(out).startswith("~")):
        return out
    text = str(out)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if _URI.match(text):
        return object_path(text)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UsageError(f"{text}: no such user") from None
