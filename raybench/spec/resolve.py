"""From the settings that were given to the value of one setting of one config, with who is to blame for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from pydantic import ValidationError

from raybench.spec.config import Source, TrialConfig
from raybench.spec.document import BAD
from raybench.spec.family import NETWORK, SPECIFIC, Family
from raybench.spec.mistakes import Mistake, either, instead, shown
from raybench.spec.options import DEFAULT_OPTIONS, KNOWN_OPTIONS, PLUG_IN_OPTIONS
from raybench.spec.plain_words import one_of, problems
from raybench.spec.presets import CUSTOM
from raybench.spec.settings import SETTINGS, Given
from raybench.spec.source_kind import SourceKind

DEFAULT_WARMUP_STEPS = 10
DEFAULT_MEASURED_STEPS = 50
"""Enough for the interval (20 steps) and past the warning `short_window` (30). Never changed under `rb1`."""
_DEFAULTS: Mapping[str, Any] = {
    "warmup": {"steps": DEFAULT_WARMUP_STEPS},
    "measure": {"steps": DEFAULT_MEASURED_STEPS},
    "timeout": None,
    "memory_share": 0.9,
    "max_micro_batch": 1024,
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A setting's value in a config; `given` is who gave it last, None for a default.

    Where `mistakes` are, the value cannot be used. `BAD` is a value whose mistake has been told already.
    """

    value: Any
    given: Given | None = None
    mistakes: tuple[Mistake, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A shape, its name (`custom` where no preset equals it) and the preset that was written."""

    shape: Any
    name: str
    written: str


class Speakers:
    """All that was said about one setting, weakest first: whole values, then parts given by dotted keys."""

    def __init__(self, name: str, layers: Iterable[Mapping[str, Given]]) -> None:
        self.name = name
        self.wholes: list[Given] = []
        self.parts: dict[str, Given] = {}
        prefix = f"{name}."
        for layer in layers:
            for key, given in layer.items():
                if key == name:
                    self.wholes.append(given)
                elif key.startswith(prefix):
                    self.parts[key[len(prefix):]] = given

    @property
    def all(self) -> list[Given]:
        """Everyone who spoke, weakest first."""
        return [*self.wholes, *self.parts.values()]

    @property
    def last(self) -> Given | None:
        """Who decides, or decides a part."""
        return self.all[-1] if self.wholes or self.parts else None


class Dropped:
    """Options that a name did not know. One that no config anywhere used is a mistake, not a leftover of `base`."""

    def __init__(self) -> None:
        self._dropped: dict[Given, str] = {}
        self._used: set[Given] = set()

    def drop(self, given: Given, why: str) -> None:
        self._dropped.setdefault(given, why)

    def use(self, given: Given) -> None:
        self._used.add(given)

    def mistakes(self) -> Iterable[Mistake]:
        """One for each option that was never used."""
        for given, why in self._dropped.items():
            if given not in self._used:
                yield _mistake(given, why)


def resolve(family: Family, said: Speakers, dropped: Dropped, sources: Mapping[str, SourceKind]) -> Resolved:
    """The value of one setting for a workload; `sources` are those of plug-ins."""
    name, last = said.name, said.last
    if name in (*SPECIFIC, *NETWORK) and not family.has(name):
        found = tuple(at_key(given, f"{family.name} has no {name}") for given in said.all)
        return Resolved(None, last, found)
    if any(given.value is BAD for given in said.all):
        return Resolved(BAD, last)
    if name == "model":
        return _model(family, said)
    if name in KNOWN_OPTIONS:
        return _named(family, said, dropped, sources)
    if name in ("warmup", "measure"):
        return _extent(said)
    if name == "strategy":
        return _strategy(family, last)
    return Resolved(last.value, last) if last is not None else Resolved(_default(family, name))


def _default(family: Family, name: str) -> Any:
    if name in family.defaults or name in SPECIFIC:
        return family.defaults.get(name)
    return _DEFAULTS[name] if name in _DEFAULTS else TrialConfig.model_fields[name].default


def _strategy(family: Family, last: Given | None) -> Resolved:
    if last is None:
        return Resolved(family.strategies[0])
    if last.value in family.strategies:
        return Resolved(last.value, last)
    what = f"{family.name} runs under {either(family.strategies)}, not {last.value}"
    return Resolved(last.value, last, (_mistake(last, what),))


def _extent(said: Speakers) -> Resolved:
    """A mapping of the one form given to its amount."""
    if said.parts:
        part, given = list(said.parts.items())[-1]
        return Resolved({part: given.value}, given)
    if not said.wholes:
        return Resolved(_DEFAULTS[said.name])
    given = said.wholes[-1]
    if not isinstance(given.value, dict):
        return Resolved({"steps": given.value}, given)
    amounts = {part: inner.value for part, inner in given.value.items()}
    return Resolved(BAD if BAD in amounts.values() else amounts, given)


def _named(family: Family, said: Speakers, dropped: Dropped, sources: Mapping[str, SourceKind]) -> Resolved:
    """A source or optimizer. One given by name keeps the options that stood, as far as it knows them."""
    parts_model = SETTINGS[said.name].parts
    assert parts_model is not None
    values: dict[str, Any] = {"name": parts_model.model_fields["name"].default, **family.defaults.get(said.name, {})}
    givers: dict[str, Given] = {}
    for whole in said.wholes:
        parts = whole.value if isinstance(whole.value, dict) else {"name": whole}
        if isinstance(whole.value, dict) and "name" in parts:
            values, givers = {}, {}
        givers |= parts
    givers |= said.parts
    values |= {part: given.value for part, given in givers.items()}
    if any(value is BAD for value in values.values()):
        return Resolved(BAD, said.last)
    name = values["name"]
    plugged = sources.get(name) if said.name == "source" else None
    known = PLUG_IN_OPTIONS if plugged else KNOWN_OPTIONS[said.name].get(name)
    if known is None:
        what = one_of([*KNOWN_OPTIONS[said.name], *sources], name)
        return Resolved(BAD, said.last, (_mistake(givers["name"], what),))
    for part, given in givers.items():
        if part == "name" or part in known:
            dropped.use(given)
        else:
            dropped.drop(given, f"{said.name} {name} has no {part}")
    kept = {part: value for part, value in values.items() if part == "name" or part in known}
    if plugged:
        return _plugged(plugged, kept, givers, said)
    return Resolved(parts_model(**{**_options(family, said.name, name), **kept}), said.last)


def _plugged(kind: SourceKind, kept: Mapping[str, Any], givers: Mapping[str, Given], said: Speakers) -> Resolved:
    """A plug-in's source: what stands under `options` is held to what it says they are, and all are told."""
    try:
        options = kind.options.model_validate(kept.get("options") or {})
    except ValidationError as error:
        given = givers.get("options", givers["name"])
        found = (_mistake(given, f"{kind.name}: {'.'.join(keys)}: {what}") for keys, what in problems(error))
        return Resolved(BAD, said.last, tuple(found))
    values = {"num_samples": kind.num_samples, **kept, "options": options.model_dump(mode="json")}
    return Resolved(Source(**values), said.last)


def _options(family: Family, setting: str, name: str) -> dict[str, Any]:
    """The defaults of a source's or optimizer's options that are not those of all."""
    samples = family.source_samples.get(name) if setting == "source" else None
    return {**DEFAULT_OPTIONS.get((setting, name), {}), **({"num_samples": samples} if samples else {})}


def _model(family: Family, said: Speakers) -> Resolved:
    """A preset or an explicit shape, then the parts that dotted keys change."""
    written = family.default_model
    values: dict[str, Any] = {}
    givers: dict[str, Given] = dict(said.parts)
    whole = said.wholes[-1] if said.wholes else None
    if whole is not None and isinstance(whole.value, dict):
        written, givers = CUSTOM, {**whole.value, **said.parts}
    elif whole is not None:
        written = whole.value
        if family.named(written) is None:
            what = f"{family.name} has no preset {shown(written)}{instead(written, family.presets)}"
            return Resolved(BAD, whole, (_mistake(whole, what),))
    if written != CUSTOM and (preset := family.named(written)) is not None:
        values = preset.model_dump()
    values |= {part: given.value for part, given in givers.items()}
    if any(value is BAD for value in values.values()):
        return Resolved(BAD, said.last)
    try:
        shape = family.shape.model_validate(values)
    except ValidationError as error:
        found = tuple(_shape_mistakes(family, error, givers, said.last))
        return Resolved(ModelChoice(SimpleNamespace(**values), CUSTOM, written), said.last, found)
    return Resolved(ModelChoice(shape, _preset_name(family, shape, written), written), said.last)


def _preset_name(family: Family, shape: Any, written: str) -> str:
    """The preset that the shape is, however it was written."""
    if written != CUSTOM and family.named(written) == shape:
        return written
    return next((name for name, preset in family.presets.items() if preset == shape), CUSTOM)


def _shape_mistakes(
    family: Family, error: ValidationError, givers: Mapping[str, Given], last: Given | None
) -> Iterable[Mistake]:
    assert last is not None  # a preset by itself is right
    for keys, what in problems(error):
        given = givers.get(keys[0]) if keys else None
        if what == "unknown key":
            assert given is not None
            yield at_key(given, f"unknown key{instead(keys[0], family.shape.model_fields)}")
        elif given is not None:
            yield _mistake(given, what)
        else:
            path = ".".join((last.node.path, *keys))
            yield Mistake(last.node.place, path, what)


def blame(candidates: Sequence[Resolved], what: str) -> Mistake:
    """A mistake of several settings together, told at the first that an axis gave, else the first that anyone gave."""
    givers = [resolved.given for resolved in candidates if resolved.given is not None]
    given = next((given for given in givers if given.swept), givers[0])
    return _mistake(given, what)


def _mistake(given: Given, what: str) -> Mistake:
    return Mistake(given.node.place, given.node.path, what)


def at_key(given: Given, what: str) -> Mistake:
    """A mistake that lies in the key's being there at all, once for a whole axis."""
    path = given.node.path
    path = path[: path.rindex("[")] if given.swept and path.endswith("]") else path
    return Mistake(given.node.key or given.node.place, path, what)
