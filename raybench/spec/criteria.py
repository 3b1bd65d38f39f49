"""Which configs a rule speaks of: `exclude` in the file, `--only` on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from raybench.spec.document import BAD, Node
from raybench.spec.mistakes import Mistakes, Place
from raybench.spec.settings import AUTO, SETTINGS, TAKES_AUTO, Given, read_layer

WRITTEN_MODEL = "written_model"
"""Beside a config's fields: the preset that the sweep names, even where a dotted key then changed the shape."""
_FIELDS = {"timeout": "timeout_s"}


@dataclass(frozen=True, eq=False)
class Criterion:
    """Matches what agrees with all of `wanted`: pairs of a setting's (dotted) key and the value it must have."""

    wanted: tuple[tuple[str, Any], ...]
    place: Place
    path: str

    def matches(self, fields: Mapping[str, Any]) -> bool:
        """Whether the fields of a config (with `WRITTEN_MODEL` beside them) agree."""
        return all(agrees(fields, key, value) for key, value in self.wanted)


def value_of(fields: Mapping[str, Any], key: str) -> Any:
    """The value of one setting as a sweep would write it: of a source, optimizer or preset the name."""
    name, _, part = key.partition(".")
    has = fields.get(_FIELDS.get(name, name))
    if part:
        return getattr(has, part, None)
    if name == "model":
        return fields["model_name"]
    return getattr(has, SETTINGS[name].bare or "", None) if isinstance(has, BaseModel) else has


def agrees(fields: Mapping[str, Any], key: str, value: Any) -> bool:
    """Whether one setting has the value: a name for a source, optimizer or preset, a number, or a mapping of parts."""
    name, _, part = key.partition(".")
    if part:
        has = fields.get(_FIELDS.get(name, name))
        return bool(has is not None and getattr(has, part, None) == value)
    if isinstance(value, dict):
        return all(agrees(fields, f"{name}.{inner}", wanted) for inner, wanted in value.items())
    if name == "model":
        return value in (fields[WRITTEN_MODEL], fields["model_name"])
    return bool(value_of(fields, key) == value)


def read_exclusion(node: Node, mistakes: Mistakes) -> Criterion | None:
    """One entry of `exclude`; None where it is a mistake."""
    if not node.is_mapping or not node.items:
        if node.value is not BAD:
            mistakes.add(node.place, node.path, "must be a mapping of settings and their values")
        return None
    layer = read_layer(node.items, mistakes)
    auto = [given for name in TAKES_AUTO if (given := layer.get(name)) is not None and given.value == AUTO]
    for given in auto:
        mistakes.add(given.node.place, given.node.path, "must be a whole number here, not auto")
    if auto or any(given.value is BAD for given in layer.values()):
        return None
    return Criterion(tuple((key, plain_value(given)) for key, given in layer.items()), node.place, node.path)


def plain_value(given: Given) -> Any:
    """The value without the places of its parts."""
    if isinstance(given.value, dict):
        return {part: inner.value if isinstance(inner, Given) else inner for part, inner in given.value.items()}
    return given.value


def matches_any(criteria: Sequence[Criterion], fields: Mapping[str, Any]) -> bool:
    """Whether one of the criteria matches."""
    return any(criterion.matches(fields) for criterion in criteria)
