"""The terminal is raybench's: what others print goes to a file."""

import subprocess
import sys

SCRIPT = """
import os, subprocess, sys
from pathlib import Path
from raybench.cluster.quiet import kept_stdout, printing_into
with kept_stdout() as mine, printing_into(Path(sys.argv[1])):
    print("python")
    os.write(1, b"descriptor\\n")
    subprocess.run(["echo", "child"], check=True)
    print("warning", file=sys.stderr)
    print("mine", file=mine)
print("after")
"""


def test_only_the_kept_stdout_reaches_the_terminal(tmp_path):
    """Prints of Python, of C and of child processes land in the log; afterwards all is as before."""
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(log)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "mine\nafter\n"
    assert done.stderr == ""
    assert sorted(log.read_text().split()) == ["child", "descriptor", "python", "warning"]
