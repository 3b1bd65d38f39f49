"""The mailbox of a worker group: trials go in, one answer per rank comes out, and a dead group wakes whoever waits."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from raybench.cluster.messages import Answers, Done, Hello, Order
from raybench.record.rank import RankFailure


class Mailbox:
    """A Ray actor without CPUs. Every method only changes or awaits its few fields."""

    def __init__(self) -> None:
        self._orders: list[Order | None] = []
        self._hellos: dict[int, Hello] = {}
        self._done: dict[str, dict[int, Done]] = defaultdict(dict)
        self._failures: dict[str, list[RankFailure]] = defaultdict(list)
        self._dead: str | None = None
        self._changed = asyncio.Condition()

    async def submit(self, order: Order | None) -> None:
        """The driver gives the next trial, or None: no more will come."""
        await self._change(lambda: self._orders.append(order))

    async def next(self, index: int) -> Order | None:
        """A worker waits for its `index`-th order."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._orders) > index)
            return self._orders[index]

    async def hello(self, hello: Hello) -> None:
        """A worker is ready."""
        await self._change(lambda: self._hellos.__setitem__(hello.rank, hello))

    async def done(self, trial_uid: str, rank: int, done: Done) -> None:
        """A rank's part ended well."""
        await self._change(lambda: self._done[trial_uid].__setitem__(rank, done))

    async def failed(self, trial_uid: str, failure: RankFailure) -> None:
        """A rank's part ended with an error that the rank itself could tell of."""
        await self._change(lambda: self._failures[trial_uid].append(failure))

    async def close(self, why: str) -> None:
        """The group has ended; nobody will answer any more."""
        await self._change(lambda: setattr(self, "_dead", why))

    async def ready(self, workers: int) -> tuple[dict[int, Hello], str | None]:
        """Wait until all workers said hello or the group is dead."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._dead is not None or len(self._hellos) == workers)
            return self._hellos, self._dead

    async def answers(self, trial_uid: str, workers: int) -> Answers:
        """Wait until all ranks have ended the trial well or the group is dead."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._dead is not None or len(self._done[trial_uid]) == workers)
            self._forget(trial_uid)
            return Answers(self._done.pop(trial_uid, {}), tuple(self._failures.pop(trial_uid, ())), self._dead)

    def _forget(self, trial_uid: str) -> None:
        """Every worker has taken the order: what it refers to may be freed."""
        self._orders = [None if order and order.trial_uid == trial_uid else order for order in self._orders]

    async def _change(self, change: Callable[[], object]) -> None:
        async with self._changed:
            change()
            self._changed.notify_all()
