"""A run from a sweep file to its last committed row."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raybench.cluster.agenda import Agenda
from raybench.cluster.ask_nodes import actor_here
from raybench.cluster.batch_job import ray_job_id, slurm_facts
from raybench.cluster.capacity import TUNE_CPUS
from raybench.cluster.checkup import usable_cores
from raybench.cluster.code_version import source_hash
from raybench.cluster.connect import Choice, join, look_and_choose, session_folder
from raybench.cluster.exit_code import exit_code
from raybench.cluster.group import START_LIMIT_SETTING
from raybench.cluster.inventory import Inventory, take_inventory, worker_counts
from raybench.cluster.naming import cluster_name, host_of
from raybench.cluster.needs import need
from raybench.cluster.options import RunOptions
from raybench.cluster.preflight import preflight
from raybench.cluster.quiet import printing_into
from raybench.cluster.rows import RunFacts
from raybench.cluster.signals import EXIT_INTERRUPTED, SignalWatch, watching_signals
from raybench.errors import StoreError, UsageError
from raybench.record.run import Observer, RunClosed, RunOpened
from raybench.record.trial import Trial
from raybench.results.latest import latest
from raybench.results.layout import new_run_id
from raybench.results.read import UnreadableFileWarning
from raybench.results.resume import Committed, EarlierAttempt, earlier_attempts, other_clusters
from raybench.results.store import RunStore
from raybench.spec.expand import Expansion, expand, nothing_left
from raybench.spec.reader import read_sweep
from raybench.spec.selection import Only, only_texts
from raybench.spec.sweep import SweepSpec
from raybench.spec.trial import PlannedTrial, worker_group
from raybench.version import __version__

if TYPE_CHECKING:
    from raybench.cluster.dispatcher import Dispatcher

# Read by Ray's own processes when they start. A benchmark trial is never restarted half-way, its end must be known at
# once, and Tune must neither take Ctrl-C for itself nor log.
RAY_SETTINGS = {
    "RAY_TRAIN_V2_ENABLED": "1",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_WORKER_HEALTH_CHECK_TIMEOUT_S": "120",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


_THREAD_LIMIT_S = 30.0
_ABANDONED_S = 86_400.0
_STORE_LIMIT_S = 1.0
"""An object store's share of the time in which an interrupted run must be gone."""


class Silent:
    """An observer that says nothing."""

    def joining(self, ray: str) -> None: ...

    def opened(self, run: RunOpened) -> None: ...

    def trial_started(self, trial: Any) -> None: ...

    def trial_ended(self, trial: Trial, label: str, position: int) -> None: ...

    def notice(self, text: str) -> None: ...

    def closed(self, run: RunClosed) -> None: ...


def run_sweep(
    sweep: str | Path,
    *,
    out: str | Path = "results",
    local: bool = False,
    address: str | None = None,
    cluster: str | None = None,
    overrides: str | Sequence[str] = (),
    only: Only = (),
    quick: bool = False,
    no_plugins: bool = False,
    fresh: bool = False,
    newer_than: datetime | None = None,
    retry: str | None = None,
    accept: str | None = None,
    tags: Mapping[str, str] | None = None,
    note: str | None = None,
    wait_for_nodes_s: float = 0.0,
    strict: bool = False,
    verbose: bool = False,
    observer: Observer | None = None,
    callbacks: Sequence[Any] = (),
    take_signals: bool = False,
) -> RunClosed:
    """Run what a sweep plans and is not done yet; every attempt ends as one committed row.

    `callbacks` are Ray Tune callbacks: they see each trial's config and headline. `take_signals` is the command's:
    SIGINT and SIGTERM then commit and end the process. Raises SweepError, UsageError, ClusterError and StoreError.
    """
    options = RunOptions(
        sweep=str(sweep), out=str(out), local=local, address=address, cluster=cluster,
        overrides=(overrides,) if isinstance(overrides, str) else tuple(overrides), only=only_texts(only),
        quick=quick, no_plugins=no_plugins, fresh=fresh, newer_than=newer_than, retry=retry, accept=accept,
        tags=dict(tags or {}), note=note, wait_for_nodes_s=wait_for_nodes_s, strict=strict,
        verbose=verbose,
    ).checked()  # fmt: skip
    spec = read_sweep(options.sweep, options.overrides, no_plugins=options.no_plugins)
    _find_mistakes(spec, options)
    with watching_signals() if take_signals else contextlib.nullcontext() as watch:
        return _Run(options, spec, observer or Silent(), tuple(callbacks), watch).execute()


@dataclass(frozen=True)
class _Work:
    """What there is to do, once the cluster is known."""

    agenda: Agenda
    committed: Committed
    warnings: tuple[str, ...]


