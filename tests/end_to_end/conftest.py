"""Hosts for the tests that run the real command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.harness import Host, new_host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A user of their own, with nothing running."""
    with new_host(tmp_path) as made:
        yield made
