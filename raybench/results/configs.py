"""What readers ask of the stored column `config`, so that they need not know how a config is built."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from raybench.spec.built_in import BUILT_IN
from raybench.spec.config import NEVER_IN_KEY, NOT_IN_KEY, NOT_IN_WORK_KEY, pairing_key
from raybench.spec.presets import CUSTOM, changed_from_preset
from raybench.spec.shapes import Frozen
from raybench.spec.trial import PlannedTrial

__all__ = [
    "NOT_KEYED", "NOT_WORK", "config_label", "derived_batch_number", "distinct_labels", "flattened", "pairing_key",
    "parsed", "planned_labels", "value_at", "within",
]  # fmt: skip

NOT_KEYED: Final = NOT_IN_KEY | NEVER_IN_KEY
"""Settings in which equal configs may differ."""
NOT_WORK: Final = NOT_KEYED | NOT_IN_WORK_KEY
"""Settings in which equal work may differ."""
_SAID: Final = frozenset({
    "workload", "model_name", "seq_len", "micro_batch", "grad_accum", "global_batch", "precision", "phase", "compile",
    "zero_stage", "source.name", "num_workers",
})  # fmt: skip
"""What a label says already."""
_SHAPES: Final[Mapping[str, type[Frozen]]] = {family.name: family.shape for family in BUILT_IN}
"""The built-in workloads' shapes."""
_EXTENT: Final = {"steps": "", "seconds": "s"}
"""The forms of `warmup` and `measure`, with the sign of their unit; a config has one of them."""


def parsed(config: str) -> dict[str, Any]:
    """A stored config. Text that is no JSON object, in a file that anybody may have written, has no settings."""
    try:
        values = json.loads(config)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def value_at(config: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    value: Any = config
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def flattened(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting with its dotted path."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def derived_batch_number(batch_given: str | None) -> str | None:
    """The batch number that followed from the others and the workers; None where nothing did.

    `batch_given` names those that were given: `micro_batch`, `micro_batch+global_batch`, ...
    """
    if not batch_given:
        return None
    given = batch_given.split("+")
    if "global_batch" not in given:
        return "global_batch"
    if "micro_batch" not in given:
        return "micro_batch"
    return "grad_accum" if "grad_accum" not in given else None


def config_label(config: Mapping[str, Any], without: frozenset[str] = frozenset()) -> str:
    """What a person recognises a stored config by, as `TrialConfig.label` says it, less the settings in `without`."""
    accum, compiled = config.get("grad_accum"), config.get("compile", "off")
    parts = {
        "workload": config.get("workload"),
        "model": config.get("model_name"),
        "changed": " ".join(part for part in _changed(config) if not within(f"model.{part.split('=')[0]}", without)),
        "seq_len": config.get("seq_len") and f"s{config['seq_len']}",
        "micro_batch": config.get("micro_batch") and f"b{config['micro_batch']}",
        "grad_accum": accum and accum > 1 and f"a{accum}",
        "global_batch": "micro_batch" in without and config.get("global_batch") and f"g{config['global_batch']}",
        "precision": config.get("precision"),
        "phase": config.get("phase") if config.get("phase") != "train" else None,
        "compile": compiled != "off" and f"compile={compiled}",
        "channels_last": config.get("channels_last") is False and "channels_last=false",
        "cudnn_benchmark": config.get("cudnn_benchmark") is False and "cudnn_benchmark=false",
        "strategy": config.get("strategy") if config.get("strategy") not in ("ddp", "split") else None,
        "zero_stage": config.get("zero_stage") is not None and f"stage{config['zero_stage']}",
        "source.name": value_at(config, "source.name"),
        "num_workers": f"×{config.get('num_workers')}",
    }
    return " ".join(str(part) for name, part in parts.items() if part and name not in without)


def _changed(config: Mapping[str, Any]) -> tuple[str, ...]:
    """What a custom model changes of a preset. Anybody may have written the row: what is no shape says nothing."""
    family = _SHAPES.get(str(config.get("workload")))
    if config.get("model_name") != CUSTOM or family is None:
        return ()
    try:
        return changed_from_preset(family.model_validate(config.get("model")))
    except ValueError:
        return ()


def distinct_labels(
    configs: Sequence[Mapping[str, Any]], without: Sequence[frozenset[str]], ignored: frozenset[str]
) -> list[str]:
    """The label of each config less its settings in `without`; where several share one, with what they differ in.

    Settings in `ignored` tell nothing apart: `encdec 3.5m s64 b4 fp32 device ×2 seed=1`.
    """
    labels = [config_label(config, left_out) for config, left_out in zip(configs, without, strict=True)]
    alike: dict[str, list[int]] = defaultdict(list)
    for index, label in enumerate(labels):
        alike[label].append(index)
    for members in alike.values():
        settings = {index: _telling(configs[index], without[index] | ignored | _SAID) for index in members}
        varying = _varying(list(settings.values()))
        for index, values in settings.items():
            labels[index] += "".join(_said(path, values.get(path), varying) for path in varying)
    return labels


def planned_labels(trials: Iterable[PlannedTrial]) -> dict[str, str]:
    """The label of each planned config by its `point_id`, with what tells it from the others.

    One whose micro batch waits to be found has none here: it is not whole yet.
    """
    configs = {trial.point_id: trial.config for trial in trials if trial.ladder is None}
    values = [config.model_dump(mode="json") for config in configs.values()]
    untold = NOT_KEYED - {"gpu_model"}
    return dict(zip(configs, distinct_labels(values, [frozenset()] * len(values), untold), strict=True))


def _said(path: str, value: Any, varying: Sequence[str]) -> str:
    """` d_model=256`, ` measure=15`, ` measure=10s`, ` optimizer=sgd`: what is said of one setting."""
    parent, _, name = path.rpartition(".")
    if name in _EXTENT:
        others = {f"{parent}.{other}" for other in _EXTENT} & set(varying) - {path}
        return "" if value is None and others else f" {parent}={value}{_EXTENT[name] if value is not None else ''}"
    return f" {parent if name == 'name' else name}={value}"


def within(path: str, left_out: frozenset[str]) -> bool:
    """Whether a setting, or what it is part of, is among `left_out`."""
    return path in left_out or path.partition(".")[0] in left_out


def _telling(config: Mapping[str, Any], left_out: frozenset[str]) -> dict[str, Any]:
    return {path: value for path, value in flattened(config) if not within(path, left_out)}


def _varying(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The paths at which not all are equal."""
    first = settings[0]
    paths = dict.fromkeys(path for values in settings for path in values)
    return [path for path in paths if any(values.get(path) != first.get(path) for values in settings)]
