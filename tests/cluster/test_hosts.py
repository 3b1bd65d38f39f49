"""raybench on a real cluster: three hosts, ssh between them, and the commands that a person types. In this order."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from raybench.version import __version__
from tests.cluster.conftest import Cluster, wait_until
from tests.cluster.hosts import ROOT, Machine

SMALL = """\
  workload: encdec
  model: {d_model: 16, nhead: 2, num_encoder_layers: 1, num_decoder_layers: 1, dim_feedforward: 32}
  seq_len: 8
  vocab_size: 64
  micro_batch: 2
  source: {name: shards, num_samples: 64, num_shards: 2}
"""
OVER_NODES = f"""\
name: over-nodes
base:
{SMALL}  warmup: 1
  measure: 10
axes:
  place:
    - {{num_workers: 1, nodes: 1}}
    - {{num_workers: 2, nodes: 2}}
    - {{num_workers: 3, nodes: 3}}
"""
LONG = """\
name: long
base: {workload: matmul, model: {m: 64, k: 64, n: 64}, num_workers: 2, packing: spread, warmup: 1}
axes:
  seed: [0, 1, 2, 3]
  measure: [{seconds: 6}]
"""
LOSES = """\
name: loses
base: {workload: matmul, model: {m: 66, k: 64, n: 64}, num_workers: 3, warmup: 1}
axes:
  place:
    - {packing: spread, measure: {seconds: 6}}
    - {nodes: 3, measure: 10}
    - {packing: spread, measure: 10}
"""
LINKED = """\
name: linked
base: {num_workers: 2, nodes: 2, warmup: 2, measure: 10}
include:
  - workload: collective
    axes: {model: [all_reduce-1m, all_reduce-16m, {op: all_reduce, size_bytes: 33554432}]}
  - workload: encdec
    model: 3.5m
    seq_len: 16
    global_batch: 4
    source: {name: device, num_samples: 64}
    axes:
      place: [{num_workers: 2, nodes: 2}, {num_workers: 1, nodes: 1}]
"""
LIMIT_BYTES_PER_S = 200e6 / 8
LOSS_LIMIT_S = 90.0
USUAL_START_S = 15.0      # of a worker group, where that limit holds: a machine that is slower gets as much longer


def test_ray_up_starts_every_host_with_the_token(cluster: Cluster) -> None:
    """Three nodes that ask for the token: with it Ray answers, without it or with another it does not."""
    cluster.await_nodes(3)
    modes = [host.run("stat -c %a ~/.ray/auth_token; echo $RAY_AUTH_MODE").stdout.split() for host in cluster.lan.hosts]
    assert modes == [["600", "token"]] * 3
    refused = cluster.head.run("RAY_AUTH_TOKEN=wrong ray list nodes", check=False)
    assert refused.returncode != 0
    assert "401" in refused.stdout or "authentic" in refused.stdout.lower(), refused.stdout


def test_ray_submit_runs_over_one_two_and_three_nodes(cluster: Cluster) -> None:
    """Only the script travels; each trial sits on as many hosts as asked, and each host prepared its own shards."""
    (cluster.laptop.home / "over-nodes.yaml").write_text(OVER_NODES)
    cluster.laptop.run("ray rsync-up onprem.yaml over-nodes.yaml '~/over-nodes.yaml'")
    ran = cluster.laptop.run(
        f"ray submit onprem.yaml {ROOT}/sweeps/submit.py -- over-nodes.yaml --out results", limit_s=600.0
    )
    assert "3 nodes, " in ran.stdout
    assert "preflight: nothing found on 3 nodes (code, clock, " in ran.stdout
    rows = cluster.rows("results").sort_values("num_workers")
    assert list(rows["outcome"]) == ["ok"] * 3, list(rows["error_text"])
    assert list(rows["nodes"]) == list(rows["num_nodes"]) == list(rows["world_size"]) == [1, 2, 3]
    assert list(rows["workers_by_host"]) == ["alpha=1", "alpha=1;beta=1", "alpha=1;beta=1;gamma=1"]
    assert set(rows["network_interface"]) == {"eth0"}
    assert set(rows["cluster"]) == {"onprem"}
    for host in cluster.lan.hosts:
        assert list((host.home / ".cache/raybench/data").rglob("manifest.json")), f"{host.name} prepared nothing"
        assert not list(host.seen("/tmp").glob("raybench-*")), f"{host.name} kept a temporary folder"


def test_all_hosts_are_in_the_nodes_table(cluster: Cluster) -> None:
    """With the address that Ray knows each by and the interface that carries it."""
    nodes = cluster.rows("results", table="nodes")
    found = sorted(zip(nodes["host"], nodes["address"], nodes["network_interface"], strict=True))
    assert found == [(host.name, host.address, "eth0") for host in cluster.lan.hosts]


def test_ray_submit_passes_a_failure_on(cluster: Cluster) -> None:
    """A sweep that is not there is one line, and the command fails."""
    ran = cluster.laptop.run(f"ray submit onprem.yaml {ROOT}/sweeps/submit.py -- nowhere.yaml", check=False)
    assert ran.returncode != 0
    assert "nowhere.yaml: not on this node; take it there first" in ran.stdout


@pytest.fixture(scope="module")
def jobs(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with the dashboard's port at hand on the laptop, as `ray dashboard` brings it."""
    (cluster.laptop.home / "project").mkdir()
    (cluster.laptop.home / "project" / "results").mkdir()
    (cluster.laptop.home / "project" / "results" / "old.parquet").write_bytes(bytes(1000))
    (cluster.laptop.home / "project" / ".rayignore").write_text((ROOT / ".rayignore").read_text())
    (cluster.laptop.home / "project" / "long.yaml").write_text(LONG)
    ready = "python -c 'import socket; socket.create_connection((\"127.0.0.1\", 8265), 2)'"
    with cluster.laptop.running("ray dashboard onprem.yaml"):
        wait_until(lambda: cluster.laptop.run(ready, check=False).returncode == 0, 120.0)
        yield cluster


