"""The cluster files that ship: Ray itself accepts them, and they are as safe as they claim."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "sweeps" / "cluster"
LAUNCHED = [ROOT / "cluster.yaml", FOLDER / "onprem.yaml"]


def loaded(path: Path) -> Any:
    """The file as Ray's own reader sees it."""
    return YAML(typ="safe", pure=True).load(path.read_text())


@pytest.mark.parametrize("path", LAUNCHED, ids=lambda path: path.name)
def test_rays_own_check_passes(path: Path) -> None:
    """What `ray up` does before it reaches for any machine: defaults filled in, then checked against its schema."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(loaded(path)))


@pytest.mark.parametrize("path", LAUNCHED, ids=lambda path: path.name)
def test_three_lines_are_to_be_edited(path: Path) -> None:
    """As the first comment says."""
    assert len(re.findall(r"# EDIT", path.read_text())) == 3


@pytest.mark.parametrize("path", LAUNCHED, ids=lambda path: path.name)
def test_token_and_dashboard(path: Path) -> None:
    """The token is carried to every node and asked for; the dashboard answers on the head's own address only."""
    config = loaded(path)
    assert config["file_mounts"] == {"~/.ray/auth_token": "~/.ray/auth_token"}
    commands = " ".join(config["setup_commands"] + config["initialization_commands"])
    assert "RAY_AUTH_MODE=token" in commands
    assert "chmod 600 ~/.ray/auth_token" in commands
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][0]


def test_the_aws_head_holds_no_gpu_and_workers_have_bounds() -> None:
    """One GPU node from the start, four at most."""
    types = loaded(ROOT / "cluster.yaml")["available_node_types"]
    assert types["head"]["max_workers"] == 0
    assert (types["gpu"]["min_workers"], types["gpu"]["max_workers"]) == (1, 4)


def test_the_rayjob_is_what_kuberay_takes() -> None:
    """One image for all, token authentication on, and results on a volume that outlives the job."""
    job = loaded(FOLDER / "rayjob.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    templates = [cluster["headGroupSpec"]["template"], *(g["template"] for g in cluster["workerGroupSpecs"])]
    containers = [template["spec"]["containers"][0] for template in templates]
    assert len({container["image"] for container in containers}) == 1
    assert all("results" in {mount["name"] for mount in container["volumeMounts"]} for container in containers)


def test_the_slurm_script_is_sound() -> None:
    """bash parses it, and Ray knows the options that it is given."""
    script = FOLDER / "slurm.sh"
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text()
    assert "RAY_AUTH_MODE=token" in text
    from ray.scripts.symmetric_run import symmetric_run

    known = {option for parameter in symmetric_run.params for option in parameter.opts}
    assert {"--address", "--min-nodes"} <= known
