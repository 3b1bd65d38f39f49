"""Names of clusters: given ones are checked, found ones made to fit."""

import pytest

from raybench.cluster import naming
from raybench.cluster.naming import cluster_name, tidy
from raybench.errors import UsageError


@pytest.fixture(autouse=True)
def _no_names_from_outside(monkeypatch, tmp_path):
    monkeypatch.delenv("RAYBENCH_CLUSTER", raising=False)
    monkeypatch.setattr(naming, "BOOTSTRAP_FILE", tmp_path / "ray_bootstrap_config.yaml")


def test_order(monkeypatch, tmp_path):
    """Option, environment, Ray's bootstrap file, host name of the head."""
    assert cluster_name(None, head_host="Node-7.lan") == "node-7.lan"
    (tmp_path / "ray_bootstrap_config.yaml").write_text("cluster_name: Prod GPUs\nmax_workers: 2\n")
    assert cluster_name(None, head_host="x") == "prod-gpus"
    monkeypatch.setenv("RAYBENCH_CLUSTER", "env")
    assert cluster_name(None, head_host="x") == "env"
    assert cluster_name("Mine", head_host="x") == "mine"


@pytest.mark.parametrize("hostile", ["../x", "a/b", "a b", "", "x" * 65, "a..b", "\x1b[2J"])
def test_hostile_names_are_refused(hostile):
    """A name becomes part of no path, but still has one form everywhere."""
    with pytest.raises(UsageError):
        cluster_name(hostile, head_host="x")


def test_found_names_are_made_to_fit():
    """Host names may hold anything a user typed once."""
    assert tidy("..Ünï côde..") == "n--c-de-"
    assert tidy("") == "cluster"
