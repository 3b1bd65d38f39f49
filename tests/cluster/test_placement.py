"""On which nodes workers sit, worked by hand."""

import pytest

from raybench.cluster.capacity import NodeRoom, NoRoom, Seat
from raybench.cluster.placement import Placement, place


def room(name: str, **changes) -> NodeRoom:
    values = {"node_id": name, "address": f"10.0.0.{name}", "cores": 2, "cpus": 2.0, "gpus": 0, "gpu_model": None}
    return NodeRoom(**(values | changes))


def box(name: str, gpus: int = 8, model: str = "NVIDIA H200") -> NodeRoom:
    return room(name, cores=64, cpus=64.0, gpus=gpus, gpu_model=model)


THREE = [room("a"), room("b"), room("c")]


def placed(rooms, workers, nodes=None, packing="pack", device_kind="cpu", **asked):
    return place(rooms, workers=workers, nodes=nodes, packing=packing, device_kind=device_kind, cpus_asked=1.0, **asked)


@pytest.mark.parametrize(
    ("workers", "nodes", "packing", "where"),
    [
        (1, None, "pack", "a"),                  # the driver's node, which stands first
        (2, None, "pack", "aa"),                 # two cores hold two
        (3, None, "pack", "aab"),
        (6, None, "pack", "aabbcc"),
        (2, 2, "pack", "ab"),                    # two nodes are two nodes
        (3, 2, "pack", "aab"),                   # full, but for the one that the second must have
        (4, 3, "pack", "aabc"),
        (2, None, "spread", "ab"),
        (4, None, "spread", "aabc"),             # evenly over all three, the rest from the first on
        (4, 2, "spread", "aabb"),
        (3, None, "strict_spread", "abc"),
        (2, 2, "strict_spread", "ab"),
    ],
)  # fmt: skip
def test_where_workers_sit(workers, nodes, packing, where):
    """Three nodes of two cores."""
    found = placed(THREE, workers, nodes, packing)
    assert isinstance(found, Placement)
    assert "".join(found.node_ids) == where


@pytest.mark.parametrize(
    ("workers", "nodes", "packing", "told"),
    [
        (7, None, "pack", "7 workers (pack) need 7 CPU places; 10.0.0.a has 2, 10.0.0.b has 2, 10.0.0.c has 2"),
        (4, 4, "pack", "4 workers (pack) on 4 nodes need 4 CPU places; "),
        (5, 2, "spread", "5 workers (spread) on 2 nodes need 5 CPU places; "),
        (4, None, "strict_spread", "4 workers (strict_spread) on 4 nodes need 4 CPU places; "),
    ],
)
def test_what_does_not_fit_is_told_with_the_sum(workers, nodes, packing, told):
    """What is asked for and what each node has."""
    found = placed(THREE, workers, nodes, packing)
    assert isinstance(found, NoRoom)
    assert found.reason.startswith(told)


def test_all_workers_of_a_group_hold_the_same():
    """Two on a: (2 - 0.1) / 2 = 0.95 CPUs and 1 thread; one on b could have 1 and 2 threads, but gets no more."""
    found = placed(THREE, 3)
    assert isinstance(found, Placement)
    assert found.seat == Seat(0.95, 0, 1)


def test_a_head_without_gpus_gets_no_gpu_worker():
    """The driver's node stands first and is passed over; each of 16 workers has a GPU, 8 threads and one CPU."""
    found = placed([room("head"), box("a"), box("b")], 16, device_kind="cuda")
    assert found == Placement(("a",) * 8 + ("b",) * 8, Seat(1.0, 1, 8))


def test_one_node_is_taken_before_two():
    """Five GPUs: not four of the first and one of the second, but the second alone."""
    found = placed([box("a", 4), box("b", 8)], 5, device_kind="cuda")
    assert isinstance(found, Placement)
    assert found.node_ids == ("b",) * 5