JOBS = "export RAY_AUTH_MODE=token RAY_API_SERVER_ADDRESS=http://127.0.0.1:8265; cd project; ray job"


def listed(jobs: Cluster) -> list[dict[str, Any]]:
    """Every job and driver as the dashboard's page gets them."""
    asking = (
        "import pathlib, urllib.request as web; token = (pathlib.Path.home() / '.ray/auth_token').read_text(); "
        "told = web.Request('http://127.0.0.1:8265/api/jobs/', headers={'Authorization': 'Bearer ' + token}); "
        "print(web.urlopen(told).read().decode())"
    )
    found: list[dict[str, Any]] = json.loads(jobs.laptop.run(f'python -c "{asking}"').stdout)
    return found


@dataclass(frozen=True)
class Jobs:
    """Jobs that run one sweep of the project, and what is committed of it."""

    cluster: Cluster
    sweep: str

    def submit(self, name: str, *, wait: bool = False) -> None:
        """`ray job submit`; one that is waited for passes its exit code on."""
        words = f"--submission-id {name} {'' if wait else '--no-wait'} --working-dir ."
        command = f"raybench run {self.sweep}.yaml --out /mnt/home/results"
        self.cluster.laptop.run(f"{JOBS} submit {words} -- {command}", limit_s=600.0)

    def stop(self, name: str) -> None:
        """`ray job stop`, which waits; no attempt that began is without a row then, and no row is gone."""
        before = set(self.rows()["trial_uid"])
        stopped = self.cluster.laptop.run(f"{JOBS} stop {name}")
        assert "was stopped" in stopped.stdout, stopped.stdout
        after = set(self.rows()["trial_uid"])
        assert before <= after == self.started()

    def rows(self) -> pd.DataFrame:
        """Every attempt that is a row."""
        found = self.cluster.rows("results", self.sweep, latest=False)
        return found if len(found) else pd.DataFrame({"trial_uid": [], "outcome": []})

    def count(self, outcome: str) -> int:
        """Attempts that ended so."""
        return int((self.rows()["outcome"] == outcome).sum())

    def started(self) -> set[str]:
        """Attempts that began, by the runs' own logs."""
        logs = (self.cluster.head.home / "results").glob(f"raybench-v1/_meta/{self.sweep}/*/log.jsonl")
        events = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
        return {event["trial_uid"] for event in events if event["event"] == "start"}

    def is_running(self) -> bool:
        """Whether a trial runs."""
        return len(self.started()) > len(self.rows())


def test_ray_job_stop_loses_nothing(jobs: Cluster) -> None:
    """Stopped with none, one and two trials done, then left alone: each attempt is a row, each trial ok in the end."""
    long = Jobs(jobs, "long")
    for number in (1, 2, 3):
        long.submit(f"long-{number}")
        wait_until(lambda wanted=number - 1: long.count("ok") >= wanted and long.is_running(), 300.0)
        long.stop(f"long-{number}")
    assert long.count("interrupted") >= 1
    long.submit("long-4", wait=True)
    assert list(jobs.rows("results", "long")["outcome"]) == ["ok"] * 4
    assert set(jobs.rows("results")["sweep"]) == {"over-nodes", "long"}
    uploaded = jobs.head.run("ls /tmp/ray/session_latest/runtime_resources/working_dir_files/*").stdout.split()
    assert "long.yaml" in uploaded
    assert "results" not in uploaded
    described = [job["metadata"] for job in listed(jobs) if job["metadata"].get("sweep") == "over-nodes"]
    assert [(one["raybench"], one["out"]) for one in described] == [(__version__, "results")]
    told = set(jobs.rows("results", "long", latest=False)["ray_job_id"])
    assert told == {f"long-{number}" for number in (1, 2, 3, 4)}


