"""The name under which a cluster's rows are kept."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import psutil

from raybench.errors import UsageError
from raybench.spec.names import is_name

BOOTSTRAP_FILE = Path("~/ray_bootstrap_config.yaml")


def cluster_name(asked: str | None, *, head_host: str) -> str:
    """`--cluster`, else RAYBENCH_CLUSTER, else the name in Ray's bootstrap file, else the head's host name.

    A name that the user gave must match the pattern; one that was found is made to. Raises UsageError.
    """
    given = asked if asked is not None else os.environ.get("RAYBENCH_CLUSTER") or None
    if given is None:
        return tidy(_bootstrap_name() or head_host)
    name = given.lower()
    if not is_name(name):
        raise UsageError(f"--cluster {given!r}: a name is a-z, 0-9, `.`, `_`, `-`, at most 64, first a letter or digit")
    return name


def tidy(found: str) -> str:
    """A found name, lower-cased to the pattern: whatever does not belong becomes `-`."""
    kept = re.sub(r"\.\.+|[^a-z0-9._-]", "-", found.lower()).lstrip("._-")[:64]
    return kept or "cluster"


def host_of(address: str) -> str:
    """Host name of the machine that an address `HOST:PORT` points to; this machine's for any address of its own."""
    host = address.rpartition(":")[0]
    mine = {entry.address for entries in psutil.net_if_addrs().values() for entry in entries}
    if host in {"localhost", *mine}:
        return socket.gethostname()
    try:
        return socket.gethostbyaddr(host)[0].split(".")[0]
    except OSError:
        return host


def _bootstrap_name() -> str | None:
    """`cluster_name` of the file that `ray up` leaves on a head node."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        settings = YAML(typ="safe", pure=True).load(BOOTSTRAP_FILE.expanduser().read_text())
    except (OSError, UnicodeDecodeError, YAMLError):
        return None      # another name is found; the file is Ray's, not the user's to mend
    return str(settings["cluster_name"]) if isinstance(settings, dict) and settings.get("cluster_name") else None
