"""Which Ray a run joins, why, and joining it.

The choice is made before Ray is asked anything, because `address="auto"` would take the first GCS process it finds on
the machine, even the private one of another run.
"""

from __future__ import annotations

import os
import pwd
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from raybench.errors import ClusterError, UsageError

AddressSource = Literal["--local", "--address", "RAY_ADDRESS", "announced", "private"]
ANSWER_LIMIT_S = 2.0
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HTTP2_SETTINGS = b"\x04"
_HTTP2_NO_SETTINGS = bytes(3) + _HTTP2_SETTINGS + bytes(5)      # length, type, flags and stream
AUTO = "auto"      # Ray's own word for the one that `ray start` announced here


@dataclass(frozen=True)
class Announcement:
    """What `ray start` wrote on this node. `owner` is the user who did, `answers` whether something listens there."""

    address: str
    owner: str
    answers: bool


@dataclass(frozen=True)
class Choice:
    """The Ray to join (`address`, None for a private one), the rule that chose it, and what to tell the user."""

    address: str | None
    source: AddressSource
    why: str

    @property
    def private(self) -> bool:
        """Whether a Ray of this run's own is started."""
        return self.address is None

    @property
    def doing(self) -> str:
        """What `join` does, while it does it."""
        return f"{'starting a private Ray' if self.private else f'joining the Ray at {self.address}'} ({self.why})"


def choose(
    *, local: bool, address: str | None, env_address: str | None, announced: Announcement | None, user: str
) -> Choice:
    """Which Ray to join, by the first rule that applies. Pure: whatever was looked up is an argument.

    Raises UsageError when both `--local` and `--address` are given.
    """
    if local and address:
        raise UsageError("--local and --address exclude each other: give one")
    if local:
        return Choice(None, "--local", "as --local asks")
    if address and address != AUTO:
        return Choice(_plain(address), "--address", "as --address asks; --local starts a private one")
    if env_address and env_address != AUTO:
        return Choice(_plain(env_address), "RAY_ADDRESS", "from RAY_ADDRESS; --local starts a private one")
    return _announced_or_private(announced, user)


def _plain(address: str) -> str:
    """`HOST:PORT`. Ray Client is refused: its driver stands outside the cluster, where no result could be measured."""
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise UsageError(
            f"the Ray address {address!r} is not HOST:PORT; run raybench on a node of the cluster, or by ray job submit"
        )
    return address


def _announced_or_private(announced: Announcement | None, user: str) -> Choice:
    if announced is None:
        return Choice(None, "private", "none runs on this node; --address HOST:PORT joins one")
    where = f"a Ray announced at {announced.address}"
    if announced.owner != user:
        return Choice(None, "private", f"{where} belongs to {announced.owner} and was not joined; --address joins it")
    if not announced.answers:
        return Choice(None, "private", f"{where} is stale, nothing answers there")
    return Choice(announced.address, "announced", "started on this node by `ray start`; --local starts a private one")


def announcement() -> Announcement | None:
    """What the announcement file of this node says, None without one."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"      # Ray's own order
    path = Path(folder) / "ray" / "ray_current_cluster"
    if not path.is_file():      # anyone may put a pipe there, and reading that would wait for ever
        return None
    try:
        address, owner = path.read_text(errors="replace").strip(), path.stat().st_uid
    except OSError:
        return None
    return Announcement(address, _user_name(owner), _answers(address)) if address else None


def current_user() -> str:
    """Name of the user this process runs as."""
    return _user_name(os.getuid())


def look_and_choose(*, local: bool, address: str | None) -> Choice:
    """`choose` with what this process and this node hold."""
    return choose(
        local=local,
        address=address,
        env_address=os.environ.get("RAY_ADDRESS") or None,
        announced=announcement(),
        user=current_user(),
    )


def join(
    choice: Choice, *, namespace: str, verbose: bool, cores: int, metadata: Mapping[str, str] | None = None
) -> str:
    """Connect this process to the chosen Ray and return its address, `HOST:PORT`.

    A private Ray has no dashboard, and declares two CPUs more than it holds workers, so that Tune's trial and a data
    task always find room. `metadata` is what the dashboard shows of this job. Raises ClusterError when it cannot be
    joined.
    """
    if choice.address is not None and (silence := _silence(choice.address)) is not None:
        raise ClusterError(_refusal(choice, ConnectionError(silence)))
    import ray
    from ray.job_config import JobConfig

    log = {"log_to_driver": verbose, "logging_level": "INFO" if verbose else "ERROR", "namespace": namespace,
           "job_config": JobConfig(metadata=dict(metadata or {}))}  # fmt: skip
    private = {"num_cpus": max(2, cores) + 2, "include_dashboard": False}
    try:
        context = ray.init(address=choice.address or "local", **log, **(private if choice.private else {}))
    except (ConnectionError, ValueError, RuntimeError, OSError, ray.exceptions.RayError) as error:
        raise ClusterError(_refusal(choice, error)) from error
    return str(context.address_info["gcs_address"])


def session_folder() -> Path:
    """Where the joined Ray keeps its logs and sockets on this node."""
    from ray._private.worker import global_worker  # its public context is gone once `ray.init` has returned

    return Path(global_worker.node.get_session_dir_path())


def _refusal(choice: Choice, error: Exception) -> str:
    reason = " ".join(str(error).split())[:300]
    if choice.private:
        return f"a private Ray does not start in {tempfile.gettempdir()}: {reason}"
    # Ray says no more than that, whatever the reason; something answers there by then, so the token is the likeliest.
    refused = "auth" in reason.lower() or "Failed to connect" in reason
    hint = " (is its token this one? RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token)" if refused else ""
    where = f"the Ray at {choice.address} ({choice.source})"
    return f"{where} cannot be joined: {reason}{hint}; --local starts a private one"


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _answers(address: str) -> bool:
    """Whether a Ray is there, as far as that shows without joining it."""
    return _silence(address) is None


def _silence(address: str) -> str | None:
    """Why no Ray can be there; None where a gRPC server is, as Ray's: it answers HTTP/2's first words with settings
    (RFC 9113, 3.4).

    Ray itself tries for minutes, also where something else listens.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_LIMIT_S) as connection:
            return _no_grpc(connection)
    except (OSError, ValueError, OverflowError):
        return "nothing answers there"


def _no_grpc(connection: socket.socket) -> str | None:
    connection.settimeout(ANSWER_LIMIT_S)
    try:
        connection.sendall(_HTTP2_PREFACE + _HTTP2_NO_SETTINGS)
        is_grpc = connection.recv(9)[3:4] == _HTTP2_SETTINGS
    except OSError:
        is_grpc = False
    return None if is_grpc else "its port is taken by something that is no Ray"
