"""A cluster of three hosts on this machine, started as a person would: `ray up` from a laptop."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from raybench.results.load import load
from tests.cluster.hosts import ROOT, Lan, Machine, lan, missing

NAMES = ("alpha", "beta", "gamma")
ONPREM = ROOT / "sweeps" / "cluster" / "onprem.yaml"
UP_LIMIT_S = 300.0
ASK_EVERY_S = 0.5


@dataclass(frozen=True)
class Cluster:
    """Three hosts, the first of them Ray's head, and the laptop that holds the cluster's file."""

    lan: Lan
    ray_up: str      # what `ray up` printed

    @property
    def laptop(self) -> Machine:
        """Where commands are typed."""
        return self.lan.laptop

    @property
    def head(self) -> Machine:
        """Where drivers run, and results lie."""
        return self.lan.hosts[0]

    def rows(self, out: str, sweep: str | None = None, **options: object) -> pd.DataFrame:
        """Results in a folder of the head's home: all, or those of a sweep. Empty before the first."""
        if not any((self.head.home / out).rglob("trials/*/*.parquet")):
            return pd.DataFrame({"sweep": [], "outcome": []})
        found = load(self.head.home / out, **options)  # type: ignore[arg-type]
        return found if sweep is None else found[found["sweep"] == sweep]

    def await_nodes(self, wanted: int) -> None:
        """Until Ray lists so many nodes."""
        self.head.run(f"python -m tests.cluster.await_nodes {wanted} {UP_LIMIT_S}", limit_s=2 * UP_LIMIT_S)


def wait_until(condition: Callable[[], bool], limit_s: float) -> None:
    """Wait for a condition; the limit only says when a test has failed."""
    until_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until_s, f"not true after {limit_s} s"
        time.sleep(ASK_EVERY_S)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster, up and of three nodes. Where hosts cannot be made it is a skip, on CI a failure."""
    why = missing()
    if why is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no hosts on this machine: {why}")
    with lan(tmp_path_factory.mktemp("lan"), NAMES) as made:
        _write_cluster_file(made)
        up = made.laptop.run("ray up -y onprem.yaml", limit_s=UP_LIMIT_S)
        found = Cluster(made, up.stdout)
        found.await_nodes(len(NAMES))
        yield found


def _write_cluster_file(made: Lan) -> None:
    """The shipped file with its three marked lines edited, and a token."""
    text = ONPREM.read_text()
    for example, host in zip(("192.0.2.11", "192.0.2.12", "192.0.2.13"), made.hosts, strict=True):
        assert example in text
        text = text.replace(example, host.address)
    (made.laptop.home / "onprem.yaml").write_text(text)
    token = made.laptop.home / ".ray" / "auth_token"
    token.parent.mkdir(mode=0o700)
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks for the cluster carries the marker, and time enough on a busy machine."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()) and Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.hosts)
            item.add_marker(pytest.mark.timeout(900))
