"""Planning for a cluster that is not at hand."""

import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raybench.cli import app
from raybench.cluster.capacity import NodeRoom
from raybench.cluster.inventory import Inventory, difference
from raybench.cluster.inventory_file import read_inventory, write_inventory
from raybench.errors import UsageError


def cluster(nodes: int) -> Inventory:
    """Nodes of eight GPUs behind a head without any."""
    head = NodeRoom("head", "10.0.0.1", 4, 4.0, 0, None)
    boxes = [NodeRoom(f"n{i}", f"10.0.1.{i}", 64, 64.0, 8, "NVIDIA H200") for i in range(nodes)]
    return Inventory((head, *boxes), "head", "cuda")


def test_it_comes_back_as_it_was(tmp_path: Path):
    """Rooms, kind, and the driver's node first."""
    write_inventory(cluster(2), tmp_path / "inv.json")
    assert read_inventory(tmp_path / "inv.json") == cluster(2)
    assert cluster(2).hardware == "3 nodes, 16x NVIDIA H200"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"version": 1, "device_kind": "cuda", "rooms": [{"cores": 1}]}'])
def test_another_file_is_refused(tmp_path: Path, text: str):
    """In a line that says what writes one."""
    (tmp_path / "inv.json").write_text(text)
    with pytest.raises(UsageError, match="not written by `raybench doctor --inventory`"):
        read_inventory(tmp_path / "inv.json")


def test_plan_for_1024_gpus(tmp_path: Path):
    """`auto` goes to 1024 in eleven steps; what cannot be placed is told; all of it in 2 s."""
    write_inventory(cluster(128), tmp_path / "inv.json")
    sweep = tmp_path / "big.yaml"
    sweep.write_text(
        "name: big\nbase: {workload: matmul, model: {m: 8192, k: 64, n: 64}}\naxes: {num_workers: auto}\n"
        "include: [{num_workers: 256, packing: strict_spread}]\n"
    )
    started = time.process_time()
    done = CliRunner().invoke(app, ["plan", str(sweep), "--inventory", str(tmp_path / "inv.json")])
    assert time.process_time() - started < 2.0
    assert done.exit_code == 0, done.output
    assert "num_workers: auto stands for the inventory's 129 nodes, 1024x NVIDIA H200" in done.output
    assert "12 trials" in done.output
    told = " ".join(done.output.split())
    assert "1 trial would be infeasible: 256 workers (strict_spread) on 256 nodes need 256 GPUs" in told


def test_nodes_that_are_equal_differ_in_nothing():
    """Nor does a single one."""
    assert difference("os", []) is None
