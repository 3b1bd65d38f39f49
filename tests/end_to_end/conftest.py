"""Hosts for the tests that run the real command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.finished import Finished, run_quick
from tests.end_to_end.harness import Host, new_host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A user of their own, with nothing running."""
    with new_host(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def module_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One for all tests of a module, which look at the same run."""
    with new_host(tmp_path_factory.mktemp("module")) as made:
        yield made


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """`raybench run quick` as a newcomer types it, run once for all who look at what came of it."""
    with new_host(tmp_path_factory.mktemp("quick")) as made:
        yield run_quick(made)
