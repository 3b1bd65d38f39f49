"""YAML 1.2 into a tree that remembers line and column, refusing all that a sweep file has no business holding.

ruamel.yaml splits the text into events; what a plain scalar means is decided here by YAML 1.2's core schema, so that
`1e-3` is a number, `no` is a word and a date stays text, whichever loader is fashionable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from raybench.spec.mistakes import Mistakes, Place, printable

MAX_BYTES = 256_000
MAX_DEPTH = 20

_NULL = re.compile(r"null|Null|NULL|~|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL_OR_HEX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAX_DIGITS = 300
"""A longer integer is no setting of anything, and Python's own limit would raise."""

_INDENT_OR_QUOTE = "check the indent, or quote text that holds `: `"

Scalar = str | int | float | bool | None


class Bad:
    """The value of what is already among the mistakes, so that nothing more is said about it."""


BAD = Bad()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One value of the file: a scalar, a tuple of nodes, or a mapping from key to node.

    A value may also be `BAD`. `path` is how a person names it (`axes.num_workers[1]`); `key` is where its key
    stands (or that of the list it is in), if it has one.
    """

    value: Any
    place: Place
    path: str
    key: Place | None = None

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        return isinstance(self.value, tuple)

    @property
    def items(self) -> Mapping[str, Node]:
        """The entries of a mapping."""
        assert isinstance(self.value, dict)
        return self.value

    @property
    def elements(self) -> tuple[Node, ...]:
        """The elements of a list."""
        assert isinstance(self.value, tuple)
        return self.value

    @property
    def plain(self) -> Any:
        """The value as Python has it: scalars, lists and dicts."""
        if self.is_mapping:
            return {key: node.plain for key, node in self.items.items()}
        return [node.plain for node in self.elements] if self.is_list else self.value


class _Stop(Exception):
    """The rest of the document cannot be read; why is among the mistakes."""


def read_document(data: bytes, file: str, mistakes: Mistakes, path: str = "") -> Node | None:
    """The one document in `data`, or None where it cannot be read at all. `file` is how mistakes call it."""
    top = Place(file, 1, 1)
    if len(data) > MAX_BYTES:
        mistakes.add(top, path, f"over {MAX_BYTES // 1000} kB: a sweep file this long is not read")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        mistakes.add(top, path, f"byte {error.start} is not UTF-8 text")
        return None
    try:
        return _Builder(text, file, mistakes).document(path)
    except _Stop:
        return None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else top
        mistakes.add(place, path, f"not YAML: {_cure(str(error.problem or error.context))}")
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - (text.rfind("\n", 0, error.position) + 1) + 1
        mistakes.add(Place(file, line, column), path, f"character {printable(chr(error.character))} is not allowed")
    return None


_CURES = {
    r"'\t' that cannot start": "indent with spaces, not tabs",
    "mapping values are not allowed": _INDENT_OR_QUOTE,
    "sequence entries are not allowed": _INDENT_OR_QUOTE,
    "expected <block end>": _INDENT_OR_QUOTE,
    "that cannot start any token": "quote text that begins with such a character",
    "could not find expected ':'": "a key needs a `:` and a space after it",
    "unexpected end of stream": "a quote is not closed",
    "<stream end>": "a bracket is not closed",
}
"""By what the parser says: what its user does about it."""


def _cure(problem: str) -> str:
    """What is probably wrong, in the words of someone who writes sweeps rather than parsers."""
    cure = next((cure for said, cure in _CURES.items() if said in problem), None)
    return cure or printable(problem)


class _Builder:
    """Builds nodes from ruamel's events; `_events` is read strictly forward."""

    def __init__(self, text: str, file: str, mistakes: Mistakes) -> None:
        self._events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
        self._file = file
        self._mistakes = mistakes

    def document(self, path: str) -> Node:
        next(self._events)  # the stream's start
        start = next(self._events)
        if type(start).__name__ == "StreamEndEvent":
            self._stop(start, path, "the file is empty")
        if start.version not in (None, (1, 2)):
            self._stop(start, path, "sweep files are YAML 1.2")
        root = self._node(next(self._events), path, None, 1)
        next(self._events)  # the document's end
        after = next(self._events)
        if type(after).__name__ != "StreamEndEvent":
            self._stop(after, path, "a second document in one file")
        return root

    def _node(self, event: Any, path: str, key: Place | None, depth: int) -> Node:
        kind = type(event).__name__
        place = self._place(event)
        if depth > MAX_DEPTH:
            self._stop(event, path, f"nested deeper than {MAX_DEPTH} levels")
        if event.anchor is not None:
            self._mistakes.add(place, path, "anchors (&) and aliases (*) are not allowed: write the value out")
        if kind == "AliasEvent":
            return Node(BAD, place, path, key)
        value: Any
        if kind == "MappingStartEvent":
            value = self._mapping(path, depth)
        elif kind == "SequenceStartEvent":
            value = self._sequence(path, key, depth)
        else:
            value = self._scalar(event, path)
        if event.tag is not None:
            tag = printable(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self._mistakes.add(place, path, f"tags are not allowed: {tag}")
            value = BAD
        return Node(value, place, path, key)

    def _mapping(self, path: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            if type(event).__name__ != "ScalarEvent":
                self._stop(event, path, "a key must be a word")
            self._node(event, path, None, depth)  # a key may not hold an anchor or a tag either
            name = event.value
            inner = f"{path}.{name}" if path else name
            place = self._place(event)
            node = self._node(next(self._events), inner, place, depth + 1)
            if name in entries:
                first = entries[name].key
                assert first is not None
                self._mistakes.add(place, inner, f"duplicate key; first given in line {first.line}")
                continue
            entries[name] = node
        return entries

    def _sequence(self, path: str, key: Place | None, depth: int) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while type(event := next(self._events)).__name__ != "SequenceEndEvent":
            nodes.append(self._node(event, f"{path}[{len(nodes)}]", key, depth + 1))
        return tuple(nodes)

    def _scalar(self, event: Any, path: str) -> Scalar | Bad:
        text: str = event.value
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            self._mistakes.add(self._place(event), path, "half a surrogate pair is no character")
            return BAD
        return text if event.style is not None else core_schema(text)

    def _place(self, event: Any) -> Place:
        return Place(self._file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _stop(self, event: Any, path: str, what: str) -> None:
        self._mistakes.add(self._place(event), path, what)
        raise _Stop


def core_schema(text: str) -> Scalar:
    """What a plain (unquoted) scalar means: null, a boolean, a number or else text (YAML 1.2.2, section 10.3)."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if len(text) <= _MAX_DIGITS:
        if _INT.fullmatch(text):
            return int(text)
        if _OCTAL_OR_HEX.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            return float(text)
    return float(text.replace(".", "", 1)) if _NOT_FINITE.fullmatch(text) else text
