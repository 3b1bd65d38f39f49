"""The deadline inside a worker, in a process of its own."""

import subprocess
import sys
from pathlib import Path

from raybench.cluster.deadline import absent_rank, deadline, expired, read_stacks, stack_file

HANG = """
import threading
from pathlib import Path
from raybench.cluster.deadline import deadline
def never_arrives():
    threading.Event().wait()
with deadline(0.3, Path({path!r})):
    never_arrives()
"""


def test_a_hang_ends_with_its_stack(tmp_path: Path):
    """The process exits 1 by itself and the file names the function it stood in."""
    path = stack_file(str(tmp_path), "uid", 1)
    done = subprocess.run([sys.executable, "-c", HANG.format(path=str(path))], timeout=60, check=False)
    assert done.returncode == 1
    stacks = read_stacks(str(tmp_path), "uid")
    assert list(stacks) == [1]
    assert expired(stacks[1])
    assert "never_arrives" in stacks[1]


def test_an_error_leaves_its_stack_but_is_no_expiry(tmp_path: Path):
    """Where the peers of a dead rank stood is kept, and is not taken for a deadline of their own."""
    path = stack_file(str(tmp_path), "uid", 0)
    try:
        with deadline(60.0, path):
            raise RuntimeError("connection closed by peer")
    except RuntimeError:
        pass
    text = read_stacks(str(tmp_path), "uid")[0]
    assert not expired(text)
    assert "test_deadline" in text


def test_in_time_leaves_nothing(tmp_path: Path):
    """A trial that ends well has no marker."""
    with deadline(60.0, stack_file(str(tmp_path), "uid", 0)):
        pass
    assert read_stacks(str(tmp_path), "uid") == {}


def test_the_absent_rank_is_named():
    """One rank stood in user code while the other waited in a collective."""
    stacks = {0: 'File "torch/distributed/distributed_c10d.py", line 1 in barrier', 1: 'File "user.py", line 1 in f'}
    assert absent_rank(stacks, 2) == 1
    assert absent_rank({0: stacks[1], 1: stacks[1]}, 2) is None
    assert absent_rank({0: stacks[0], 1: stacks[0]}, 2) is None
    assert absent_rank({0: stacks[1]}, 1) is None


def test_a_frozen_rank_wrote_nothing_and_is_the_absent_one():
    """SIGSTOP: rank 1 has no stack, rank 0 waits for it in its collective."""
    assert absent_rank({0: 'File "torch/distributed/distributed_c10d.py", line 1 in all_reduce'}, 2) == 1
