"""The driver's thread that serves Tune's requests: it opens the group a trial needs, closes the one before, replaces a
dead one, and commits a row for every attempt, whatever becomes of it.
"""

from __future__ import annotations

import shutil
import threading
import time
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from raybench.cluster.agenda import Agenda
from raybench.cluster.ask_nodes import PROBE_LIMIT_S, ask_nodes, is_there
from raybench.cluster.capacity import NoRoom
from raybench.cluster.deadline import absent_rank, expired, read_stacks
from raybench.cluster.group import GroupDied, WorkerGroup
from raybench.cluster.group_spec import GroupSpec, group_spec, lease_key
from raybench.cluster.inventory import Inventory, refreshed, without
from raybench.cluster.messages import Answers, Order
from raybench.cluster.outcome import Ending, Evidence, clean_text, ending, outcome_of
from raybench.cluster.placement import Placement, place
from raybench.cluster.ray_data import streamed
from raybench.cluster.rows import CLUSTER_CHANGED, Attempt, GroupFacts, RunFacts, trial_row
from raybench.cluster.waiting import wait_for_room
from raybench.engine.precision import unsupported
from raybench.errors import ClusterError, StoreError
from raybench.measure.ledger import ledger
from raybench.measure.summary import figures
from raybench.record.node import Node
from raybench.record.rank import RankResult, RankSteps
from raybench.record.run import Observer, TrialStarted
from raybench.record.trial import Trial
from raybench.results.configs import planned_labels
from raybench.results.resume import Committed, as_earlier
from raybench.results.store import RunStore
from raybench.sources.layout import located
from raybench.sources.prepare import prepare
from raybench.spec.config import TrialConfig
from raybench.spec.trial import PlannedTrial
from raybench.workloads.registry import counts_of

DRIVER_MARGIN_S = 60.0
"""The driver waits this much longer than the workers' own deadline before it ends them by force."""
RETRIED_AT_ONCE = frozenset({"node_lost", "preempted"})
"""Ends that say nothing of the trial: it is run once more, as a whole, on what is left of the cluster."""
CLEAN_LIMIT_S = 15.0
_OK = Ending(outcome="ok")


@dataclass(frozen=True, kw_only=True)
class Finished:
    """Everything an attempt left behind, ready to become rows."""

    trial: Trial
    steps: Mapping[int, RankSteps] = field(default_factory=dict)
    nodes: Sequence[Node] = ()


class Stopped(Exception):
    """The run was told to stop: nothing more is begun or committed."""