@pytest.mark.soak
def test_ray_job_stop_at_ten_moments(jobs: Cluster) -> None:
    """From before the driver is up to after a whole trial of 6 s."""
    moments = Jobs(jobs, "moments")
    sweep = LONG.replace("name: long", "name: moments").replace("[0, 1, 2, 3]", "[0, 1, 2, 3, 4, 5, 6, 7]")
    (jobs.laptop.home / "project" / "moments.yaml").write_text(sweep)
    for number in range(10):
        moments.submit(f"moments-{number}")
        wait_until(lambda first=number == 0: first or moments.is_running(), 300.0)
        time.sleep(0.7 * number)      # the moment itself: nothing happens there that could be waited for
        moments.stop(f"moments-{number}")
    print(moments.rows()["outcome"].value_counts().to_string())
    moments.submit("moments-last", wait=True)
    assert list(jobs.rows("results", "moments")["outcome"]) == ["ok"] * 8


@pytest.fixture
def odd_gamma(cluster: Cluster) -> Iterator[Machine]:
    """The third host with another raybench, another torch, no room for data, and a token that anyone may read."""
    gamma = cluster.lan.hosts[2]
    ours, torch = ROOT / "raybench" / "errors.py", Path(importlib.util.find_spec("torch").origin).parent / "version.py"
    gamma.run(f"cp {ours} errors.py; echo '# edited' >> errors.py; mount --bind errors.py {ours}")
    gamma.run(f"sed 's/^__version__.*/__version__ = \"9.9.9\"/' {torch} > version.py; mount --bind version.py {torch}")
    gamma.run("mkdir -p .cache/raybench/data; mount -t tmpfs -o size=1m none .cache/raybench/data")
    gamma.run("chmod 644 .ray/auth_token")
    yield gamma
    gamma.run(f"umount {ours} {torch} ~/.cache/raybench/data; chmod 600 .ray/auth_token")


def test_doctor_names_everything_that_is_odd(cluster: Cluster, odd_gamma: Machine) -> None:
    """Each fault of a node with its cure; the all-reduce is not tried with another raybench there."""
    told = cluster.head.run("raybench doctor --out results", check=False)
    assert told.returncode == 3, told.stdout
    for line in (
        "ok: 3 of 3 nodes answer: ",
        "error: gamma: raybench 0.1.0 with other sources than this command's; install the same raybench on every node",
        "error: gamma: 0.00 GiB free for data, 2.00 are needed; ",
        "warning: gamma: the token file can be read by others (mode 644); chmod 600 ~/.ray/auth_token",
        "warning: cluster: nodes differ in torch_version: ",
        "9.9.9 on gamma",
    ):
        assert line in told.stdout, told.stdout
    assert "all-reduce" not in told.stdout
    ran = cluster.head.run("raybench run quick --out refused", check=False)
    assert ran.returncode == 3
    assert "workers run other sources of raybench than this command's 0.1.0: gamma (0.1.0)" in ran.stdout


def test_doctor_lets_all_nodes_talk(cluster: Cluster) -> None:
    """A sound cluster has no finding; one whose collectives are told to use the loopback has that one."""
    sound = cluster.head.run("raybench doctor --out results --strict")
    assert "ok: all-reduce of 16 MiB over 3 workers through eth0, bus bandwidth " in sound.stdout
    deaf = cluster.head.run("GLOO_SOCKET_IFNAME=lo raybench doctor --out results", check=False, limit_s=300.0)
    assert deaf.returncode == 3, deaf.stdout
    assert "error: network: " in deaf.stdout
    assert "set GLOO_SOCKET_IFNAME" in deaf.stdout


def test_doctor_says_why_a_ray_cannot_be_joined(cluster: Cluster) -> None:
    """Another token, and a port at which something else listens."""
    for command, told in (
        ("RAY_AUTH_TOKEN=wrong raybench doctor", "is its token this one? RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or "),
        ("raybench doctor --address 127.0.0.1:22", "its port is taken by something that is no Ray; "),
    ):
        found = cluster.head.run(command, check=False)
        assert found.returncode == 3, found.stdout
        assert told in found.stdout


