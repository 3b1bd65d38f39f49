"""One block's configs: each picked combination of axis values becomes a `TrialConfig`, or mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import ValidationError

from raybench.spec.batch import batch_of
from raybench.spec.built_in import source_kinds
from raybench.spec.combinations import own_settings, refusals
from raybench.spec.config import Extent, TrialConfig
from raybench.spec.criteria import WRITTEN_MODEL, Criterion
from raybench.spec.document import BAD
from raybench.spec.family import Family
from raybench.spec.mistakes import Mistake, Mistakes, instead, shown
from raybench.spec.plain_words import problems
from raybench.spec.resolve import Dropped, ModelChoice, Resolved, Speakers, blame, resolve
from raybench.spec.settings import FOR_AUTO, SETTINGS, Layer
from raybench.spec.source_kind import SourceKind
from raybench.spec.source_rules import source_mistakes
from raybench.spec.sweep import Block, Head

QUICK_STEPS = {"warmup": 2, "measure": 10}
"""The least that is a valid number at all. A sweep that asks for fewer steps gets those."""
_BATCH = ("micro_batch", "grad_accum", "global_batch")
_NO_BATCH: dict[str, Any] = dict.fromkeys(_BATCH)
_OTHERWISE = ("workload", "model", "timeout", "warmup", "measure", *FOR_AUTO)
_SAME_NAME = tuple(name for name in SETTINGS if name not in _OTHERWISE)
_extent = cache(Extent)


class Assembler:
    """Makes the configs of one block. Every setting is worked out once for each choice of the axes that touch it."""

    def __init__(
        self, block: Block, families: Mapping[str, Family], head: Head, exclude: Sequence[Criterion], *,
        quick: bool, no_plugins: bool, mistakes: Mistakes, dropped: Dropped,
    ) -> None:  # fmt: skip
        self._block = block
        self._families = families
        self._exclude = exclude
        self._constant = {"isolation": head.isolation, "quality": "quick" if quick else "full"}
        self._quick = quick
        self._no_plugins = no_plugins
        self._sources = source_kinds(no_plugins=no_plugins)
        self._mistakes = mistakes
        self._dropped = dropped
        self._touching = {name: _touching(name, block) for name in SETTINGS}
        self._varying = [name for name, axes in self._touching.items() if axes and name != "workload"]
        self._memo: dict[tuple[Any, ...], Resolved] = {}
        self._settled: dict[str, dict[str, Resolved]] = {}
        self.used_exclusions: set[Criterion] = set()

    def config(self, combo: Sequence[Layer]) -> TrialConfig | None:
        """The config of one value of each axis; None where it is excluded or a mistake."""
        said, family = self._family(combo)
        if family is None:
            self._unknown_workload(said)
            return None
        settings = self._settings(family, combo)
        fields, found = self._fields(family, settings, said)
        for rule in self._exclude:
            if rule.matches(fields):
                self.used_exclusions.add(rule)
                return None
        self._mistakes.extend(found)
        if found or any(resolved.value is BAD for resolved in settings.values()):
            return None
        return self._built(family, fields, settings, said)

    def asked(self, name: str, combo: Sequence[Layer]) -> Any:
        """The value of one setting, right or wrong; None where the workload is not known."""
        _, family = self._family(combo)
        return self._resolved(name, family, combo).value if family else None

    def _family(self, combo: Sequence[Layer]) -> tuple[Resolved, Family | None]:
        said = self._resolved("workload", None, combo)
        return said, self._families.get(said.value) if isinstance(said.value, str) else None

    def _settings(self, family: Family, combo: Sequence[Layer]) -> dict[str, Resolved]:
        """Every setting but the workload; those that no axis touches are the same in all configs of the workload."""
        settled = self._settled.get(family.name)
        if settled is None:
            settled = {name: self._resolved(name, family, combo) for name in SETTINGS if name != "workload"}
            self._settled[family.name] = settled
        settings = settled | {name: self._resolved(name, family, combo) for name in self._varying}
        return settings | _defaults_of_shape(family, settings)

    def _resolved(self, name: str, family: Family | None, combo: Sequence[Layer]) -> Resolved:
        key = (name, family and family.name, *(id(combo[i]) for i in self._touching[name]))
        found = self._memo.get(key)
        if found is None:
            said = Speakers(name, (*self._block.fixed, *combo))
            found = resolve(family, said, self._dropped, self._sources) if family else _workload(said)
            self._memo[key] = found
        return found

    def _unknown_workload(self, said: Resolved) -> None:
        if said.given is None:
            node = self._block.node
            self._mistakes.add(node.place, f"{node.path}.workload", "is missing: what should be computed?")
        elif said.value is not BAD:
            off = " (--no-plugins leaves out installed ones)" if self._no_plugins else ""
            what = f"there is no workload {shown(said.value)}{off}{instead(said.value, self._families)}"
            self._mistakes.extend([blame([said], what)])

    def _fields(
        self, family: Family, settings: dict[str, Resolved], workload: Resolved
    ) -> tuple[dict[str, Any], list[Mistake]]:
        """The fields of the config as far as they are known, and what is wrong with their being together."""
        found = [mistake for resolved in settings.values() for mistake in resolved.mistakes]
        fields = {name: settings[name].value for name in _SAME_NAME}
        model = settings["model"].value
        if isinstance(model, ModelChoice):
            fields |= {"model": model.shape, "model_name": model.name, WRITTEN_MODEL: model.written}
        else:
            fields |= {"model": None, "model_name": None, WRITTEN_MODEL: None}
        fields |= {"workload": family.name, "timeout_s": settings["timeout"].value, "batch_given": None}
        fields |= self._constant | own_settings(fields)
        if "micro_batch" in family.settings and not _any_bad(settings, *_BATCH, "num_workers"):
            found += self._add_batch(family, fields, settings)
        for name in ("warmup", "measure"):
            found += self._add_extent(name, family, fields, settings)
        for name, what in refusals(fields):
            found.append(blame([settings[name], settings["strategy"], workload], what))
        found += _placement_mistakes(fields, settings, workload)
        return fields, found

    def _add_batch(self, family: Family, fields: dict[str, Any], settings: dict[str, Resolved]) -> list[Mistake]:
        asked = {name: settings[name].value for name in _BATCH if settings[name].given is not None}
        default_micro = family.defaults.get("micro_batch", 1)
        batch = batch_of(**_NO_BATCH | asked, workers=fields["num_workers"], default_micro=default_micro)
        if isinstance(batch, str):
            blamed = ("global_batch", "micro_batch", "grad_accum", "num_workers")
            return [blame([settings[name] for name in blamed], batch)]
        fields |= {
            "micro_batch": batch.micro_batch,
            "grad_accum": batch.grad_accum,
            "global_batch": batch.global_batch,
            "batch_given": "+".join(asked) or "micro_batch",
        }
        return []

    def _add_extent(
        self, name: str, family: Family, fields: dict[str, Any], settings: dict[str, Resolved]
    ) -> list[Mistake]:
        if settings[name].value is BAD:
            fields[name] = BAD
            return []
        ((form, amount),) = settings[name].value.items()
        if form in ("samples", "tokens", "epochs"):
            if _any_bad(settings, *_BATCH, "num_workers", "seq_len", "source"):
                return []
            steps = steps_of(form, amount, family, fields)
            if isinstance(steps, str):
                return [blame([settings[name]], steps)]
            form, amount = "steps", steps
        if self._quick:
            most = QUICK_STEPS[name]
            form, amount = "steps", min(amount, most) if form == "steps" else most
        fields[name] = _extent(**{form: amount})
        return []

    def _built(
        self, family: Family, fields: dict[str, Any], settings: dict[str, Resolved], workload: Resolved
    ) -> TrialConfig | None:
        del fields[WRITTEN_MODEL]
        try:
            config = TrialConfig(**fields)
        except ValidationError as error:
            for (field, *_), what in problems(error):
                involved = [settings[name] for name in (field, *_BATCH, "num_workers") if name in settings]
                self._mistakes.extend([blame([*involved, workload], f"{field} {what}")])
            return None
        for sentence in (*family.rule(config), *source_mistakes(family, config), *_rule_of(self._sources, config)):
            name, _, what = sentence.partition(": ")
            involved = [settings[each] for each in (name, "num_workers") if each in settings]
            self._mistakes.extend([blame([*involved, workload], what or sentence)])
            return None
        return config


def _defaults_of_shape(family: Family, settings: Mapping[str, Resolved]) -> dict[str, Resolved]:
    """What nobody gave and the chosen shape has another default for."""
    model = settings["model"].value
    if not isinstance(model, ModelChoice) or not isinstance(model.shape, family.shape):
        return {}
    defaults = family.defaults_of(model.shape)
    return {name: Resolved(value) for name, value in defaults.items() if settings[name].given is None}


def steps_of(form: str, amount: int, family: Family, fields: Mapping[str, Any]) -> int | str:
    """Steps that process `amount` samples, tokens or epochs exactly, or the sentence that says why there are none."""
    samples = fields["global_batch"]
    if form == "tokens":
        tokens_per_sample = family.tokens_per_sample
        per_step = samples and tokens_per_sample and samples * tokens_per_sample(fields["seq_len"])
    else:
        per_step = samples
    if form == "epochs" and samples:
        amount, form = amount * fields["source"].num_samples, "samples"
    if not per_step:
        return f"{family.name} has no {form}: give steps or seconds"
    if amount % per_step:
        whole = int(amount // per_step)
        less = f"measure: {whole} leaves the rest out, " if whole else ""
        return f"{amount} {form} are not a whole number of steps of {per_step}; {less}measure: {whole + 1} goes round"
    return int(amount // per_step)


def _placement_mistakes(
    fields: Mapping[str, Any], settings: Mapping[str, Resolved], workload: Resolved
) -> list[Mistake]:
    """Every node has a worker at least, and exactly one under `strict_spread`."""
    workers, nodes = fields["num_workers"], fields["nodes"]
    if fields["gpu_model"] is not None and fields["device"] == "cpu":
        return [blame([settings["gpu_model"], settings["device"]], "device cpu has no gpu_model")]
    if nodes is None or _any_bad(settings, "nodes", "num_workers", "packing"):
        return []
    if nodes > workers:
        what = f"{nodes} nodes need at least as many workers, not {workers}"
    elif fields["packing"] == "strict_spread" and nodes != workers:
        what = f"strict_spread puts one worker on a node: {workers} workers need {workers} nodes, not {nodes}"
    else:
        return []
    return [blame([settings["nodes"], settings["num_workers"], settings["packing"], workload], what)]


def _rule_of(sources: Mapping[str, SourceKind], config: TrialConfig) -> Iterable[str]:
    kind = sources.get(config.source.name) if config.source else None
    return kind.rule(config) if kind else ()


def _workload(said: Speakers) -> Resolved:
    return Resolved(said.wholes[-1].value, said.last) if said.wholes else Resolved(None)


def _any_bad(settings: Mapping[str, Resolved], *names: str) -> bool:
    return any(settings[name].value is BAD for name in names)


def _touching(name: str, block: Block) -> tuple[int, ...]:
    """The axes that give a setting or reach inside it."""
    return tuple(i for i, axis in enumerate(block.axes) if any(_touches(name, option) for option in axis.options))


def _touches(name: str, layer: Layer) -> bool:
    return any(key == name or key.startswith(f"{name}.") for key in layer)