class Dispatcher:
    """Serves the requests of one run. `error` is what ended its thread early, None when all went well."""

    def __init__(
        self,
        run: RunFacts,
        *,
        broker: Any,
        agenda: Agenda,
        committed: Committed,
        store: RunStore,
        observer: Observer,
        inventory: Inventory,
        storage: str,
        wait_for_nodes_s: float = 0.0,
    ) -> None:
        self._run, self._broker, self._agenda, self._committed = run, broker, agenda, committed
        self._store, self._observer, self._inventory, self._storage = store, observer, inventory, storage
        self._labels = planned_labels(agenda.reached.values())
        self._began_with = inventory.seen
        self._wait_for_nodes_s = wait_for_nodes_s
        self._waited_for: set[str] = set()
        self._lost: frozenset[str] = frozenset()
        self._stack_dir = str(Path(storage) / "stacks")
        self._group: WorkerGroup | None = None
        self._group_key: tuple[object, ...] | None = None
        self._current: Attempt | None = None
        self._committing = threading.Lock()
        self._stopped = False
        self.error: BaseException | None = None

    # -- the thread --------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Answer requests until there are no more. An error here must not leave Tune waiting for ever."""
        import ray

        try:
            while (trial_id := ray.get(self._broker.next.remote())) is not None:
                planned = self._agenda.trial(trial_id)
                trial = self._trial(planned)
                self._agenda.tell(planned, as_earlier(trial))      # before Tune asks for the next
                ray.get(self._broker.answer.remote(trial_id, _scalars(trial)))
            self._close_group()
            self._clean_nodes()
        except BaseException as error:  # noqa: BLE001  raised again by the main thread, which waits for Tune
            self.error = error
            self._close_group()
            ray.get(self._broker.abort.remote())

    def interrupt(self) -> None:
        """Commit the running attempt as `interrupted`; after this nothing more is. Called from another thread."""
        with self._committing:
            self._stopped = True
            if self._current is not None:
                self._store.commit(trial_row(self._run, self._current, Ending(outcome="interrupted"), None))

    def end_group(self) -> None:
        """End the workers of the running trial, so that the thread comes to its end while Ray is still there."""
        if self._group is not None:
            self._group.end_workers()

    # -- one attempt -------------------------------------------------------------------------------------------------

    def _trial(self, planned: PlannedTrial) -> Trial:
        """An attempt, and another when the cluster and not the trial was to blame."""
        number = self._committed.next_attempt(planned.trial_id)
        trial = self._attempt(planned, number)
        if trial.outcome not in RETRIED_AT_ONCE:
            self._tell_end(trial, planned)
            return trial
        told = clean_text(f"{self._label(planned)}: {trial.outcome}, {trial.error_text}")
        self._observer.notice(f"{told}; once more on what is left")
        trial = self._attempt(planned, number + 1)
        self._tell_end(trial, planned)
        return trial

    def _attempt(self, planned: PlannedTrial, number: int) -> Trial:
        attempt = Attempt(
            trial_uid=uuid.uuid4().hex,
            planned=planned,
            number=number,
            started_at=datetime.now(timezone.utc),
            started_s=time.perf_counter(),
            warnings=self._reread_cluster(),
        )
        with self._committing:
            self._refuse_if_stopped()
            self._current = attempt
        self._store.append_log({"event": "start", "trial_id": planned.trial_id, "trial_uid": attempt.trial_uid})
        finished = self._end_attempt(attempt)
        self._commit(finished)
        for text in self._store.settle():      # without the lock: a signal must not wait for a store that is away
            self._observer.notice(text)
        return finished.trial

    def _commit(self, finished: Finished) -> None:
        with self._committing:
            self._refuse_if_stopped()
            self._current = None
            self._store.commit(finished.trial, finished.steps, nodes=finished.nodes)

    def _refuse_if_stopped(self) -> None:
        if self._stopped:
            raise Stopped

    def _end_attempt(self, attempt: Attempt) -> Finished:
        """Run the attempt; a fault of our own, or of a plug-in's counts, is a row too, and the sweep goes on."""
        try:
            return self._run_attempt(attempt)
        except (StoreError, ClusterError):
            raise
        except Exception as error:  # noqa: BLE001  told in the row, with its traceback
            outcome, error_type = outcome_of(error, attempt.planned.config.workload)
            text, trace = clean_text(str(error)), traceback.format_exc()
            end = Ending(outcome=outcome, error_type=error_type, error_text=text, traceback=trace)
            failed = self._failed(attempt, end, None)
            self._close_group()
            return failed

    def _run_attempt(self, attempt: Attempt) -> Finished:
        """Refuse, or prepare, lease and run."""
        kind = self.device_kind(attempt.planned)
        spec = self._seated(attempt.planned, kind)
        opens_group = isinstance(spec, GroupSpec) and not self._is_leased(attempt.planned, spec)
        self._tell_start(attempt.planned, opens_group)
        if isinstance(spec, Ending):
            return self._failed(attempt, spec, None)
        started_s = time.perf_counter()
        refused = self._prepare(attempt.planned, spec)
        if refused is not None:
            return self._failed(attempt, refused, None)
        prepare_s = time.perf_counter() - started_s
        try:
            group = self._lease(attempt.planned, spec)
        except GroupDied as died:
            self._close_group()
            return self._failed(attempt, _never_ready(died, attempt.planned.config.workload), None)
        return self._run_in_group(attempt, group, prepare_s)

    def device_kind(self, planned: PlannedTrial) -> str:
        """The device a trial runs on: as asked, or what `auto` means in this run."""
        asked = planned.config.device
        return self._inventory.device_kind if asked == "auto" else asked

    def _seated(self, planned: PlannedTrial, device_kind: str) -> GroupSpec | Ending:
        """The group a trial needs, or why it is not to start here."""
        config = planned.config
        dominated = self._agenda.skip_reason(planned)
        if dominated is not None:
            return Ending(outcome="skipped", error_type="dominated", error_text=dominated)
        reason = unsupported(config, device_kind)
        if reason is not None:
            return Ending(outcome="infeasible", error_type="unsupported", error_text=reason)
        found = self._placed(config, device_kind)
        if isinstance(found, NoRoom) and self._wait_for_nodes_s and found.reason not in self._waited_for:
            found = self._wait_for_room(config, device_kind, found.reason)
        if isinstance(found, NoRoom):
            return Ending(outcome="infeasible", error_type="capacity", error_text=found.reason)
        return group_spec(planned, device_kind=device_kind, placement=found)

    def _placed(self, config: TrialConfig, device_kind: str) -> Placement | NoRoom:
        """Where the workers sit, by what is free while no group of ours is open: one is open at a time."""
        return place(
            self._inventory.rooms,
            workers=config.num_workers,
            nodes=config.nodes,
            packing=config.packing,
            device_kind=device_kind,
            cpus_asked=config.cpus_per_worker,
            data_cpus=config.data_cpus_held,
            gpu_model=config.gpu_model,
            resources=config.resources,
        )

    def _wait_for_room(self, config: TrialConfig, device_kind: str, reason: str) -> Placement | NoRoom:
        """Wait for nodes as long as the command was told to, once for each thing that is missing."""
        self._observer.notice(f"{reason}; waiting up to {self._wait_for_nodes_s:g} s for more nodes")

        def look() -> Placement | NoRoom:
            self._reread_cluster()
            return self._placed(config, device_kind)

        found = wait_for_room(
            look, workers=config.num_workers, device_kind=device_kind, resources=config.resources,
            limit_s=self._wait_for_nodes_s,
        )  # fmt: skip
        if isinstance(found, NoRoom):
            self._waited_for.add(found.reason)
        return found

    def _prepare(self, planned: PlannedTrial, spec: GroupSpec) -> Ending | None:
        """Prepare or check the trial's data by a task on each of the workers' nodes, outside any process group."""
        if planned.config.source is None:
            return None
        def told() -> None:
            self._observer.notice(f"data for {self._label(planned)} takes long: this run or another is writing it")

        # A Ray Data set is built by the driver, which looks into its files.
        driver = (self._inventory.node_id,) if planned.config.source.name == "ray_data" else ()
        asked = (*spec.node_ids, *driver)
        failed = ask_nodes(prepare, asked, located(planned.config), limit_s=None, on_slow=told).failed
        for node_id, error in failed.items():
            return _not_prepared(error, planned.config.workload, self._inventory.host_of(node_id))
        return None

    # -- the group ---------------------------------------------------------------------------------------------------

    def _is_leased(self, planned: PlannedTrial, spec: GroupSpec) -> bool:
        return self._group is not None and self._group.alive and self._group_key == lease_key(planned, spec)

    def _lease(self, planned: PlannedTrial, spec: GroupSpec) -> WorkerGroup:
        """The group that the trial needs: the one at hand, or a new one after closing that."""
        if self._is_leased(planned, spec):
            assert self._group is not None
            return self._group
        self._close_group()
        group = WorkerGroup(
            spec,
            storage=self._storage,
            sweep_run_id=self._run.sweep_run_id,
        )
        self._group, self._group_key = group, lease_key(planned, spec)
        group.wait_ready(self._tell_stall)
        return group

    def _close_group(self) -> None:
        group, self._group, self._group_key = self._group, None, None
        if group is not None:
            group.close()

    def _run_in_group(self, attempt: Attempt, group: WorkerGroup, prepare_s: float) -> Finished:
        config = attempt.planned.config
        order = Order(
            trial_uid=attempt.trial_uid, config=located(config), deadline_s=config.deadline_s, stack_dir=self._stack_dir
        )
        node_ids = [group.hellos[rank].node_id for rank in sorted(group.hellos)]
        facts = GroupFacts(uid=group.uid, hellos=group.hellos, trial_index=group.trials_served)
        opened_s = time.perf_counter()
        with streamed(order.config, node_ids) as streams:
            prepare_s += time.perf_counter() - opened_s
            answers = group.run(replace(order, streams=streams), config.deadline_s + DRIVER_MARGIN_S)
        if len(answers.done) < len(group.hellos):
            failed = self._failed(attempt, self._why(group, order, answers), facts)
            self._close_group()
            return failed
        if not all(done.clean for done in answers.done.values()):
            self._close_group()
        return self._succeeded(attempt, facts, answers, group, prepare_s)

    def _why(self, group: WorkerGroup, order: Order, answers: Answers) -> Ending:
        """Gather the evidence of a failed trial and judge it."""
        asked = {hello.node_id for hello in group.hellos.values()}
        told = ask_nodes(read_stacks, asked, order.stack_dir, order.trial_uid, limit_s=PROBE_LIMIT_S)
        lost = self._lost_nodes(told.failed)
        stacks = {rank: text for found in told.results.values() for rank, text in found.items()}
        dead = frozenset(set(group.hellos) - set(answers.done) - {failure.rank for failure in answers.failures})
        marked = frozenset(rank for rank, text in stacks.items() if expired(text))
        return ending(Evidence(
            workload=order.config.workload,
            deadline_s=order.deadline_s,
            expired=marked or (dead if group.forced else frozenset()),
            absent=absent_rank(stacks, len(group.hellos)),
            failures=answers.failures,
            group_error=group.error,
            hosts={rank: hello.node.host for rank, hello in group.hellos.items()},
            lost_nodes=frozenset(h.node.host for h in group.hellos.values() if h.node_id in lost),
            stacks=stacks,
        ))  # fmt: skip

    # -- the cluster -------------------------------------------------------------------------------------------------

    def _reread_cluster(self) -> tuple[str, ...]:
        """Look whether nodes left or joined; the warning for rows of a cluster that is not what the sweep began on."""
        before = self._inventory
        self._inventory = without(refreshed(before, self._run.sweep_run_id), self._lost)
        if self._inventory.seen != before.seen:
            self._observer.notice(f"the cluster changed; it now has {self._inventory.hardware}")
        changed = self._inventory.seen != self._began_with or bool(self._lost)
        return (CLUSTER_CHANGED,) if changed else ()

    def _lost_nodes(self, failed: Mapping[str, BaseException | None]) -> frozenset[str]:
        """Of nodes that did not answer, those that Ray no longer lists, or that are silent when asked once more."""
        import ray

        if not failed:
            return frozenset()
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        silent = ask_nodes(is_there, failed.keys() & alive, limit_s=PROBE_LIMIT_S).failed
        found = frozenset(failed.keys() - alive) | silent.keys()
        self._lost |= found
        return found

    def _clean_nodes(self) -> None:
        """Remove what workers left on other nodes; the driver's own folder is removed with the run."""
        others = [room.node_id for room in self._inventory.rooms if room.node_id != self._inventory.node_id]
        ask_nodes(_remove_folder, others, self._storage, limit_s=CLEAN_LIMIT_S)

    # -- rows --------------------------------------------------------------------------------------------------------

    def _failed(self, attempt: Attempt, end: Ending, facts: GroupFacts | None) -> Finished:
        if end.traceback:
            self._store.write_traceback(attempt.trial_uid, end.traceback)
        return Finished(trial=trial_row(self._run, attempt, end, facts), nodes=self._nodes(facts))

    def _succeeded(
        self, attempt: Attempt, facts: GroupFacts, answers: Answers, group: WorkerGroup, prepare_s: float
    ) -> Finished:
        ranks = [answers.done[rank].result for rank in sorted(answers.done)]
        config = attempt.planned.config
        measured = figures(config, counts_of(config), ranks)
        cold = facts.trial_index == 0
        spent = ledger(
            wall_s=time.perf_counter() - attempt.started_s,
            placement_s=group.placement_s if cold else 0.0,
            worker_start_s=group.worker_start_s if cold else 0.0,
            prepare_s=prepare_s,
            **_longest(ranks),
        )
        trial = trial_row(self._run, attempt, _OK, facts, ranks, measured, spent)
        return Finished(trial=trial, steps={rank.rank: rank.steps for rank in ranks}, nodes=self._nodes(facts))

    def _nodes(self, facts: GroupFacts | None) -> list[Node]:
        """Every node that the run knows of; where there is one, what its workers said."""
        hellos = facts.hellos.values() if facts else ()
        return list({node.node_key: node for node in (*self._inventory.nodes, *(h.node for h in hellos))}.values())

    # -- telling -----------------------------------------------------------------------------------------------------

    def _tell_start(self, planned: PlannedTrial, opens_group: bool) -> None:
        self._observer.trial_started(
            TrialStarted(
                trial_id=planned.trial_id,
                label=self._label(planned),
                position=planned.order + 1,
                planned=self._agenda.num_with_probes,
                opens_group=opens_group,
            )
        )

    def _label(self, planned: PlannedTrial) -> str:
        """What a person recognises the trial by, also among others that look alike; probes and later stages as such."""
        return planned.label(self._labels.get(planned.point_id))

    def _tell_end(self, trial: Trial, planned: PlannedTrial) -> None:
        self._observer.trial_ended(trial, self._label(planned), planned.order + 1)

    def _tell_stall(self) -> None:
        """No progress for 30 s after a lease: say who holds and who waits for what."""
        import ray

        total, free = ray.cluster_resources(), ray.available_resources()
        held = {name: total[name] - free.get(name, 0.0) for name in ("CPU", "GPU") if name in total}
        counts = ", ".join(f"{held[name]:g} of {total[name]:g} {name}" for name in held)
        self._observer.notice(f"no worker is ready yet: Ray has given out {counts}; waiting for this sweep's group")