class _Run:
    """One run's state from joining Ray to leaving it."""

    def __init__(
        self,
        options: RunOptions,
        spec: SweepSpec,
        observer: Observer,
        callbacks: tuple[Any, ...],
        watch: SignalWatch | None,
    ) -> None:
        now = datetime.now(timezone.utc)
        self._options, self._spec = options, spec
        self._observer, self._callbacks, self._watch = observer, callbacks, watch
        self._run_id = new_run_id(now)
        self._done_since = options.done_since(now)
        self._store = RunStore(options.place(), spec.name, self._run_id)
        self._before: tuple[EarlierAttempt, ...] = ()
        self._ray_folder: Path | None = None

    def execute(self) -> RunClosed:
        """Join Ray, run what is left, leave. Nothing of Ray's reaches the terminal unless `verbose`."""
        self._on_stop(self._leave_early)
        try:
            return self._execute()
        except BaseException:
            self._leave_store()
            raise

    def _execute(self) -> RunClosed:
        source_hash()      # of the sources this process runs, before anybody edits them
        log = contextlib.nullcontext() if self._options.verbose else printing_into(self._store.meta / "ray.log")
        with log, ray_settings(), _scratch(self._run_id) as scratch, self._joined() as (choice, ray_address):
            inventory = take_inventory(self._run_id)
            facts = self._facts(choice, ray_address)
            work = self._work(inventory, facts.cluster)
            self._open(choice, ray_address, inventory, facts, work)
            with self._closing_on_error(facts.cluster, work):
                if work.agenda.peek() is not None:
                    self._run_trials(facts, inventory, work, scratch)
        return self._close(facts.cluster, work)

    @contextlib.contextmanager
    def _closing_on_error(self, cluster: str, work: _Work) -> Iterator[None]:
        """Whatever ends the run early, the watcher is told: a terminal gets its cursor back, a person the count."""
        try:
            yield
        except BaseException as error:
            if self._watch is not None:
                self._watch.park_if_stopping()
            code = EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else getattr(error, "exit_code", 1)
            self._leave_store()      # before the observer is told that all is over
            self._observer.closed(self._closed(cluster, work, code=code))
            raise

    # -- before ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _joined(self) -> Iterator[tuple[Choice, str]]:
        choice = look_and_choose(local=self._options.local, address=self._options.address)
        if choice.private:
            need("torch")      # its workers run here; those of another Ray have their own
        self._observer.joining(choice.doing)
        address = join(
            choice, namespace=self._run_id, verbose=self._options.verbose, cores=usable_cores(),
            metadata=self._metadata(),
        )  # fmt: skip
        import ray

        if self._watch is not None:
            self._watch.install()
        if choice.private and not self._options.verbose:
            self._ray_folder = session_folder()
        try:
            yield choice, address
        finally:
            ray.shutdown()
            self._remove_ray_folder()

    def _remove_ray_folder(self) -> None:
        """What a private Ray wrote goes with it, unless its reader asked to hear more."""
        if self._ray_folder is not None:
            shutil.rmtree(self._ray_folder, ignore_errors=True)

    def _metadata(self) -> dict[str, str]:
        """What Ray's dashboard shows of this job."""
        told = {
            "raybench": __version__, "sweep": self._spec.name, "question": self._spec.head.question,
            "sweep_run_id": self._run_id, "out": self._options.out,
        }  # fmt: skip
        return {name: text for name, text in told.items() if text}

    def _facts(self, choice: Choice, ray_address: str) -> RunFacts:
        import ray

        return RunFacts(
            sweep=self._spec.name,
            sweep_run_id=self._run_id,
            cluster=cluster_name(self._options.cluster, head_host=host_of(ray_address)),
            ray_address_source=choice.source,
            ray_version=ray.__version__,
            tags=self._options.tags,
            note=self._options.note,
            ray_job_id=ray_job_id() or ray.get_runtime_context().get_job_id(),
            slurm=slurm_facts(os.environ),
        )

    def _work(self, inventory: Inventory, cluster: str) -> _Work:
        expansion = _expand(self._spec, self._options, worker_counts(inventory.places))
        if not expansion.trials:
            raise UsageError(nothing_left(self._spec))
        self._before, unreadable = self._earlier()
        earlier = self._before
        committed = Committed(
            earlier, cluster=cluster, retry=self._options.retried(), newer_than=self._done_since
        )
        def done(trial: PlannedTrial) -> EarlierAttempt | None:
            """A row counts only for the device kind that its trial would run on now."""
            asked = trial.config.device
            return committed.done(trial.trial_id, inventory.device_kind if asked == "auto" else asked)

        agenda = Agenda(
            self._spec, expansion.trials, done,
            auto_workers=worker_counts(inventory.places), quick=self._options.quick,
        )  # fmt: skip
        agenda.peek()      # takes the way of the run before, as far as that came
        elsewhere = other_clusters(earlier, cluster)
        notes = [f"this folder holds rows of this sweep under {', '.join(elsewhere)}, none under {cluster}: "
                 f"--cluster {elsewhere[0]} continues those"] if elsewhere else []  # fmt: skip
        return _Work(agenda, committed, (*expansion.warnings, *unreadable, *notes))

    def _earlier(self) -> tuple[tuple[EarlierAttempt, ...], list[str]]:
        """What is committed so far, and what could not be read of it."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnreadableFileWarning)
            found = earlier_attempts(self._options.place(), self._spec.name)
        return found, [str(warning.message) for warning in caught]

    def _open(self, choice: Choice, address: str, inventory: Inventory, facts: RunFacts, work: _Work) -> None:
        before = preflight(choice, inventory)
        which = f"private Ray {facts.ray_version}" if choice.private else f"Ray {facts.ray_version} at {address}"
        self._observer.opened(RunOpened(
            sweep=self._spec.name,
            sweep_run_id=self._run_id,
            ray=f"{which} ({choice.why})",
            hardware=inventory.hardware,
            out=self._options.place_text(),
            cluster=facts.cluster,
            planned=work.agenda.num_planned,
            done_earlier=work.agenda.num_done,
            to_run=work.agenda.num_planned - work.agenda.num_done,
            groups=_groups(work.agenda.left()),
            preflight=before.looked_at,
            findings=len(before.findings),
        ))  # fmt: skip
        for finding in before.findings:
            self._observer.notice(str(finding))
        for address in inventory.silent:
            self._observer.notice(f"the node {address} does not answer and is not used")
        for text in inventory.differences():
            self._observer.notice(text)
        for text in (*work.warnings, *self._store.news()):
            self._observer.notice(text)
        if self._options.strict:
            before.refuse()
        self._write_resolved(work)

    def _write_resolved(self, work: _Work) -> None:
        self._store.write_meta("sweep.json", _resolved(self._spec.name, tuple(work.agenda.reached.values())))

    # -- the trials --------------------------------------------------------------------------------------------------

    def _run_trials(self, facts: RunFacts, inventory: Inventory, work: _Work, scratch: str) -> None:
        import ray

        from raybench.cluster.broker import Broker, fit
        from raybench.cluster.dispatcher import Dispatcher

        name = f"broker-{self._run_id}"
        broker = actor_here(Broker).options(name=name).remote()
        dispatcher = Dispatcher(
            facts,
            broker=broker,
            agenda=work.agenda,
            committed=work.committed,
            store=self._store,
            observer=self._observer,
            inventory=inventory,
            storage=scratch,
            wait_for_nodes_s=self._options.wait_for_nodes_s,
        )
        trials = _Handing(work.agenda, dispatcher)

        def interrupted() -> None:
            try:
                dispatcher.interrupt()
            finally:      # even when the disk is full, say what is there and how to continue
                self._leave_early(facts.cluster, work)

        self._on_stop(interrupted)
        thread = threading.Thread(target=dispatcher.serve, name="raybench-dispatcher", daemon=True)
        thread.start()
        try:
            fit(name, trials.next, storage=scratch, name=f"tune-{self._run_id}",
                node_address=_tune_node(inventory), callbacks=list(self._callbacks))  # fmt: skip
            ray.get(broker.stop.remote())
            thread.join()
        except KeyboardInterrupt:
            dispatcher.interrupt()
            dispatcher.end_group()
            thread.join(_THREAD_LIMIT_S)      # a thread that asks Ray for something after its end starts a new one
            raise
        for error in (dispatcher.error, trials.error):
            if error is not None:
                raise error

    # -- after -------------------------------------------------------------------------------------------------------

    def _close(self, cluster: str, work: _Work) -> RunClosed:
        closed = self._closed(cluster, work)
        self._write_resolved(work)      # what depended on results is known now
        planned = work.agenda.num_planned
        self._store.finish(planned=planned, committed=planned - closed.not_run)
        try:
            self._store.close()
        except StoreError as error:
            self._observer.closed(replace(closed, exit_code=error.exit_code))
            raise
        self._observer.closed(closed)
        return closed

    def _closed(self, cluster: str, work: _Work | None, code: int | None = None) -> RunClosed:
        trial_ids = tuple(work.agenda.reached) if work else ()
        planned = work.agenda.num_planned if work else 0
        since = self._done_since
        known = (*self._before, *self._store.attempts)
        rows = latest(one for one in known if since is None or one.started_at > since)
        keys = [(cluster, trial_id) for trial_id in trial_ids]
        ended = [rows[key] for key in keys if key in rows]
        outcomes = Counter(row.outcome for row in ended)
        not_run = planned - len(ended)
        return RunClosed(
            sweep=self._spec.name,
            cluster=cluster,
            trial_ids=trial_ids,
            outcomes=dict(outcomes),
            not_run=not_run,
            invalid=sum(row.outcome == "ok" and not row.valid for row in ended),
            exit_code=exit_code(outcomes, planned, self._options.accepted()) if code is None else code,
            out=self._options.place_text(),
            continue_command=self._options.continue_command(since, {} if not_run else outcomes),
            found=tuple(work.agenda.found) if work else (),
        )

    def _on_stop(self, action: Callable[[], None]) -> None:
        if self._watch is not None:
            self._watch.on_stop = action

    def _leave_early(self, cluster: str | None = None, work: _Work | None = None) -> None:
        """Told by a signal to stop: say what is committed and how to continue."""
        self._leave_store()
        self._observer.closed(self._closed(cluster or "", work, code=EXIT_INTERRUPTED))
        shutil.rmtree(_scratch_folder(self._run_id), ignore_errors=True)
        self._remove_ray_folder()


    def _leave_store(self) -> None:
        """The run ends early: say where rows wait that an object store did not take in time."""
        waiting = self._store.leave(_STORE_LIMIT_S)
        if waiting is not None:
            self._observer.notice(waiting)


def _find_mistakes(spec: SweepSpec, options: RunOptions) -> None:
    """Tell every mistake before Ray starts. What `auto` stands for is known later, and with it what `--only` leaves."""
    if spec.uses_auto:
        expand(spec, auto_workers=(1,), quick=options.quick)
    else:
        _expand(spec, options, ())


def _expand(spec: SweepSpec, options: RunOptions, auto_workers: Sequence[int]) -> Expansion:
    return expand(spec, auto_workers=auto_workers, quick=options.quick, only=options.only)


class _Handing:
    """Hands the agenda's trials to Tune, none any more once something went wrong; `error` is what did so here."""

    def __init__(self, agenda: Agenda, dispatcher: Dispatcher) -> None:
        self._agenda, self._dispatcher = agenda, dispatcher
        self.error: Exception | None = None

    def next(self) -> dict[str, Any] | None:
        """The next trial as Tune sees it."""
        try:
            planned = self._agenda.next() if self._dispatcher.error is None else None
        except Exception as error:  # noqa: BLE001  Tune would only log it; raised again when Tune is done
            self.error, planned = error, None
        return None if planned is None else _tune_config(planned)


