"""Which batch job a run belongs to."""

import json

import pytest

from raybench.cluster.batch_job import RAY_JOB_SETTING, ray_job_id, slurm_facts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"runtime_env": {}, "metadata": {"job_submission_id": "raysubmit_a1", "job_name": "x"}}', "raysubmit_a1"),
        ('{"runtime_env": {}}', None),
        ("no JSON", None),
        ("[]", None),
        (None, None),
    ],
)
def test_the_id_of_a_ray_job(text, found, monkeypatch):
    """As Ray hands it to the driver's process."""
    monkeypatch.delenv(RAY_JOB_SETTING, raising=False)
    if text is not None:
        monkeypatch.setenv(RAY_JOB_SETTING, text)
    assert ray_job_id() == found


def test_slurm_is_told_by_an_allow_list():
    """What identifies the job is kept; whatever else Slurm or the user set is not."""
    environment = {"SLURM_JOB_ID": "17", "SLURM_JOB_PARTITION": "gpu", "SLURM_JWT": "secret", "AWS_SECRET": "x"}
    assert json.loads(slurm_facts(environment) or "") == {"job_id": "17", "partition": "gpu"}
    assert slurm_facts({"SLURM_JWT": "secret"}) is None
