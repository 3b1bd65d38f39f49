"""Which Ray is joined, by the order of the design; nothing here starts one."""

import socket
import threading
from collections.abc import Iterator

import pytest

from raybench.cluster import connect
from raybench.cluster.connect import Announcement, announcement, choose
from raybench.errors import ClusterError, UsageError

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


@pytest.fixture
def announced(tmp_path, monkeypatch):
    """Writes the announcement file of a Ray folder of its own."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    return (tmp_path / "ray" / "ray_current_cluster").write_bytes


def test_a_server_that_speaks_http2_answers(announced):
    """As Ray's own does, by gRPC: settings come back for the preface. A real Ray is joined in the end-to-end tests."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        thread = threading.Thread(target=answer_once, args=(server,))
        thread.start()
        announced(address.encode())
        found = announcement()
        thread.join()
    assert found == Announcement(address, connect.current_user(), answers=True)


def answer_once(server: socket.socket) -> None:
    """Take the client's preface (24 bytes) and empty settings frame (9), and give an empty settings frame."""
    connection, _ = server.accept()
    with connection:
        assert connection.recv(33, socket.MSG_WAITALL).startswith(b"PRI * HTTP/2.0")
        connection.sendall(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")


@pytest.fixture
def mute_port() -> Iterator[int]:
    """Something that listens and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_another_listener_is_no_ray(announced, mute_port, monkeypatch):
    """A port that something else holds by now: stale, told within the limit."""
    monkeypatch.setattr(connect, "ANSWER_LIMIT_S", 0.2)
    announced(f"127.0.0.1:{mute_port}".encode())
    found = announcement()
    assert found is not None
    assert not found.answers


@pytest.mark.parametrize(("taken", "told"), [(True, "taken by something that is no Ray"), (False, "nothing answers")])
def test_why_a_ray_cannot_be_joined(taken, told, mute_port, monkeypatch):
    """A busy port is told from a silent one, at once; Ray itself would try for minutes."""
    monkeypatch.setattr(connect, "ANSWER_LIMIT_S", 0.2)
    choice = pick(address=f"127.0.0.1:{mute_port if taken else 1}")
    with pytest.raises(ClusterError, match=told):
        connect.join(choice, namespace="n", verbose=False, cores=1)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"nonsense", b"127.0.0.1:99999999"])
def test_junk_in_the_announcement(announced, content):
    """Whatever stands there, no traceback and nothing to join."""
    announced(content)
    found = announcement()
    assert found is None or not found.answers