def _never_ready(died: GroupDied, workload: str) -> Ending:
    if died.cause is None:
        return Ending(outcome="infeasible", error_type="StartTimeout", error_text=str(died))
    return ending(Evidence(workload=workload, deadline_s=0.0, group_error=died.cause, hosts={}, stacks={}))


def _not_prepared(error: Any, workload: str, host: str | None) -> Ending:
    """What a failed task of `prepare` means."""
    cause = getattr(error, "cause", None) or error
    outcome, error_type = outcome_of(cause, workload)
    if type(error).__name__ in ("NodeDiedError", "TaskUnschedulableError", "WorkerCrashedError"):
        outcome = "node_lost" if type(error).__name__ != "WorkerCrashedError" else "worker_died"
    return Ending(
        outcome=outcome, error_type=error_type, error_text=clean_text(str(cause)), host=host, traceback=str(error)
    )


def _remove_folder(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _longest(ranks: Sequence[RankResult]) -> dict[str, float]:
    names = ("build_s", "warmup_s", "measured_s", "teardown_s", "fingerprint_s")
    return {name: max(getattr(rank, name) for rank in ranks) for name in names}


def _scalars(trial: Trial) -> dict[str, Any]:
    """What Tune's callbacks see of a trial's end: a few scalars, none of them null."""
    names = ("outcome", "valid", "samples_per_s", "tokens_per_s", "step_ms_p50", "measured_s", "overhead_s", "mfu")
    return {name: getattr(trial, name) for name in names if getattr(trial, name) is not None}


