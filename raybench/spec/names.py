"""The one pattern of every name that ends up in a path or a column: sweeps, clusters, tags."""

from __future__ import annotations

import re

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
NAME_RULE = "a name is 1 to 64 of a-z, 0-9, `.`, `_` and `-`, starts with a letter or digit and holds no `..`"
_NAME = re.compile(NAME_PATTERN[1:-1])


def is_name(text: str) -> bool:
    """Whether `text` is 1 to 64 of a-z, 0-9, `.`, `_`, `-`, starts with a letter or digit and holds no `..`."""
    return _NAME.fullmatch(text) is not None and ".." not in text


def gpu_words(name: str) -> str:
    """A GPU's name as drivers of all ages agree on it: lower case, words joined by one space, the maker left out.

    Drivers before 470 gave `A100-SXM4-40GB`, later ones `NVIDIA A100-SXM4-40GB`; `Tesla` came and went.
    """
    words = re.findall(r"[a-z0-9.]+", name.lower())
    return " ".join(word for word in words if word not in ("nvidia", "tesla"))
