"""Run a sweep on several raylets of this machine and note, trial by trial, what the driver holds.

`python -m tests.cluster.many_trials SWEEP OUT REPORT`; REPORT becomes a JSON list with an object a trial.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psutil
from ray.cluster_utils import Cluster

from raybench.cluster.run import Silent, run_sweep
from raybench.record.trial import Trial

RAYLETS = 8      # on two cores each holds two workers at most


class Recorder(Silent):
    """Notes the driver's resident memory, in bytes, and the overhead whenever a trial has ended."""

    def __init__(self) -> None:
        self.notes: list[dict[str, Any]] = []
        self._process = psutil.Process()

    def trial_ended(self, trial: Trial, label: str, position: int) -> None:
        """Called by the dispatcher after each commit."""
        self.notes.append({
            "outcome": trial.outcome, "num_workers": trial.num_workers, "num_nodes": trial.num_nodes,
            "group_trial_index": trial.group_trial_index, "overhead_s": trial.overhead_s,
            "rss_bytes": self._process.memory_info().rss, "error_text": trial.error_text,
        })  # fmt: skip

    def notice(self, text: str) -> None:
        """For the log of a test that failed."""
        print(text, flush=True)


def main(sweep: str, out: str, report: str) -> None:
    """One head and seven more raylets, which end with the process."""
    small = {"num_cpus": 2, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    try:
        for _ in range(RAYLETS - 1):
            cluster.add_node(**small)
        cluster.wait_for_nodes(timeout=600)
        recorder = Recorder()
        run_sweep(sweep, out=out, address=cluster.address, observer=recorder)
        Path(report).write_text(json.dumps(recorder.notes))
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
