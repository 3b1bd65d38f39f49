"""A preflight: is this cluster fit for a sweep? Everything is looked at, and every finding told with what to do."""

from __future__ import annotations

import contextlib
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from raybench.cluster.ask_nodes import ask_nodes
from raybench.cluster.batch_job import ray_job_id
from raybench.cluster.capacity import NoRoom
from raybench.cluster.checkup import Examined, check_up, examined, usable_cores
from raybench.cluster.code_version import source_hash
from raybench.cluster.connect import Choice, join, look_and_choose
from raybench.cluster.cuda_answers import cuda_answers
from raybench.cluster.findings import between_nodes, of_cuda, of_node, of_upload
from raybench.cluster.group_spec import GroupSpec, backend_for, passed_environment
from raybench.cluster.inventory import Inventory, take_inventory
from raybench.cluster.placement import Placement, place
from raybench.cluster.preflight import authentication
from raybench.cluster.probe import Talked, talk
from raybench.cluster.quiet import printing_into
from raybench.cluster.run import ray_settings
from raybench.cluster.upload import upload_of
from raybench.errors import ClusterError, StoreError
from raybench.results.finding import Finding
from raybench.results.layout import new_run_id
from raybench.results.objects import ObjectPath, retried
from raybench.results.place import Place, place_of

ASK_LIMIT_S = 90.0


@dataclass(frozen=True)
class Diagnosis:
    """`healthy`: what was found in order, a line each; `findings`: what was not."""

    healthy: tuple[str, ...]
    findings: tuple[Finding, ...]
    inventory: Inventory | None = None      # where every node could be asked

    def exit_code(self, *, strict: bool) -> int:
        """3 when a sweep could not run, or under `strict` should not; else 0."""
        return 3 if any(strict or finding.level == "error" for finding in self.findings) else 0


def diagnose(*, out: str, local: bool, address: str | None, working_dir: Path | None = None) -> Diagnosis:
    """Join the Ray that a run would join, look at every node, let all of them talk, and try the folder of results.

    `working_dir`: the folder that `ray job submit --working-dir` would upload; inside a job it is this one.
    """
    healthy: list[str] = []
    inventory = None
    findings: list[Finding] = list(_storage(place_of(out)))
    findings += _upload(working_dir or (Path.cwd() if ray_job_id() else None), healthy)
    scratch = tempfile.TemporaryDirectory(prefix="raybench-doctor-", ignore_cleanup_errors=True)
    with scratch as folder, printing_into(Path(folder) / "ray.log"), ray_settings():
        try:
            with _joined(local, address) as choice:
                findings += authentication(choice)
                inventory = _look_around(healthy, findings, folder)
        except ClusterError as error:
            what, _, cure = str(error).rpartition("; ")
            findings.append(Finding("error", "Ray", what or cure, cure))
    return Diagnosis(tuple(healthy), tuple(findings), inventory)


@contextlib.contextmanager
def _joined(local: bool, address: str | None) -> Iterator[Choice]:
    import ray

    choice = look_and_choose(local=local, address=address)
    join(choice, namespace=uuid.uuid4().hex, verbose=False, cores=usable_cores())
    try:
        yield choice
    finally:
        ray.shutdown()


def _look_around(healthy: list[str], findings: list[Finding], storage: str) -> Inventory | None:
    found, asked = _nodes(findings)
    seen = [each.checkup for each in found.values()]
    healthy.append(f"{len(seen)} of {len(asked)} nodes answer: {', '.join(each.node.host for each in seen)}")
    findings += between_nodes(seen)
    if any(each.source_hash != source_hash() for each in seen) or len(seen) < len(asked):
        return None      # no group would start
    deaf = list(_cuda(found))
    findings += deaf
    if deaf:
        return None
    inventory = take_inventory(new_run_id(datetime.now(timezone.utc)))
    told = _talk(inventory, storage)
    if isinstance(told, Finding):
        findings.append(told)
        return inventory
    rate = "" if told.bus_bytes_per_s is None else f", bus bandwidth {told.bus_bytes_per_s / 1e6:.0f} MB/s"
    healthy.append(f"all-reduce of 16 MiB over {told.world_size} workers through {told.interface or 'any'}{rate}")
    return inventory