def test_gpu_models_are_not_mixed():
    """Eight H200 and four A100: twelve workers do not fit, four may sit on either, eight on the H200 only."""
    rooms = [box("a", 4, "NVIDIA A100"), box("b", 8)]
    refused = placed(rooms, 12, device_kind="cuda")
    assert isinstance(refused, NoRoom)
    assert refused.reason.endswith(
        "10.0.0.a has 4 (NVIDIA A100), 10.0.0.b has 8 (NVIDIA H200); "
        "GPUs of different models are mixed only with gpu_model: mixed"
    )
    fits = placed(rooms, 8, device_kind="cuda")
    assert isinstance(fits, Placement)
    assert set(fits.node_ids) == {"b"}


@pytest.mark.parametrize(
    ("workers", "gpu_model", "where"),
    [(4, "H200", "b"), (4, "nvidia a100", "a"), (4, "A100-SXM4", ""), (12, "mixed", "ba"), (8, "A100", "")],
)
def test_a_gpu_model_that_is_asked_for(workers, gpu_model, where):
    """By any of its words; `mixed` takes all, the larger node first; no A100 is an SXM4, and there are only four."""
    rooms = [box("a", 4, "NVIDIA A100-PCIE-40GB"), box("b", 8)]
    found = placed(rooms, workers, device_kind="cuda", gpu_model=gpu_model)
    assert where == ("".join(dict.fromkeys(found.node_ids)) if isinstance(found, Placement) else "")


def test_a_missing_gpu_model_is_told():
    """What is asked for, and what each node has of it."""
    rooms = [box("a", 4, "NVIDIA A100"), box("b", 8)]
    refused = placed(rooms, 8, device_kind="cuda", gpu_model="A100")
    assert isinstance(refused, NoRoom)
    assert refused.reason == (
        "8 workers (pack) need 8 GPUs named A100; 10.0.0.a has 4 (NVIDIA A100), 10.0.0.b has 0 (NVIDIA H200)"
    )
    on_cpu = placed(THREE, 1, gpu_model="A100")
    assert isinstance(on_cpu, NoRoom)
    assert on_cpu.reason == "gpu_model A100 asks for GPUs, and this trial runs on cpu"


def test_custom_resources_say_where_workers_may_sit():
    """Of half a disk each, one disk is enough for two workers, and b has it; three need the one of c as well."""
    rooms = [room("a"), room("b", resources={"fast_disk": 1.0}), room("c", resources={"fast_disk": 1.0})]
    two, three = (placed(rooms, workers, resources={"fast_disk": 0.5}) for workers in (2, 3))
    assert isinstance(two, Placement)
    assert isinstance(three, Placement)
    assert (two.node_ids, three.node_ids) == (("b", "b"), ("b", "b", "c"))
    refused = placed(rooms, 3, resources={"fast_disk": 1.0})
    assert isinstance(refused, NoRoom)
    assert refused.reason == (
        "3 workers (pack) need 3 CPU places with 1 fast_disk each; 10.0.0.a has 0, 10.0.0.b has 1, 10.0.0.c has 1"
    )


def test_a_node_without_free_cpus_holds_nobody():
    """0.1 is kept for the driver's own; a node whose CPUs are all given away is passed over."""
    found = placed([room("a", cpus=0.1), room("b")], 1)
    assert isinstance(found, Placement)
    assert found.node_ids == ("b",)


def test_every_node_keeps_cpus_for_reading():
    """Two nodes of 2 CPUs: 2 - 0.1 - 1 = 0.9 for each worker; two CPUs a node would leave none."""
    there = [room("a"), room("b")]
    words = {"workers": 2, "nodes": 2, "packing": "pack", "device_kind": "cpu", "cpus_asked": 1.0}
    assert place(there, data_cpus=1, **words) == Placement(("a", "b"), Seat(0.9, 0, 2))
    assert isinstance(place(there, data_cpus=2, **words), NoRoom)
