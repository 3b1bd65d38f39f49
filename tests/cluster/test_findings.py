"""What is told of a node by what it says of itself."""

import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from raybench.cluster import cuda_answers
from raybench.cluster.checkup import Checkup, Examined, examined
from raybench.cluster.doctor import Diagnosis
from raybench.cluster.findings import between_nodes, of_cuda, of_node, of_upload
from raybench.cluster.preflight import Preflight
from raybench.cluster.upload import Upload, upload_of
from raybench.errors import ClusterError
from raybench.record.node import Node
from raybench.results.finding import Finding

GIB = 2**30


def checkup(node=None, **changes) -> Checkup:
    facts = {
        "node_key": "k", "sweep_run_id": "r", "seen_at": datetime(2026, 3, 1, tzinfo=timezone.utc), "host": "beta",
        "address": "10.0.0.3", "os": "Linux", "python_version": "3.11.7", "cpu_model": "CPU", "cpu_cores": 2,
        "memory_bytes": 8 * GIB, "gpu_count": 0, "gpu_models": "", "gpu_uuids": "", "gpu_memory_bytes": None,
        "driver_version": None, "torch_version": "2.13.0", "cuda_version": None, "nccl_version": None,
        "ray_version": "2.60.0", "raybench_version": "0.1.0", "network_interface": "eth0",
    } | (node or {})  # fmt: skip
    said = {
        "node": Node(**facts), "cores": 2, "source_hash": "same", "now_s": 0.0, "token_mode": 0o600, "held_bytes": 0,
        "free_bytes": {"temporary files": 50 * GIB, "data": 50 * GIB, "shared memory": GIB},
    } | changes  # fmt: skip
    return Checkup(**said)


def told(seen: Checkup, ray_gpus: int = 0, skew_s: float = 0.0) -> list[str]:
    found = Examined(checkup=seen, ray_gpus=ray_gpus, skew_s=skew_s)
    return [str(finding) for finding in of_node(found, own_hash="same")]


def test_a_sound_node_is_told_nothing():
    """A token of its own user, room everywhere, the same raybench."""
    assert told(checkup()) == []


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        (checkup(source_hash="other"), "error: beta: raybench 0.1.0 with other sources than this command's; "),
        (checkup(token_mode=0o644), "warning: beta: the token file can be read by others (mode 644); chmod 600 "),
        (checkup(free_bytes={"temporary files": GIB // 2, "data": 50 * GIB, "shared memory": GIB}),
         "error: beta: 0.50 GiB free for temporary files, 2.00 are needed; "),
        (checkup(held_bytes=3 * GIB), "warning: beta: other processes hold 3.0 GiB on its GPUs; nvidia-smi "),
    ],
)  # fmt: skip
def test_each_fault_is_one_line_with_its_cure(seen, line):
    """One finding for one fault."""
    (found,) = told(seen)
    assert found.startswith(line)


def test_a_container_without_its_gpus():
    """Ray gives out eight that the driver does not show, and torch could not use them."""
    found = told(checkup(), ray_gpus=8)
    assert found[0].startswith("error: beta: Ray gives out 8 GPUs, the NVIDIA driver shows 0; ")
    assert found[1].startswith("error: beta: torch 2.13.0 is a CPU build; ")


@pytest.mark.parametrize(("skew_s", "count"), [(0.9, 0), (-2.5, 1), (1.1, 1)])
def test_a_clock_that_is_off(skew_s, count):
    """More than a second, either way."""
    assert len(told(checkup(), skew_s=skew_s)) == count


@pytest.mark.parametrize(("now_s", "skew_s"), [(99.0, -1.0), (100.5, 0.0), (104.0, 2.0)])
def test_only_what_is_certain_of_a_clock_counts(now_s, skew_s):
    """Asked between 100 and 102 by our own clock: what a node read in between may be right."""
    nodes = {"n": {"Resources": {"GPU": 2.0}}}
    found = examined({"n": checkup(now_s=now_s)}, nodes, began_s=100.0, ended_s=102.0)
    assert (found["n"].skew_s, found["n"].ray_gpus) == (skew_s, 2)