def test_a_slow_link_is_what_collectives_report(cluster: Cluster) -> None:
    """200 Mbit/s are 25 MB/s, of which TCP leaves 24: large all-reduces report that, none more than the limit.

    A small model is slower over the same link: its 3 496 448 gradients of 4 bytes take 0.56 s a step, and a second
    host brings less than it does without the limit, or nothing at all.
    """
    (cluster.head.home / "linked.yaml").write_text(LINKED)
    beta = cluster.lan.hosts[1]
    cluster.lan.limit_link(beta, "200mbit")
    try:
        cluster.head.run("raybench run linked.yaml --out slow", limit_s=600.0)
    finally:
        cluster.lan.free_link(beta)
    cluster.head.run("raybench run linked.yaml --out free --only num_workers=2", limit_s=600.0)
    slow, free = cluster.rows("slow"), cluster.rows("free")
    bus = slow.loc[slow["workload"] == "collective", "bus_bandwidth_bytes_per_s"]
    shown = ["workload", "model", "num_workers", "step_ms_min", "step_ms_p50", "bus_bandwidth_bytes_per_s"]
    print("", "200 Mbit/s:", slow[shown].to_string(), "no limit:", free[shown].to_string(), sep="\n")
    assert (bus <= LIMIT_BYTES_PER_S).all()
    large = slow[slow["config"].str.contains("16777216|33554432")]["bus_bandwidth_bytes_per_s"]
    assert len(large) == 2
    assert (large >= 0.85 * LIMIT_BYTES_PER_S).all()
    # The fastest step of each: what else this machine does makes a step slower, never faster.
    models = pd.concat([slow, free])[lambda rows: rows["workload"] == "encdec"]
    one_ms = models.loc[models["num_workers"] == 1, "step_ms_min"].item()
    slow_ms, free_ms = models.loc[models["num_workers"] == 2, "step_ms_min"]
    print(f"speed-up of a second host: {one_ms / slow_ms:.2f} at 200 Mbit/s, {one_ms / free_ms:.2f} without a limit")
    assert slow_ms > 1e3 * 4 * 3_496_448 / LIMIT_BYTES_PER_S
    assert one_ms / slow_ms < 0.8 * one_ms / free_ms


def test_a_host_that_loses_its_power(cluster: Cluster) -> None:
    """Attempt 1 is lost with the node, attempt 2 runs on what is left; what needs three nodes is infeasible now."""
    (cluster.head.home / "loses.yaml").write_text(LOSES)
    gamma = cluster.lan.hosts[2]
    with cluster.head.running("raybench run loses.yaml --out losing > losing.log 2>&1") as run:
        begun = lambda: any(gamma.seen("/tmp").glob("raybench-*/stacks/*"))  # noqa: E731  its rank has the trial
        wait_until(lambda: begun() or run.poll() is not None, 300.0)
        assert run.poll() is None, (cluster.head.home / "losing.log").read_text()
        off_s = time.monotonic()
        gamma.power_off()
        wait_until(lambda: len(cluster.rows("losing")) >= 1, 300.0)
        told_s = time.monotonic() - off_s
        run.wait(300)
        done_s = time.monotonic() - off_s
    rows = cluster.rows("losing", latest=False).sort_values(["sweep_order", "attempt"])
    text = (cluster.head.home / "losing.log").read_text()
    print(f"told {told_s:.0f} s, all done {done_s:.0f} s after the power went", text, sep="\n")
    found = list(zip(rows["attempt"], rows["outcome"], rows["error_host"].fillna("-"), strict=True))
    assert found == [(1, "node_lost", "gamma"), (2, "ok", "-"), (1, "ok", "-"), (1, "infeasible", "-")], text
    start_s = rows[["placement_s", "worker_start_s"]].sum(axis=1).max()
    assert done_s < LOSS_LIMIT_S * max(1.0, start_s / USUAL_START_S), f"{done_s:.0f} s, a start {start_s:.0f} s\n{text}"
    warned = rows["warnings"].str.contains("cluster_changed")
    assert list(warned) == [False, True, True, True]
    for host in cluster.lan.hosts[:2]:
        left = list(host.seen("/tmp").glob(f"raybench-{rows['sweep_run_id'].iloc[0]}"))
        assert not left, f"{host.name} kept the run's temporary folder"


def test_ray_down_leaves_nothing_running(cluster: Cluster) -> None:
    """On every host that is still on."""
    cluster.laptop.run("ray down -y onprem.yaml", limit_s=300.0)
    for host in cluster.lan.hosts:
        if host.is_on:
            wait_until(lambda on=host: "raylet" not in on.run("ps -e -o comm").stdout, 60.0)
