"""How an attempt ended: exceptions, dead ranks and markers turned into one outcome and one root.

The root is the dead or raising rank, never the peers whose collectives failed because of it. Classes of torch and Ray
are recognised by name, so that this reads the same in a worker, in the driver and in a test.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType

from raybench.errors import DataError, GpuBusyError, UnsupportedError
from raybench.record.rank import RankFailure

TEXT_LIMIT_BYTES = 2048
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COMM = re.compile(
    r"gloo/|nccl\w*Error|NCCL error|Connection (closed|reset) by peer|Broken pipe|Socket Timeout|socketStartConnect"
)
_NO_GROUP = re.compile(r"[Dd]efault process group has not been initialized")      # Train took it away: a peer is gone
_CUDA_FULL = re.compile(r"CUDA error: out of memory|(CUBLAS|CUDNN)_STATUS_ALLOC_FAILED")      # beside torch's allocator
_GPU_FAULT = re.compile(r"uncorrectable ECC|GPU is lost|fallen off the bus|hardware error|illegal memory access", re.I)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How an attempt ended, and its root. `traceback` is everything known, for the file under `_meta`."""

    outcome: str
    error_type: str | None = None
    error_text: str | None = None
    rank: int | None = None
    host: str | None = None
    traceback: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the driver has of an attempt that did not end well.

    `expired` holds the ranks whose deadline marker was found, or that had to be ended by force long after it; `stacks`
    what they and their peers left. `group_error` is what `TorchTrainer.fit` raised. `hosts` names each rank's host, and
    `lost_nodes` the hosts that Ray no longer lists as alive.
    """

    workload: str
    deadline_s: float
    expired: frozenset[int] = frozenset()
    absent: int | None = None
    failures: tuple[RankFailure, ...] = ()
    group_error: BaseException | None = None
    hosts: Mapping[int, str]
    lost_nodes: frozenset[str] = frozenset()
    stacks: Mapping[int, str]


def clean_text(text: str) -> str:
    """One line of at most 2 kB of UTF-8, control characters and terminal escapes removed."""
    kept = " ".join(_CONTROL.sub("", text).split()).encode("utf-8", "replace")[:TEXT_LIMIT_BYTES]
    return kept.decode("utf-8", "ignore")


def describe(
    error: BaseException, trace: str, workload: str, *, rank: int, host: str, elapsed_s: float
) -> RankFailure:
    """What a rank tells of its own error, in the process where torch's classes and the frames are at hand."""
    outcome, error_type = outcome_of(error, workload)
    return RankFailure(
        rank=rank,
        host=host,
        outcome=outcome,
        error_type=error_type,
        error_text=clean_text(f"it called sys.exit({error.code!r})" if isinstance(error, SystemExit) else str(error)),
        traceback=trace,
        elapsed_s=elapsed_s,
    )


def outcome_of(error: BaseException, workload: str) -> tuple[str, str]:
    """Outcome and `error_type` of an exception raised inside a rank or while preparing its data."""
    name, text = type(error).__name__, str(error)
    ancestors = {cls.__name__ for cls in type(error).__mro__}
    if isinstance(error, DataError):
        return "data_error", name
    if isinstance(error, UnsupportedError):
        return "infeasible", "unsupported"
    if isinstance(error, GpuBusyError):
        return "gpu_busy", name
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in text:
        return "oom_host", name
    if name == "OutOfMemoryError":
        return ("oom_host" if "ray" in type(error).__module__ else "oom_cuda"), name
    if _CUDA_FULL.search(text):
        return "oom_cuda", name
    if "CUDA" in text and _GPU_FAULT.search(text):
        return "gpu_fault", name
    if "DistError" in ancestors or (name == "RuntimeError" and _raised_by_collective(error)) or _NO_GROUP.search(text):
        return "comm_error", name
    return ("workload_error" if _raised_by_workload(error, workload) else "internal_error"), name


def ending(evidence: Evidence) -> Ending:
    """The outcome and its root, by the first rule that applies; every rule looks for a cause, not a consequence."""
    rules = (
        _told_in_time, _timed_out, _ray_out_of_memory, _told, _preempted, _lost_node, _never_started, _died, _raised,
        _told_comm,
    )  # fmt: skip
    for rule in rules:
        found = rule(evidence)
        if found is not None:
            return found
    error = evidence.group_error
    return Ending(
        outcome="internal_error",
        error_type=type(error).__name__ if error else "GroupEnded",
        error_text=clean_text(str(error) if error else "the worker group ended without a word"),
        traceback=_all_text(evidence),
    )


def _timed_out(evidence: Evidence) -> Ending | None:
    if not evidence.expired:
        return None
    rank = evidence.absent if evidence.absent is not None else (
        min(evidence.expired) if len(evidence.expired) == 1 else None
    )
    who = f"rank {rank} " if rank is not None else "the trial "
    return Ending(
        outcome="timeout",
        error_type="DeadlineExceeded",
        error_text=f"{who}did not end within {evidence.deadline_s:g} s; the stacks are in the traceback file",
        rank=rank,
        host=evidence.hosts.get(rank) if rank is not None else None,
        traceback=_all_text(evidence),
    )


def _ray_out_of_memory(evidence: Evidence) -> Ending | None:
    for rank, error in _group_causes(evidence.group_error):
        if type(error).__name__ == "OutOfMemoryError" and type(error).__module__.startswith("ray"):
            return _from_exception(evidence, "oom_host", rank, error)
    return None


def _told_in_time(evidence: Evidence) -> Ending | None:
    """A failure before the deadline: the peers then ran into theirs only because they waited for that rank."""
    in_time = tuple(failure for failure in evidence.failures if failure.elapsed_s < evidence.deadline_s)
    return _told(replace(evidence, failures=in_time))


