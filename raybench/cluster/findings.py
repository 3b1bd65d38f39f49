"""What is wrong with a cluster, by what its nodes say of themselves: each finding a line with what to do. Pure.

An `error`: a run would fail or lose results. A `warning`: its numbers may be worth less, or the cluster is unsafe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from raybench.cluster.checkup import Checkup, Examined
from raybench.cluster.inventory import difference
from raybench.cluster.upload import MAX_UPLOAD_BYTES, Upload
from raybench.results.finding import Finding

MAX_SKEW_S = 1.0
HELD_BYTES = 500 * 2**20      # a driver's own bookkeeping on an idle GPU stays below
LEAST_FREE_BYTES = {"temporary files": 2 * 2**30, "data": 2 * 2**30, "shared memory": 256 * 2**20}
WARN_UPLOAD_BYTES = 100 * 2**20      # every node unpacks it before the job starts
_EXPECTED_EQUAL = ("python_version", "torch_version", "cuda_version", "nccl_version", "driver_version", "gpu_models")


def of_node(found: Examined, *, own_hash: str) -> Iterator[Finding]:
    """What is wrong with one node."""
    seen, ray_gpus, skew_s = found.checkup, found.ray_gpus, found.skew_s
    node, host = seen.node, seen.node.host
    if seen.source_hash != own_hash:
        what = f"raybench {node.raybench_version} with other sources than this command's"
        yield Finding("error", host, what, "install the same raybench on every node")
    if ray_gpus > node.gpu_count:
        what = f"Ray gives out {ray_gpus} GPUs, the NVIDIA driver shows {node.gpu_count}"
        yield Finding("error", host, what, "check nvidia-smi there, and that a container is started with its GPUs")
    if ray_gpus and node.cuda_version is None:
        yield Finding("error", host, f"torch {node.torch_version} is a CPU build", "install torch built for CUDA there")
    if seen.token_mode is not None and seen.token_mode & 0o077:
        what = f"the token file can be read by others (mode {seen.token_mode:o})"
        yield Finding("warning", host, what, "chmod 600 ~/.ray/auth_token")
    if abs(skew_s) > MAX_SKEW_S:
        yield Finding("warning", host, f"its clock is {skew_s:+.1f} s off the driver's", "start chrony or ntpd there")
    for place, least in LEAST_FREE_BYTES.items():
        if seen.free_bytes[place] < least:
            what = f"{seen.free_bytes[place] / 2**30:.2f} GiB free for {place}, {least / 2**30:.2f} are needed"
            yield Finding("error", host, what, "free some, or give the container more")
    if seen.held_bytes > HELD_BYTES:
        what = f"other processes hold {seen.held_bytes / 2**30:.1f} GiB on its GPUs"
        yield Finding("warning", host, what, "nvidia-smi names them; end them or wait")


def of_cuda(host: str, answers: Sequence[str | None]) -> Iterator[Finding]:
    """`answers`: for each GPU of the node why torch could not compute on it, None where it could; none: no GPU seen."""
    if not answers:
        what = "torch sees none of the GPUs that Ray gives out"
        yield Finding("error", host, what, "run python -c 'import torch; torch.cuda.init()' there")
    for number, why in enumerate(answers):
        if why is not None:
            what = f"GPU {number} does not compute: {why}"
            yield Finding("error", host, what, "see nvidia-smi and dmesg there; reset it, or leave the node out")


def of_upload(folder: Path, upload: Upload) -> Iterator[Finding]:
    """Whether Ray would take the folder as a job's working directory."""
    if upload.num_bytes < WARN_UPLOAD_BYTES:
        return
    fatal = upload.num_bytes >= MAX_UPLOAD_BYTES
    what = f"{upload.num_bytes / 2**20:.0f} MiB to upload, of which {upload.largest} has the most"
    told = f"{what}; Ray takes {MAX_UPLOAD_BYTES / 2**20:.0f} MiB" if fatal else what
    yield Finding("error" if fatal else "warning", str(folder), told, "name what is not needed in .rayignore")


def between_nodes(seen: Sequence[Checkup]) -> Iterator[Finding]:
    """In what nodes differ that should not."""
    for name in _EXPECTED_EQUAL:
        told = difference(name, [each.node for each in seen])
        if told is not None:
            yield Finding("warning", "cluster", told, "install the same on all, or leave the odd ones out")
