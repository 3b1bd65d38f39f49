"""What pydantic finds, said as a person would: no type names, no links, no position inside a union."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from raybench.spec.mistakes import meant, printable, shown
from raybench.spec.synonyms import quoted

_Words = Callable[[Mapping[str, Any], Any], str]


def _limit(words: str, name: str) -> _Words:
    return lambda context, value: f"must be {words} {_plain_number(context[name])}, not {shown(value)}"


def _length(words: str, name: str) -> _Words:
    return lambda context, value: f"must have {words} {context[name]} values, not {context['actual_length']}"


def _plain_number(limit: float) -> str:
    return str(int(limit)) if limit == int(limit) else str(limit)


def _kind(words: str) -> _Words:
    return lambda context, value: f"must be {words}, not {shown(value)}"


def _one_of(context: Mapping[str, Any], value: Any) -> str:
    """The choices are few and listed; a guess is only added where it is next to certain."""
    return one_of([choice.strip(" '") for choice in str(context["expected"]).replace(" or ", ", ").split(",")], value)


def one_of(choices: Sequence[str], value: Any) -> str:
    """What to say of a value that is none of a few."""
    words = meant(value, choices, likeness=0.8) if isinstance(value, str) else ()
    hint = f"; did you mean {quoted(words)}?" if words else ""
    return f"must be one of {', '.join(choices)}, not {shown(value)}{hint}"


_WHOLE, _NUMBER, _TEXT = _kind("a whole number"), _kind("a number"), _kind("text")
_MAPPING = _kind("a mapping")
_WORDS: dict[str, _Words] = {
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": _WHOLE,
    "float_type": _NUMBER,
    "finite_number": _kind("a finite number"),
    "string_type": _TEXT,
    "string_pattern_mismatch": _kind("letters and digits, with ` `, `.`, `_` and `-` between them"),
    "bool_type": _kind("true or false"),
    "literal_error": _one_of,
    "greater_than_equal": _limit("at least", "ge"),
    "greater_than": _limit("above", "gt"),
    "less_than_equal": _limit("at most", "le"),
    "less_than": _limit("below", "lt"),
    "missing": lambda context, value: "is missing",
    "extra_forbidden": lambda context, value: "unknown key",
    "value_error": lambda context, value: printable(str(context["error"])),
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "dict_type": _MAPPING,
    "tuple_type": _kind("a list"),
    "too_short": _length("at least", "min_length"),
    "too_long": _length("at most", "max_length"),
}


def problems(error: ValidationError) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each problem as the keys that lead to it and what is wrong there."""
    for found in error.errors(include_url=False):
        words = _WORDS.get(found["type"], _kind("something else"))
        yield tuple(str(part) for part in found["loc"]), words(found.get("ctx", {}), found["input"])
