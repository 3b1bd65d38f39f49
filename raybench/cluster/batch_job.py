"""The batch job that a run is part of: Ray's or Slurm's. An allow-list, because an environment holds secrets."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from raybench.spec.config import canonical_json

RAY_JOB_SETTING = "RAY_JOB_CONFIG_JSON_ENV_VAR"
_SLURM = {
    "job_id": "SLURM_JOB_ID",
    "job_name": "SLURM_JOB_NAME",
    "partition": "SLURM_JOB_PARTITION",
    "nodes": "SLURM_JOB_NUM_NODES",
    "cluster": "SLURM_CLUSTER_NAME",
}


def ray_job_id() -> str | None:
    """The id under which `ray job submit` runs this process; None outside a Ray job."""
    try:
        config = json.loads(os.environ.get(RAY_JOB_SETTING) or "{}")
    except ValueError:
        return None
    metadata = config.get("metadata") if isinstance(config, dict) else None
    found = metadata.get("job_submission_id") if isinstance(metadata, dict) else None
    return str(found) if found else None


def slurm_facts(environment: Mapping[str, str]) -> str | None:
    """Canonical JSON of what identifies a Slurm job; None outside one."""
    found = {name: environment[variable] for name, variable in _SLURM.items() if environment.get(variable)}
    return canonical_json(found) if "job_id" in found else None
