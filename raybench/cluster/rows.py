"""The row of a trial, made of what is known at the end of an attempt. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from raybench.cluster.messages import Hello
from raybench.cluster.outcome import Ending
from raybench.measure.ledger import Ledger
from raybench.measure.summary import Figures
from raybench.record.rank import RankResult
from raybench.record.trial import SCHEMA_VERSION, Trial
from raybench.spec.config import TrialConfig, canonical_json
from raybench.spec.trial import PlannedTrial
from raybench.version import __version__

CLUSTER_CHANGED: Final = "cluster_changed"


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What all rows of a run share."""

    sweep: str
    sweep_run_id: str
    cluster: str
    ray_address_source: str
    ray_version: str
    tags: Mapping[str, str]
    note: str | None
    ray_job_id: str
    slurm: str | None


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One try at a trial, from the moment it starts."""

    trial_uid: str
    planned: PlannedTrial
    number: int                  # from 1
    started_at: datetime
    started_s: float             # on the driver's performance counter
    warnings: tuple[str, ...] = ()      # what is known of the run by then


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """The worker group that served an attempt."""

    uid: str
    hellos: Mapping[int, Hello]
    trial_index: int


def trial_row(
    run: RunFacts,
    attempt: Attempt,
    ending: Ending,
    group: GroupFacts | None,
    ranks: Sequence[RankResult] = (),
    figures: Figures | None = None,
    ledger: Ledger | None = None,
) -> Trial:
    """The row of an attempt. `ranks`, `figures` and `ledger` are there exactly when it ended `ok`."""
    config = attempt.planned.config
    return Trial(
        **_identity(run, attempt),
        **_outcome(ending, config),
        **_asked(config),
        **_ran(run, group, ranks),
        **_figures(figures, attempt.warnings),
        **(asdict(ledger) if ledger else {}),
    )


def _figures(figures: Figures | None, warnings: tuple[str, ...]) -> dict[str, Any]:
    found = asdict(figures) if figures else {"valid": False, "invalid_reasons": "", "warnings": ""}
    return {**found, "warnings": ";".join(text for text in (str(found["warnings"]), *warnings) if text)}


def _identity(run: RunFacts, attempt: Attempt) -> dict[str, Any]:
    config = attempt.planned.config
    return {
        "trial_uid": attempt.trial_uid,
        "sweep": run.sweep,
        "sweep_run_id": run.sweep_run_id,
        "cluster": run.cluster,
        "config_key": attempt.planned.config_key,
        "work_key": config.work_key(),
        "config": config.canonical(),
        "trial_id": attempt.planned.trial_id,
        "repeat": attempt.planned.repeat,
        "attempt": attempt.number,
        "sweep_order": attempt.planned.order,
        "started_at": attempt.started_at,
        "tags": canonical_json(dict(run.tags)),
        "note": run.note,
        "schema_version": SCHEMA_VERSION,
        "raybench_version": __version__,
    }


def _outcome(ending: Ending, config: TrialConfig) -> dict[str, Any]:
    return {
        "outcome": ending.outcome,
        "quality": config.quality,
        "error_type": ending.error_type,
        "error_text": ending.error_text,
        "error_rank": ending.rank,
        "error_host": ending.host,
    }


def _asked(config: TrialConfig) -> dict[str, Any]:
    return {
        "workload": config.workload,
        "model": config.model_name,
        "optimizer": config.optimizer and config.optimizer.name,
        "source": config.source and config.source.name,
        "loader_workers": config.source and config.source.loader_workers,
        "device_requested": config.device,
        **{name: getattr(config, name) for name in (
            "seq_len", "vocab_size", "num_workers", "micro_batch", "grad_accum", "global_batch", "batch_given",
            "precision", "phase", "strategy", "compile", "timing", "isolation", "seed", "nodes", "packing",
            "channels_last", "cudnn_benchmark", "attention", "activation_checkpointing",
            "data_cache",
        )},
    }  # fmt: skip


def _ran(run: RunFacts, group: GroupFacts | None, ranks: Sequence[RankResult]) -> dict[str, Any]:
    always = {
        "ray_address_source": run.ray_address_source,
        "ray_version": run.ray_version,
        "ray_job_id": run.ray_job_id,
        "slurm": run.slurm,
    }
    if group is None:
        return {**always, "node_keys": ""}
    first = group.hellos[0]
    interfaces = {hello.network_interface for hello in group.hellos.values()} - {None}
    by_host = Counter(hello.node.host for hello in group.hellos.values())
    on_gpu = first.device_kind == "cuda"
    return {
        **always,
        "node_keys": ";".join(sorted({hello.node.node_key for hello in group.hellos.values()})),
        "device_kind": first.device_kind,
        "num_nodes": len({hello.node_id for hello in group.hellos.values()}),
        "world_size": len(group.hellos),
        "cpu_threads": first.cpu_threads,
        "backend": first.backend,
        "group_trial_index": group.trial_index,
        "group_uid": group.uid,
        "torch_version": first.torch_version,
        "cuda_version": first.cuda_version if on_gpu else None,
        "driver_version": first.node.driver_version if on_gpu else None,
        "gpu_model": _gpu_models([group.hellos[rank].gpu_model for rank in sorted(group.hellos)]),
        "network_interface": ";".join(sorted(map(str, interfaces))) or None,
        "workers_by_host": ";".join(f"{host}={count}" for host, count in sorted(by_host.items())),
        "memory_room_bytes": min(hello.memory_room_bytes for hello in group.hellos.values()),
        **_effective(ranks),
    }


def _gpu_models(of_ranks: Sequence[str | None]) -> str | None:
    """The model that all have, or in a mixed group that of each rank; None on CPU."""
    known = [model for model in of_ranks if model is not None]
    return known[0] if len(set(known)) == 1 else ";".join(known) or None


def _effective(ranks: Sequence[RankResult]) -> dict[str, Any]:
    if not ranks:
        return {}
    environment = ranks[0].environment
    return {
        "effective_precision": environment.effective_precision,
        "effective_attention": environment.effective_attention,
        "effective_strategy": environment.effective_strategy,
        "effective_channels_last": environment.effective_channels_last,
        "effective_cudnn_benchmark": environment.effective_cudnn_benchmark,
        "effective_optimizer": environment.effective_optimizer,
    }
