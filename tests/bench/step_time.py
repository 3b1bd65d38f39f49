"""Step time inside raybench against a bare loop, and in a warm worker against a fresh one: A B B A, in one run.

Both arms run the same training step on one thread with the same environment. The A/A ratio of the same run, first A
over second A of each block, says what the machine's own noise is.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ray

from raybench.cluster.capacity import Seat
from raybench.cluster.checkup import usable_cores
from raybench.cluster.connect import Choice, join
from raybench.cluster.group import WorkerGroup
from raybench.cluster.group_spec import GroupSpec
from raybench.cluster.inventory import take_inventory
from raybench.cluster.messages import Order
from raybench.measure.statistics import Interval, paired_ratio_interval
from tests.bench.promise import Promise
from tests.bench.work import STEPS, bench_config

ENVIRONMENT = (("OMP_NUM_THREADS", "1"),)
LOW, HIGH = 0.95, 1.05
Arm = Callable[[], float]


def against_bare() -> list[Promise]:
    """10 blocks of raybench, bare, bare, raybench."""
    with _ray() as new_group, _bare_loop() as bare:
        group = new_group()
        inside = _trial(group)
        inside()                                     # the group's first trial pays for imports
        return _judge("step time inside raybench over a bare loop", inside, bare, blocks=10)


def warm_against_fresh() -> list[Promise]:
    """5 blocks of a warm worker, fresh, fresh, warm. Fresh ones start while the warm one idles."""
    with _ray() as new_group:
        warm = _trial(new_group())
        warm()

        def fresh() -> float:
            group = new_group()
            try:
                return _trial(group)()
            finally:
                group.close()

        return _judge("step time in a warm worker over a fresh one", warm, fresh, blocks=5)


def _judge(what: str, a: Arm, b: Arm, blocks: int) -> list[Promise]:
    measured = [(a(), b(), b(), a()) for _ in range(blocks)]
    ratios = [((a1 * a2) / (b1 * b2)) ** 0.5 for a1, b1, b2, a2 in measured]
    noise = paired_ratio_interval([a1 / a2 for a1, _, _, a2 in measured])
    interval = paired_ratio_interval(ratios)
    assert interval is not None
    assert noise is not None
    kept = interval.low >= LOW and interval.high <= HIGH
    words = f"{_shown(interval)}  (A/A {_shown(noise)})"
    return [Promise(f"{what}, {blocks} blocks A B B A", words, f"within {LOW} to {HIGH}", kept)]


def _shown(interval: Interval) -> str:
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _trial(group: WorkerGroup) -> Arm:
    """One trial in a group: its median step, in ms."""
    def run() -> float:
        uid = uuid.uuid4().hex
        order = Order(trial_uid=uid, config=bench_config(), deadline_s=300.0, stack_dir=tempfile.gettempdir())
        answers = group.run(order, 360.0)
        assert not answers.failures, answers.failures
        steps = answers.done[0].result.steps
        return statistics.median(
            ms for ms, warm in zip(steps.step_ms, steps.is_warmup, strict=True) if not warm
        )

    return run


@contextmanager
def _ray() -> Iterator[Callable[[], WorkerGroup]]:
    """A private Ray, and how to open a worker group of one worker with one thread on it."""
    choice = Choice(None, "--local", "for the benchmark")
    join(choice, namespace=uuid.uuid4().hex, verbose=False, cores=usable_cores())
    inventory = take_inventory("bench")
    with tempfile.TemporaryDirectory() as storage:

        def new_group() -> WorkerGroup:
            group = WorkerGroup(
                GroupSpec((inventory.node_id,), "cpu", Seat(1.0, 0, 1), "gloo", ENVIRONMENT),
                storage=storage, sweep_run_id="bench",
            )  # fmt: skip
            group.wait_ready(lambda: None)
            pin(group.hellos[0].pid)
            return group

        yield new_group
        ray.shutdown()


def pin(pid: int) -> None:
    """Keep all threads of a process on the last core: whatever else runs has the others, for both arms alike."""
    core = max(os.sched_getaffinity(0))
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {core})


@contextmanager
def _bare_loop() -> Iterator[Arm]:
    """The bare loop in a plain process: each call times a block of steps and returns their median, in ms."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.bare_loop"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | dict(ENVIRONMENT),
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    stdin, stdout = child.stdin, child.stdout

    def ask(line: str) -> str:
        stdin.write(line + "\n")
        stdin.flush()
        return stdout.readline()

    assert stdout.readline() == "ready\n"
    pin(child.pid)
    try:
        yield lambda: float(json.loads(ask(str(STEPS))))
    finally:
        stdin.close()
        child.wait()
