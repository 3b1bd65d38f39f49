"""What readers ask of the stored column `config`, so that they need not know how a config is built."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from raybench.spec.config import pairing_key

__all__ = ["config_label", "derived_batch_number", "flattened", "pairing_key", "parsed", "value_at"]


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
        "seq_len": config.get("seq_len") and f"s{config['seq_len']}",
        "micro_batch": config.get("micro_batch") and f"b{config['micro_batch']}",
        "grad_accum": accum and accum > 1 and f"a{accum}",
        "precision": config.get("precision"),
        "phase": config.get("phase") if config.get("phase") != "train" else None,
        "compile": compiled != "off" and f"compile={compiled}",
        "strategy": config.get("strategy") if config.get("strategy") == "none" else None,
        "source": value_at(config, "source.name"),
        "num_workers": f"×{config.get('num_workers')}",
    }
    return " ".join(str(part) for name, part in parts.items() if part and name not in without)
