"""Typed on a host: wait until Ray lists so many nodes, in one process, because each `ray` command costs seconds."""

from __future__ import annotations

import sys
import time

import ray


def main(wanted: int, limit_s: float) -> None:
    """End when there are `wanted` nodes alive, with an error that tells how many there were when there are not."""
    ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    until_s = time.monotonic() + limit_s
    while (alive := sum(node["Alive"] for node in ray.nodes())) != wanted:
        if time.monotonic() > until_s:
            sys.exit(f"{alive} of {wanted} nodes after {limit_s:g} s")
        time.sleep(0.5)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
