"""Between Tune and the driver: a Tune trial asks for its work to be done, the driver thread takes the requests.

Tune is the sweep's clockwork only. Handles never stand in `param_space`, and samples never pass through `report`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from raybench.cluster.capacity import TUNE_CPUS


class Broker:
    """A Ray actor without CPUs. After `abort`, every trial that asks is turned away at once."""

    def __init__(self) -> None:
        self._requests: asyncio.Queue[str | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._aborted = False

    async def run(self, trial_id: str) -> dict[str, Any]:
        """A Tune trial asks, and waits for the scalars it is to report."""
        if self._aborted:
            return {"outcome": "aborted"}
        answer = self._answers[trial_id] = asyncio.get_running_loop().create_future()
        await self._requests.put(trial_id)
        scalars: dict[str, Any] = await answer
        return scalars

    async def next(self) -> str | None:
        """The driver takes the next request, None when there will be none."""
        return await self._requests.get()

    async def answer(self, trial_id: str, scalars: dict[str, Any]) -> None:
        """The driver has ended a trial."""
        self._answers.pop(trial_id).set_result(scalars)

    async def stop(self) -> None:
        """Tune is done."""
        await self._requests.put(None)

    async def abort(self) -> None:
        """The driver's thread failed: nobody will answer any more, so nobody may wait."""
        self._aborted = True
        for answer in self._answers.values():
            answer.set_result({"outcome": "aborted"})
        self._answers.clear()


def ask_broker(config: dict[str, Any]) -> None:
    """What a Tune trial does: ask, wait, report scalars only."""
    import ray
    from ray import tune

    broker = ray.get_actor(config["broker"])
    tune.report(ray.get(broker.run.remote(config["trial"]["trial_id"])))


def fit(
    broker_name: str,
    next_trial: Callable[[], dict[str, Any] | None],
    *,
    storage: str,
    name: str,
    node_address: str | None,
    callbacks: list[Any],
) -> None:
    """One `Tuner.fit()` over all trials, in order, one at a time. Blocks until every trial has reported.

    `next_trial` is asked when the one before has reported, so that results may decide it; None ends the sweep.
    """
    from ray import tune

    # On the driver's node, with which it lives and dies, unless that one has no CPUs to give.
    resources = {"CPU": TUNE_CPUS, **({f"node:{node_address}": 0.001} if node_address else {})}
    tune.Tuner(
        tune.with_resources(ask_broker, resources),
        param_space={"broker": broker_name},
        tune_config=tune.TuneConfig(
            search_alg=_searcher(next_trial), num_samples=-1, max_concurrent_trials=1, reuse_actors=True
        ),
        run_config=tune.RunConfig(storage_path=storage, name=name, verbose=0, callbacks=callbacks),
    ).fit()


def _searcher(next_trial: Callable[[], dict[str, Any] | None]) -> Any:
    """Tune's way to be told the next trial while it runs. It never chooses, and nothing of it is ever restored."""
    from ray.tune.search import Searcher

    class InOrder(Searcher):  # type: ignore[misc]  # Ray is imported when it is needed, and has no types here
        def suggest(self, trial_id: str) -> Any:
            trial = next_trial()
            return self.FINISHED if trial is None else {"trial": trial}

        def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
            pass

        def save_to_dir(self, *place: Any) -> None:
            pass

        def __reduce__(self) -> Any:
            return object, ()      # Tune keeps a pickle of all it is given, which nobody reads

    return InOrder()
