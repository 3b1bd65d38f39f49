"""Run a sweep on the head of a cluster; `ray submit` carries only this file there.

    ray submit cluster.yaml sweeps/submit.py -- quick --out s3://bucket/results

What follows `--` is for `raybench run`. A sweep of your own goes there first:

    ray rsync-up cluster.yaml mine.yaml '~/mine.yaml'
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(words: list[str]) -> None:
    """Become `raybench run WORDS` on the Ray that runs here, so that signals and the exit code are its own."""
    sweep = next((word for word in words if word.endswith((".yaml", ".yml"))), None)
    if sweep is not None and not Path(sweep).expanduser().exists():
        words = [Path(word).stem if word == sweep else word for word in words]      # a shipped one is there by its name
        _refuse_absent(sweep)
    os.chdir(Path.home())
    os.execv(sys.executable, [sys.executable, "-m", "raybench", "run", *words])


def _refuse_absent(sweep: str) -> None:
    """End with a line that says what to do, unless raybench ships a sweep of that name."""
    from raybench.spec.reader import shipped_sweeps

    if Path(sweep).stem not in shipped_sweeps():
        cure = f"take it there first: ray rsync-up cluster.yaml {sweep} '~/{sweep}'"
        print(f"{sweep}: not on this node; {cure}", file=sys.stderr)
        raise SystemExit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
