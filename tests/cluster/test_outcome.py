"""How an attempt ended, from made-up evidence; the real faults are in the Ray tests."""

import pytest

from raybench.cluster.outcome import Evidence, clean_text, ending, outcome_of
from raybench.errors import DataError, GpuBusyError, UnsupportedError
from raybench.record.rank import RankFailure


class OutOfMemoryError(RuntimeError):
    """Stands for torch's."""


class RayOutOfMemory(RuntimeError):
    """Stands for Ray's."""


RayOutOfMemory.__name__, RayOutOfMemory.__module__ = "OutOfMemoryError", "ray.exceptions"


class ActorDiedError(Exception):
    """Stands for Ray's."""


class WorkerHealthCheckFailedError(Exception):
    """Stands for Train's: it holds the real cause."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("health check failed")
        self.health_check_failure = cause


class WorkerGroupError(Exception):
    """Stands for Train's."""

    def __init__(self, failures: dict[int, Exception]) -> None:
        super().__init__("group failed")
        self.worker_failures = failures


def told(rank: int, outcome: str, elapsed_s: float = 1.0) -> RankFailure:
    host = f"h{rank}"
    return RankFailure(
        rank=rank, host=host, outcome=outcome, error_type="E", error_text="t", traceback="tb", elapsed_s=elapsed_s
    )


def evidence(**changes) -> Evidence:
    return Evidence(**({"workload": "encdec", "deadline_s": 6.0, "hosts": {0: "h0", 1: "h1"}, "stacks": {}} | changes))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (OutOfMemoryError("CUDA out of memory"), "oom_cuda"),
        (MemoryError(), "oom_host"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"), "oom_host"),
        (DataError("shard_0000.bin"), "data_error"),
        (GpuBusyError("2.0 GiB held"), "gpu_busy"),
        (RuntimeError("[gloo/transport/tcp/pair.cc] Connection closed by peer"), "comm_error"),
        (ValueError("Default process group has not been initialized, please call init_process_group."), "comm_error"),
        (RuntimeError("CUDA error: out of memory"), "oom_cuda"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "oom_cuda"),
        (RuntimeError("a plain error about a socket or a collective"), "internal_error"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "gpu_fault"),
        (ValueError("raised in a test, outside any workload"), "internal_error"),
    ],
)
def test_exceptions(error, outcome):
    """Each class of error has one outcome."""
    assert outcome_of(error, "encdec")[0] == outcome


def test_unsupported_is_infeasible():
    """What the chip cannot do is no fault of the workload."""
    assert outcome_of(UnsupportedError("tf32"), "encdec") == ("infeasible", "unsupported")


def test_raised_in_workload_code():
    """The innermost frame of ours decides: here a count of the matmul workload that is given nonsense."""
    from raybench.workloads.registry import workload

    with pytest.raises(AttributeError) as caught:
        workload("matmul").counts(None)  # type: ignore[arg-type]
    assert outcome_of(caught.value, "matmul")[0] == "workload_error"


def test_a_dead_rank_is_the_root_not_its_peer():
    """Rank 0's collective failed because rank 1 was killed."""
    group = WorkerGroupError({
        0: RuntimeError("Connection closed by peer"),
        1: WorkerHealthCheckFailedError(ActorDiedError("killed")),
    })
    end = ending(evidence(failures=(told(0, "comm_error"),), group_error=group))
    assert (end.outcome, end.rank, end.host, end.error_type) == ("worker_died", 1, "h1", "ActorDiedError")


def test_a_raising_rank_is_the_root_even_when_told_later():
    """The peer's collective error arrived first; the cause is what counts."""
    end = ending(evidence(failures=(told(0, "comm_error"), told(1, "workload_error"))))
    assert (end.outcome, end.rank) == ("workload_error", 1)


def test_the_deadline_is_looked_at_first():
    """Both ranks look like dead actors after a timeout."""
    died = WorkerHealthCheckFailedError(ActorDiedError("exit 1"))
    group = WorkerGroupError({0: died, 1: died})
    end = ending(evidence(expired=frozenset({0, 1}), absent=1, group_error=group, stacks={0: "a", 1: "b"}))
    assert (end.outcome, end.rank, end.host) == ("timeout", 1, "h1")
    assert "6 s" in (end.error_text or "")


def test_an_error_before_the_deadline_is_the_root():
    """Rank 1 raised at 5.6 s; rank 0 ran into its deadline at 6 s because it waited for rank 1."""
    end = ending(evidence(expired=frozenset({0}), failures=(told(1, "workload_error", 5.6),), stacks={0: "a"}))
    assert (end.outcome, end.rank) == ("workload_error", 1)


def test_an_error_after_the_deadline_is_a_consequence():
    """Rank 0 was ended by its deadline at 6 s, whereupon something in rank 1 broke."""
    end = ending(evidence(expired=frozenset({0}), failures=(told(1, "internal_error", 6.1),), stacks={0: "a"}))
    assert end.outcome == "timeout"


def test_an_error_before_any_trial():
    """Train wraps it; memory that is full before the first trial is held by others."""
    wrapped = Exception("Train's wrapper")
    wrapped._base_exc = OutOfMemoryError("CUDA out of memory")  # type: ignore[attr-defined]
    end = ending(evidence(group_error=WorkerGroupError({1: wrapped})))
    assert (end.outcome, end.rank, end.error_type) == ("gpu_busy", 1, "OutOfMemoryError")


def test_rays_memory_monitor_is_host_memory():
    """Ray ends a worker when the node runs out; the cause is inside the health check's error."""
    group = WorkerGroupError({1: WorkerHealthCheckFailedError(RayOutOfMemory("node over threshold"))})
    assert ending(evidence(group_error=group)).outcome == "oom_host"


def test_a_lost_node_is_not_a_dead_worker():
    """Its worker is dead too, but the node is the cause."""
    group = WorkerGroupError({1: WorkerHealthCheckFailedError(ActorDiedError("died"))})
    assert ending(evidence(group_error=group, lost_nodes=frozenset({"h1"}))).outcome == "node_lost"


def test_only_collectives_failed():
    """All ranks lived: the network is the cause."""
    assert ending(evidence(failures=(told(0, "comm_error"), told(1, "comm_error")))).outcome == "comm_error"


def test_nothing_is_known():
    """Never `ok`, and never blamed on the user."""
    assert ending(evidence()).outcome == "internal_error"


def test_text_is_cleaned_and_cut():
    """Terminal escapes and control characters go; 2 kB stay, never half a character."""
    assert clean_text("\x1b]0;title\x07\x1b[31mred\x1b[0m [bold]\x00\n") == "red [bold]"
    assert len(clean_text("é" * 5000).encode()) == 2048


def test_a_node_of_which_only_its_peers_tell():
    """Its collective's error reached the driver, its own end did not: the node is to blame, not the collective."""
    found = ending(evidence(failures=(told(0, "comm_error", 1.0),), lost_nodes=frozenset({"h1"})))
    assert (found.outcome, found.rank, found.host) == ("node_lost", 1, "h1")