def _groups(left: Sequence[PlannedTrial]) -> int:
    """Worker groups that must start for these trials, if none fails."""
    def apart(trial: PlannedTrial) -> int:
        return {"warm": 0, "repeat": trial.repeat, "fresh": trial.order}[trial.config.isolation]

    return len({(worker_group(trial.config), apart(trial)) for trial in left})


def _resolved(name: str, planned: Sequence[PlannedTrial]) -> str:
    """The sweep as it was understood, for whoever wonders later: one config a line."""
    lines = [f'"{trial.trial_id}":{trial.config.canonical()}' for trial in planned]
    return f'{{"name":"{name}","trials":{{\n' + ",\n".join(lines) + "\n}}\n"


def _tune_node(inventory: Inventory) -> str | None:
    """Where Tune's trial sits: the driver's node, unless that one gives no CPUs, as a head without work does."""
    return inventory.room.address if inventory.room.cpus >= TUNE_CPUS else None


def _tune_config(trial: PlannedTrial) -> dict[str, Any]:
    """What Tune and its callbacks see of a trial: plain values only."""
    return {"trial_id": trial.trial_id, "repeat": trial.repeat, **trial.config.model_dump(mode="json")}


@contextlib.contextmanager
def ray_settings() -> Iterator[None]:
    """Ray's settings for the length of the run; one that the user set stays."""
    before = {name: os.environ.get(name) for name in (*RAY_SETTINGS, START_LIMIT_SETTING)}
    for name, wanted in RAY_SETTINGS.items():
        os.environ.setdefault(name, wanted)
    try:
        yield
    finally:
        for name in [name for name, value in before.items() if value is None]:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _scratch(run_id: str) -> Iterator[str]:
    """Where Tune and Train keep their own files: never read back, removed at the end."""
    folder = _scratch_folder(run_id)
    _remove_abandoned(folder.parent)
    folder.mkdir(mode=0o700)
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    """Remove what killed runs of this user left behind more than a day ago."""
    for left in parent.glob("raybench-*Z-*"):
        status = left.stat()
        if status.st_uid == os.getuid() and time.time() - status.st_mtime > _ABANDONED_S:
            shutil.rmtree(left, ignore_errors=True)


def _scratch_folder(run_id: str) -> Path:
    return Path(tempfile.gettempdir()) / f"raybench-{run_id}"