def test_gpus_that_do_not_compute():
    """Each by its number; none seen at all is one finding, all in order none."""
    assert [str(finding) for finding in of_cuda("beta", (None, "out of memory"))] == [
        "error: beta: GPU 1 does not compute: out of memory; "
        "see nvidia-smi and dmesg there; reset it, or leave the node out"
    ]
    (blind,) = of_cuda("beta", ())
    assert blind.what == "torch sees none of the GPUs that Ray gives out"
    assert list(of_cuda("beta", (None, None))) == []


@pytest.mark.parametrize(
    ("script", "answers"),
    [
        ("import os; print('a banner'); print('[null, \"busy\"]' if 'CUDA_VISIBLE_DEVICES' not in os.environ else '')",
         (None, "busy")),
        ("raise SystemExit('no driver')", ("python ended with 1: no driver",)),
        ("import time; time.sleep(60)", ("no answer in 0 s",)),
    ],
)  # fmt: skip
def test_cuda_is_tried_in_a_process_of_its_own(script, answers, monkeypatch):
    """Which sees every GPU although Ray shows a task without GPUs none, and may end or hang."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(cuda_answers, "_TRY", script)
    monkeypatch.setattr(cuda_answers, "TRY_LIMIT_S", 0.3 if "sleep" in script else 60.0)
    assert cuda_answers.cuda_answers() == answers


def test_what_a_job_would_upload(tmp_path):
    """All but what the ignore files name: 3 + 50 bytes and the 9 of the file itself, the folder `data` the most."""
    (tmp_path / "data").mkdir()
    (tmp_path / "results").mkdir()
    for name, size in {"mine.yaml": 3, "data/a": 50, "results/old": 100}.items():
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / ".rayignore").write_text("/results\n")
    assert upload_of(tmp_path) == Upload(num_files=3, num_bytes=3 + 50 + 9, largest="data")


@pytest.mark.parametrize(("mib", "levels"), [(99, []), (100, ["warning"]), (511, ["warning"]), (512, ["error"])])
def test_large_uploads(mib, levels):
    """Ray takes less than 512 MiB, and every node unpacks it before the job starts."""
    found = list(of_upload(Path("/home/me"), Upload(num_files=1, num_bytes=mib * 2**20, largest="data")))
    assert [finding.level for finding in found] == levels


def test_strict_takes_no_finding():
    """The first is told; without any the run goes on."""
    Preflight("3 nodes", ()).refuse()
    with pytest.raises(ClusterError, match="2 findings, the first: warning: beta: x; y; --strict takes none"):
        Preflight("3 nodes", (Finding("warning", "beta", "x", "y"), Finding("error", "gamma", "x", "y"))).refuse()


def test_nodes_with_different_torch():
    """Named with what each has."""
    (found,) = between_nodes([checkup(), checkup({"host": "gamma", "torch_version": "2.12.0"})])
    assert found.level == "warning"
    assert found.what == "nodes differ in torch_version: 2.13.0 on beta; 2.12.0 on gamma"


def test_exit_codes():
    """Warnings are fatal when asked to be, errors always."""
    warning, error = (Finding(level, "beta", "x", "y") for level in ("warning", "error"))
    assert Diagnosis((), ()).exit_code(strict=True) == 0
    assert [Diagnosis((), (warning,)).exit_code(strict=strict) for strict in (False, True)] == [0, 3]
    assert Diagnosis((), (warning, error)).exit_code(strict=False) == 3


def test_a_checkup_needs_no_torch():
    """Seconds on every node otherwise, and a torch that is broken there must not hide everything else."""
    code = "import sys, raybench.cluster.checkup, raybench.cluster.inventory; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
