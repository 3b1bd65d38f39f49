"""Waiting for nodes, with a made-up cluster and clock."""

import sys
import types

import pytest

from raybench.cluster import waiting
from raybench.cluster.capacity import NoRoom, Seat
from raybench.cluster.placement import Placement

ROOM = Placement(("n1",), Seat(1.0, 1, 1))


@pytest.fixture
def asked(monkeypatch):
    """What the autoscaler was asked for; each pause takes a second of a clock that only pauses move."""
    wanted, clock = [], [0.0]
    sdk = types.SimpleNamespace(request_resources=lambda bundles: wanted.append(bundles))
    monkeypatch.setitem(sys.modules, "ray.autoscaler.sdk", sdk)
    made_up = types.SimpleNamespace(
        monotonic=lambda: clock[0], sleep=lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    )
    monkeypatch.setattr(waiting, "time", made_up)
    return wanted


def test_nodes_that_come(asked):
    """Two looks in vain, room at the third; the autoscaler is asked for two workers' parts, then for nothing more."""
    looks = iter([NoRoom("none"), NoRoom("none"), ROOM])
    found = waiting.wait_for_room(
        lambda: next(looks), workers=2, device_kind="cuda", resources={"fast_disk": 0.5}, limit_s=60.0
    )
    assert found is ROOM
    assert asked == [[{"CPU": 1, "GPU": 1, "fast_disk": 0.5}] * 2, []]


def test_nodes_that_do_not_come(asked):
    """Looked at 0, 1, 2 and 3 s, and given up at 3."""
    looks = []
    found = waiting.wait_for_room(
        lambda: looks.append(1) or NoRoom("none"), workers=1, device_kind="cpu", resources={}, limit_s=3.0
    )
    assert found == NoRoom("none")
    assert len(looks) == 4
    assert asked == [[{"CPU": 1}], []]
