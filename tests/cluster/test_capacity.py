"""Whether a group fits, by hand-worked sums."""

import pytest

from raybench.cluster.capacity import NodeRoom, NoRoom, Seat, seat


def room(**changes) -> NodeRoom:
    values = {"node_id": "n1", "address": "10.0.0.4", "cores": 2, "cpus": 2.0, "gpus": 0, "gpu_model": None}
    return NodeRoom(**(values | changes))


def test_two_workers_on_a_ray_of_two_cpus():
    """(2 - 0.1) / 2 = 0.95 each: a whole CPU each would leave Tune's trial waiting for ever."""
    assert seat(room(), workers=2, device_kind="cpu", cpus_asked=1.0) == Seat(0.95, 0, 1)


def test_share_is_cut_to_two_digits():
    """(2 - 0.1) / 3 = 0.6333..., rounded down so that the sum still fits."""
    assert seat(room(cores=4), workers=3, device_kind="cpu", cpus_asked=1.0) == Seat(0.63, 0, 1)


def test_no_more_than_asked():
    """A private Ray of 4 CPUs could give 3.9 to one worker; one was asked for. Its threads are all cores."""
    assert seat(room(cpus=4.0), workers=1, device_kind="cpu", cpus_asked=1.0) == Seat(1.0, 0, 2)


def test_too_many_cpu_workers():
    """64 workers on 2 cores: refused with the sum."""
    found = seat(room(), workers=64, device_kind="cpu", cpus_asked=1.0)
    assert isinstance(found, NoRoom)
    assert "64 workers" in found.reason
    assert "at most 2" in found.reason


def test_one_core_still_holds_two_workers():
    """Two ranks are the smallest group that communicates, so every machine holds that many."""
    assert isinstance(seat(room(cores=1), workers=2, device_kind="cpu", cpus_asked=1.0), Seat)


def test_gpus_are_counted():
    """Eight GPUs hold eight workers, each with one, whatever the cores."""
    big = room(cores=16, cpus=16.0, gpus=8, gpu_model="NVIDIA H200")
    assert seat(big, workers=8, device_kind="cuda", cpus_asked=1.0) == Seat(1.0, 1, 2)
    assert isinstance(seat(big, workers=9, device_kind="cuda", cpus_asked=1.0), NoRoom)


@pytest.mark.parametrize("cpus", [0.0, 0.05, 0.1])
def test_a_ray_without_free_cpus(cpus):
    """Others hold everything: said, not waited for."""
    assert isinstance(seat(room(cpus=cpus), workers=1, device_kind="cpu", cpus_asked=1.0), NoRoom)


def test_tasks_that_read_data_have_their_cpu():
    """A ray of three CPUs: (3 - 0.1 - 1) / 2 = 0.95 each; without the reading (3 - 0.1) / 2 would be a whole CPU."""
    assert seat(room(cpus=3.0, data_cpus=1), workers=2, device_kind="cpu", cpus_asked=1.0) == Seat(0.95, 0, 1)
    assert seat(room(cpus=3.0), workers=2, device_kind="cpu", cpus_asked=1.0) == Seat(1.0, 0, 1)


def test_no_cpu_for_the_tasks_that_read_data():
    """One CPU is theirs alone: said with the sum, not waited for."""
    found = seat(room(cpus=1.0, data_cpus=1), workers=1, device_kind="cpu", cpus_asked=1.0)
    assert isinstance(found, NoRoom)
    assert found.reason == (
        "1 workers need at least 0.01 CPUs beside 0.1 for the driver's own and 1 for Ray Data's tasks; Ray on 10.0.0.4 "
        "has 1 free"
    )