def _told(evidence: Evidence) -> Ending | None:
    """The first failure that a rank told of and that is no mere consequence."""
    return next((_from_failure(evidence, f) for f in evidence.failures if f.outcome != "comm_error"), None)


def _raised(evidence: Evidence) -> Ending | None:
    """An error before the worker was ready for any trial. Memory that is full by then is held by others."""
    for rank, error in _group_causes(evidence.group_error):
        cause = getattr(error, "_base_exc", None)      # Train's wrapper keeps the error there
        if rank is not None and cause is not None:
            outcome, _ = outcome_of(cause, evidence.workload)
            outcome = {"oom_cuda": "gpu_busy", "workload_error": "internal_error"}.get(outcome, outcome)
            return _from_exception(evidence, outcome, rank, cause)
    return None


def _told_comm(evidence: Evidence) -> Ending | None:
    return next((_from_failure(evidence, failure) for failure in evidence.failures), None)


def _preempted(evidence: Evidence) -> Ending | None:
    if type(evidence.group_error).__name__ != "PreemptionError":
        return None
    return _from_exception(evidence, "preempted", None, evidence.group_error)


def _lost_node(evidence: Evidence) -> Ending | None:
    for rank, error in _group_causes(evidence.group_error):
        host = evidence.hosts.get(rank) if rank is not None else None
        if type(error).__name__ == "NodeDiedError" or host in evidence.lost_nodes:
            return _from_exception(evidence, "node_lost", rank, error)
    return _silent_node(evidence)


def _silent_node(evidence: Evidence) -> Ending | None:
    """A lost node of which only the peers told: their collectives failed."""
    gone = [(rank, host) for rank, host in sorted(evidence.hosts.items()) if host in evidence.lost_nodes]
    if not gone:
        return None
    rank, host = gone[0]
    text = f"the node {host} no longer answers"
    return Ending(
        outcome="node_lost", error_type="NodeLost", error_text=text, rank=rank, host=host, traceback=_all_text(evidence)
    )


def _never_started(evidence: Evidence) -> Ending | None:
    names = {"WorkerGroupStartupTimeoutError", "InsufficientClusterResourcesError"}
    for rank, error in _group_causes(evidence.group_error):
        if type(error).__name__ in names:
            return _from_exception(evidence, "infeasible", rank, error)
    return None


def _died(evidence: Evidence) -> Ending | None:
    dead = {"ActorDiedError", "ActorUnavailableError", "WorkerCrashedError", "WorkerHealthCheckTimeoutError"}
    for rank, error in _group_causes(evidence.group_error):
        if type(error).__name__ in dead:
            return _from_exception(evidence, "worker_died", rank, error)
    return None


def _group_causes(error: BaseException | None) -> Iterator[tuple[int | None, BaseException]]:
    """Every exception that a group's error holds, outermost last, with the rank it happened on."""
    if error is None:
        return
    for rank, failure in sorted(getattr(error, "worker_failures", {}).items()):
        inner = getattr(failure, "health_check_failure", None)
        yield from ((rank, cause) for cause in (inner, failure) if cause is not None)
    inner = getattr(error, "controller_failure", None)
    if inner is not None:
        yield from _group_causes(inner)
    yield None, error


def _from_failure(evidence: Evidence, failure: RankFailure) -> Ending:
    return Ending(
        outcome=failure.outcome,
        error_type=failure.error_type,
        error_text=failure.error_text,
        rank=failure.rank,
        host=failure.host,
        traceback=_all_text(evidence),
    )


def _from_exception(evidence: Evidence, outcome: str, rank: int | None, error: BaseException | None) -> Ending:
    return Ending(
        outcome=outcome,
        error_type=type(error).__name__,
        error_text=clean_text(str(error)),
        rank=rank,
        host=evidence.hosts.get(rank) if rank is not None else None,
        traceback=_all_text(evidence),
    )


def _all_text(evidence: Evidence) -> str:
    parts = [f"rank {failure.rank} on {failure.host}:\n{failure.traceback}" for failure in evidence.failures]
    parts += [f"rank {rank}, stack at its end:\n{text}" for rank, text in evidence.stacks.items()]
    if evidence.group_error is not None:
        parts.append(f"worker group:\n{evidence.group_error}")
    return "\n\n".join(parts)


def _raised_by_collective(error: BaseException) -> bool:
    """A RuntimeError of a collective: its text names the transport, or its innermost frame is torch.distributed's."""
    frames = traceback.extract_tb(error.__traceback__)
    innermost = frames[-1].filename if frames else ""
    return "torch/distributed" in innermost or bool(_COMM.search(str(error)))


def _raised_by_workload(error: BaseException, workload: str) -> bool:
    """Whether the innermost frame that is not a library's lies in the workload's own package."""
    ours = [frame for frame in _modules(error.__traceback__) if frame.startswith(("raybench.", *_packages(workload)))]
    return bool(ours) and ours[-1].startswith(_packages(workload))


def _packages(workload: str) -> tuple[str, ...]:
    """Module prefixes of workload code: our own workloads, and the packages that plug-ins' code lies in."""
    from raybench.spec.built_in import source_kinds
    from raybench.workloads.registry import workload as find

    codes = [find(workload).code, *(kind.open for kind in source_kinds().values())]
    packages = {code.partition(":")[0].partition(".")[0] for code in codes} - {"raybench"}
    return ("raybench.workloads.", *(f"{package}." for package in sorted(packages)))


def _modules(trace: TracebackType | None) -> list[str]:
    names = []
    while trace is not None:
        names.append(f"{trace.tb_frame.f_globals.get('__name__', '')}.")
        trace = trace.tb_next
    return names
