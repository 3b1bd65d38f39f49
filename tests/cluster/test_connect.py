"""Which Ray is joined, by the order of the design; nothing here starts one."""

import pytest

from raybench.cluster.connect import Announcement, choose
from raybench.errors import UsageError

LIVE = Announcement("10.0.0.4:6379", "ann", answers=True)


def pick(**changes):
    given = {"local": False, "address": None, "env_address": None, "announced": None, "user": "ann"} | changes
    return choose(**given)


def test_local_beats_everything():
    """`--local` starts a private Ray even where RAY_ADDRESS and an announcement stand."""
    choice = pick(local=True, env_address="10.0.0.9:6379", announced=LIVE)
    assert (choice.address, choice.source, choice.private) == (None, "--local", True)


def test_address_beats_environment_and_announcement():
    """`--address` is what the user typed last."""
    choice = pick(address="10.0.0.1:6379", env_address="10.0.0.9:6379", announced=LIVE)
    assert (choice.address, choice.source) == ("10.0.0.1:6379", "--address")


def test_environment_beats_announcement():
    """RAY_ADDRESS is more explicit than a file."""
    assert pick(env_address="10.0.0.9:6379", announced=LIVE).source == "RAY_ADDRESS"


def test_live_ray_of_this_user_is_joined():
    """`ray start` on this node needs no option, and the way to a private one is said."""
    choice = pick(announced=LIVE)
    assert (choice.address, choice.source) == ("10.0.0.4:6379", "announced")
    assert "--local" in choice.why


def test_stale_announcement_is_named_and_ignored():
    """A file that nothing answers behind."""
    choice = pick(announced=Announcement("10.0.0.4:6379", "ann", answers=False))
    assert choice.private
    assert "10.0.0.4:6379" in choice.why
    assert "stale" in choice.why


def test_other_users_ray_is_named_never_joined():
    """Somebody else's Ray is not ours to load, answering or not."""
    choice = pick(announced=Announcement("10.0.0.4:6379", "bob", answers=True))
    assert choice.private
    assert "bob" in choice.why


def test_nothing_runs():
    """An embedded Ray of this run's own."""
    assert pick().source == "private"


def test_local_and_address_exclude_each_other():
    """Two answers to one question are refused."""
    with pytest.raises(UsageError, match="exclude"):
        pick(local=True, address="10.0.0.1:6379")


def test_auto_is_the_announced_one():
    """Ray's own word; taken literally it would join any GCS process of the machine."""
    assert pick(address="auto", announced=LIVE).source == "announced"
    assert pick(env_address="auto").private


@pytest.mark.parametrize("address", ["ray://10.0.0.4:10001", "http://10.0.0.4:8265", "10.0.0.4", "10.0.0.4:", ":6379"])
def test_addresses_of_another_kind_are_refused(address):
    """Ray Client and the dashboard's address are no way in."""
    with pytest.raises(UsageError, match="HOST:PORT"):
        pick(address=address)
