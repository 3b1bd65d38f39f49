"""One worker group, seen from the driver: a `TorchTrainer.fit()` in a thread, kept warm by its mailbox."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from raybench.cluster.ask_nodes import actor_here, ask_nodes
from raybench.cluster.code_version import refuse_other_code
from raybench.cluster.group_spec import GroupSpec
from raybench.cluster.mailbox import Mailbox
from raybench.cluster.messages import Answers, Hello, Order
from raybench.cluster.trainer import trainer

PROCESS_GROUP_TIMEOUT_S = 600
"""Once per group; the trial's own deadline is the watchdog's."""
CLOSE_LIMIT_S = 15.0
KILL_LIMIT_S = 15.0
"""For a node to end processes of ours; one that does not answer is gone with them."""
START_LIMIT_SETTING = "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"
STALL_NOTICE_S = 30.0


class GroupDied(Exception):
    """The group ended, or took too long, before its workers were ready. `cause` is what `fit` raised, if it did."""

    def __init__(self, why: str, cause: BaseException | None) -> None:
        super().__init__(why)
        self.cause = cause


class WorkerGroup:
    """Worker processes that serve one trial after the other.

    `uid` tells it from all others. `placement_s` and `worker_start_s` are what opening took: waiting for resources, and
    the workers' own start. `trials_served` is 0 in a new group. `forced`: its workers were ended because they passed
    the driver's own limit.
    """

    def __init__(self, spec: GroupSpec, *, storage: str, sweep_run_id: str) -> None:
        self.spec = spec
        self.uid = uuid.uuid4().hex
        self.hellos: dict[int, Hello] = {}
        self.trials_served = 0
        self.forced = False
        self.placement_s = self.worker_start_s = 0.0
        self.error: BaseException | None = None
        self._started_s = time.perf_counter()
        self._mailbox = actor_here(Mailbox).remote()
        self._trainer = _trainer(spec, self._mailbox, storage, sweep_run_id)
        self._thread = threading.Thread(target=self._fit, name="raybench-group", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it can serve another trial; a worker may die while it idles."""
        return self._thread.is_alive() and not self.forced

    def wait_ready(self, on_stall: Callable[[], None]) -> None:
        """Wait until every worker said hello. Raises GroupDied, or ClusterError when a worker runs other code."""
        import ray

        pending = self._mailbox.ready.remote(self.spec.workers)
        limit_s = 60.0 + 3 * start_limit_s(self.spec.workers)      # Train itself tries a start up to three times
        hellos, dead = _get_noticing(ray, pending, limit_s, on_stall)
        if dead is not None:
            raise GroupDied(dead, self.error)
        opened_s = time.perf_counter() - self._started_s
        self.hellos = hellos
        self.worker_start_s = min(opened_s, max(hello.process_age_s for hello in hellos.values()))
        self.placement_s = opened_s - self.worker_start_s
        refuse_other_code((h.node.host, h.raybench_version, h.source_hash) for h in hellos.values())

    def run(self, order: Order, limit_s: float) -> Answers:
        """Give the workers a trial and wait for how it ends, at most `limit_s`; then the group is ended by force."""
        import ray

        ray.get(self._mailbox.submit.remote(order))
        pending = self._mailbox.answers.remote(order.trial_uid, self.spec.workers)
        try:
            answers: Answers = ray.get(pending, timeout=limit_s)
        except ray.exceptions.GetTimeoutError:
            self.forced = True
            self.end_workers()
            answers = ray.get(pending)
        self.trials_served += 1
        if answers.dead is not None:
            self._thread.join()
        return answers

    def close(self) -> None:
        """Tell the workers to stop and wait until all they held is free again."""
        import ray

        with contextlib.suppress(ray.exceptions.RayActorError):      # a mailbox that died can tell them nothing
            ray.get(self._mailbox.submit.remote(None))
        self._thread.join(CLOSE_LIMIT_S)
        if self._thread.is_alive():
            self.end_workers()
            self._thread.join(CLOSE_LIMIT_S)

    def end_workers(self) -> None:
        """End the worker processes by their handles; one that is stopped or hangs does not listen to anything else."""
        import ray

        for hello in self.hellos.values():
            ray.kill(hello.handle)
        for node_id in {hello.node_id for hello in self.hellos.values()}:
            pids = [hello.pid for hello in self.hellos.values() if hello.node_id == node_id]
            ask_nodes(_kill_processes, [node_id], pids, limit_s=KILL_LIMIT_S)

    def _fit(self) -> None:
        import ray

        why = "closed"
        try:
            self._trainer.fit()
        except Exception as error:  # noqa: BLE001  whatever ends the group is evidence for the outcome
            self.error, why = error, type(error).__name__
        with contextlib.suppress(ray.exceptions.RayActorError):
            ray.get(self._mailbox.close.remote(why))


def start_limit_s(workers: int) -> int:
    """Seconds Train may take to start a group: 16 workers took 52 s on two cores."""
    return 30 + 5 * workers


def _kill_processes(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):      # `ray.kill` was faster
            os.kill(pid, signal.SIGKILL)


def _trainer(spec: GroupSpec, mailbox: Any, storage: str, sweep_run_id: str) -> Any:
    from raybench.cluster.worker import serve

    os.environ[START_LIMIT_SETTING] = str(start_limit_s(spec.workers))
    arguments = {
        "mailbox": mailbox,
        "sweep_run_id": sweep_run_id,
        "threads": spec.seat.threads,
        "start_limit_s": 2 * start_limit_s(spec.workers),
    }
    return trainer(
        spec,
        serve,
        arguments,
        storage=storage,
        # A hash: Train takes `../..` in a name for a path.
        name=hashlib.sha256(f"{sweep_run_id}/{time.monotonic_ns()}".encode()).hexdigest()[:16],
        process_group_timeout_s=PROCESS_GROUP_TIMEOUT_S,
        controller_retries=2,
    )


def _get_noticing(
    ray: Any, pending: Any, limit_s: float, on_stall: Callable[[], None]
) -> tuple[dict[int, Hello], str | None]:
    """Wait for `pending`, say so every 30 s without progress, and give up after `limit_s`."""
    waited_s = 0.0
    while True:
        done, _ = ray.wait([pending], timeout=STALL_NOTICE_S)
        if done:
            answer: tuple[dict[int, Hello], str | None] = ray.get(pending)
            return answer
        waited_s += STALL_NOTICE_S
        on_stall()
        if waited_s > limit_s:
            return {}, f"no worker was ready after {waited_s:.0f} s"
