"""What a group's mailbox keeps, and for how long."""

import asyncio

from raybench.cluster.mailbox import Mailbox
from raybench.cluster.messages import Done, Order
from tests.factories import make_config
from tests.measure.ranks import make_rank


def order(uid: str) -> Order:
    return Order(trial_uid=uid, config=make_config(), deadline_s=1.0, stack_dir="", streams=object())


def test_an_order_is_forgotten_when_all_have_served_it():
    """What it refers to can be freed; the next one keeps its place."""

    async def play() -> tuple[object, object]:
        mailbox = Mailbox()
        await mailbox.submit(order("a"))
        await mailbox.submit(order("b"))
        assert (await mailbox.next(0)).trial_uid == "a"
        for rank in (0, 1):
            await mailbox.done("a", rank, Done(result=make_rank(rank), clean=True))
        assert len((await mailbox.answers("a", 2)).done) == 2
        return await mailbox.next(0), await mailbox.next(1)

    served, coming = asyncio.run(play())
    assert served is None
    assert coming.trial_uid == "b"