def _nodes(findings: list[Finding]) -> tuple[dict[str, Examined], Mapping[str, Any]]:
    """What every node says, by its id; those that say nothing are a finding each."""
    import ray

    alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
    began_s = time.time()
    answered = ask_nodes(check_up, alive, new_run_id(datetime.now(timezone.utc)), limit_s=ASK_LIMIT_S)
    ended_s = time.time()
    for node_id, error in answered.failed.items():
        where = str(alive[node_id]["NodeManagerAddress"])
        findings.append(_no_answer(where, error))
    found = examined(answered.results, alive, began_s=began_s, ended_s=ended_s)
    for each in found.values():
        findings += of_node(each, own_hash=source_hash())
    return found, alive


def _cuda(found: Mapping[str, Examined]) -> Iterator[Finding]:
    """Whether torch computes on every GPU, asked where Ray gives out any."""
    with_gpus = [node_id for node_id, each in found.items() if each.ray_gpus]
    answered = ask_nodes(cuda_answers, with_gpus, limit_s=ASK_LIMIT_S)
    for node_id, answers in answered.results.items():
        yield from of_cuda(found[node_id].checkup.node.host, answers)
    for node_id, error in answered.failed.items():
        yield _no_answer(found[node_id].checkup.node.host, error)


def _upload(folder: Path | None, healthy: list[str]) -> Iterator[Finding]:
    """How much a job's submission would carry from `folder`."""
    if folder is None:
        return
    upload = upload_of(folder)
    healthy.append(f"{folder}: an upload of {upload.num_bytes / 2**20:.1f} MiB in {upload.num_files} files")
    yield from of_upload(folder, upload)


def _no_answer(where: str, error: BaseException | None) -> Finding:
    if error is None:
        what = f"no answer in {ASK_LIMIT_S:.0f} s"
        return Finding("error", where, what, "see whether it runs, and take it out of the cluster if not")
    reason = " ".join(str(getattr(error, "cause", None) or error).split())[-300:]
    return Finding("error", where, f"raybench does not run there: {reason}", "install the same raybench on every node")


def _talk(inventory: Inventory, storage: str) -> Talked | Finding:
    """An all-reduce over every GPU, or one worker a node on CPU."""
    on_gpus = inventory.device_kind == "cuda"
    workers = inventory.places if on_gpus else len([room for room in inventory.rooms if room.cpus > 1.0])
    found = place(inventory.rooms, workers=workers, nodes=None, packing="pack" if on_gpus else "spread",
                  device_kind=inventory.device_kind, cpus_asked=1.0)  # fmt: skip
    if isinstance(found, NoRoom):
        return Finding("error", "cluster", found.reason, "see `ray status` for who holds the rest")
    told = talk(_spec(found, inventory.device_kind), storage=storage, name=f"doctor-{uuid.uuid4().hex[:8]}")
    if isinstance(told, Talked):
        return told
    cure = "see that the nodes reach each other on all ports, or set GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME"
    return Finding("error", "network", told, cure)


def _spec(placement: Placement, device_kind: str) -> GroupSpec:
    environment = passed_environment(placement.seat)
    return GroupSpec(placement.node_ids, device_kind, placement.seat, backend_for("auto", device_kind), environment)


def _storage(out: Place) -> Iterator[Finding]:
    """Write, rename (in a folder), list and remove, as a commit does."""
    probe = f".raybench-doctor-{uuid.uuid4().hex[:8]}"
    if isinstance(out, ObjectPath):
        yield from _object_store(out, probe)
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{probe}.part").write_bytes(b"x" * 4096)
        (out / f"{probe}.part").rename(out / probe)
        listed = probe in {path.name for path in out.iterdir()}
        (out / probe).unlink()
    except OSError as error:
        yield Finding("error", str(out), f"results cannot be written: {error.strerror or error}", "give another --out")
        return
    if not listed:
        yield Finding("error", str(out), "a file that was written is not listed", "give another --out")


def _object_store(out: ObjectPath, probe: str) -> Iterator[Finding]:
    try:
        retried(lambda: (out / probe).write_bytes(b"x" * 4096))
        listed = out / probe in out.below(recursive=False)
        (out / probe).remove()
    except StoreError as error:
        what, _, cure = str(error).rpartition("; ")
        yield Finding("error", str(out), what or cure, cure if what else "give another --out")
        return
    if not listed:
        yield Finding("error", str(out), "an object that was written is not listed", "give another --out")
