"""Running the real command as a child process, in a home and a Ray folder of its own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from raybench.results.load import load

ROOT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-m", "raybench"]
LIMIT_S = 1500.0         # of a command that takes one or two minutes where nothing else runs; only a hang is to end so
RAY_GONE_LIMIT_S = 65.0  # two of Ray's agents end by themselves a minute after their driver


@dataclass
class Host:
    """A user on a machine: a home folder, an environment, and a place for results."""

    folder: Path
    ray_folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        """Where this host's results go."""
        return self.folder / "out"

    def write(self, name: str, text: str) -> Path:
        """A file in the user's folder."""
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, *words: object, **env: str) -> subprocess.Popen[str]:
        """Start `raybench WORDS`; its own session, so that a signal reaches the driver only."""
        return self.start_python(*COMMAND[1:], *words, **env)

    def start_python(self, *words: object, **env: str) -> subprocess.Popen[str]:
        """Start `python WORDS` the same way."""
        return subprocess.Popen(
            [sys.executable, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.env | env, cwd=self.folder, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def run(self, *words: object, limit_s: float = LIMIT_S, **env: str) -> subprocess.CompletedProcess[str]:
        """Run `raybench WORDS` to its end."""
        process = self.start(*words, **env)
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            told = f"{out}\n{err}\n{self.ray_log()}"
            raise AssertionError(f"raybench {words} did not end in {limit_s} s\n{told}") from None
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def run_sweep(self, sweep: object, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        """`raybench run SWEEP --out <this host's>`."""
        return self.run("run", sweep, "--out", self.out, *words, **env)

    def rows(self, **options: object) -> pd.DataFrame:
        """The results so far."""
        return load(self.out, **options)  # type: ignore[arg-type]

    def committed(self) -> list[str]:
        """`trial_uid` of every committed row; empty before the first."""
        return list(self.rows(latest=False)["trial_uid"]) if any(self.out.rglob("trials/*/*.parquet")) else []

    def forget(self) -> None:
        """Remove all results, for a sweep that is to start anew."""
        shutil.rmtree(self.out)

    def starts(self) -> list[str]:
        """`trial_id` of every attempt that was started, by the runs' own logs."""
        logs = self.out.glob("raybench-v1/_meta/*/*/log.jsonl")
        events = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
        return [event["trial_id"] for event in events if event["event"] == "start"]

    def ray_log(self) -> str:
        """The end of what Ray printed, for a failing test's message."""
        logs = sorted(self.out.glob("raybench-v1/_meta/*/*/ray.log"))
        return logs[-1].read_text()[-3000:] if logs else ""

    def processes(self) -> list[int]:
        """Processes that carry this host's Ray folder in their environment."""
        mark = f"RAY_TMPDIR={self.ray_folder}\0".encode()
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in _read(path)]


@contextmanager
def new_host(folder: Path) -> Iterator[Host]:
    """A host, and at the end nothing of it left running."""
    ray_folder = Path(tempfile.mkdtemp(prefix="rb"))  # short: sockets lie below it
    home = folder / "home"
    home.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "RAYBENCH_"))}
    env = kept | {
        "HOME": str(home),
        "RAY_TMPDIR": str(ray_folder),
        "RAYBENCH_DATA_DIR": str(folder / "data"),
        "PYTHONPATH": f"{ROOT / 'tests' / 'plugins'}:{ROOT}",  # this checkout, wherever else one is installed
        "COLUMNS": "160",
    }
    host = Host(folder, ray_folder, env)
    try:
        yield host
    finally:
        for pid in host.processes():
            _end(pid)
        wait_until(lambda: not host.processes(), 30.0)
        shutil.rmtree(ray_folder, ignore_errors=True)


@contextmanager
def started_ray(host: Host, cpus: int = 2) -> Iterator[str]:
    """`ray start --head` on this node with token authentication, as a child that ends with the block. Its address."""
    token = Path(host.env["HOME"]) / ".ray" / "auth_token"
    token.parent.mkdir(mode=0o700, exist_ok=True)
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    host.env["RAY_AUTH_MODE"] = "token"
    words = ("--head", "--node-ip-address=127.0.0.1", f"--port={free_port()}", f"--num-cpus={cpus}",
             "--include-dashboard=false")  # fmt: skip
    announced = host.ray_folder / "ray" / "ray_current_cluster"
    with _ray_child(host, "ray-start.log", *words) as child:
        wait_until(lambda: child.poll() is not None or _listens(_read(announced).decode()), 300.0)
        assert child.poll() is None, (host.folder / "ray-start.log").read_text()
        yield announced.read_text()


@contextmanager
def joined_ray(host: Host, address: str, cpus: int = 2) -> Iterator[None]:
    """Another raylet on this node, as a second node of the Ray at that address; it ends with the block."""
    log = host.folder / "ray-join.log"
    words = (f"--address={address}", "--node-ip-address=127.0.0.1", f"--num-cpus={cpus}")
    with _ray_child(host, log.name, *words) as child:
        wait_until(lambda: child.poll() is not None or b"Ray runtime started" in _read(log), 300.0)
        assert child.poll() is None, log.read_text()
        yield


@contextmanager
def _ray_child(host: Host, log_name: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """`ray start --block WORDS` for the length of the block."""
    log = (host.folder / log_name).open("w")
    child = subprocess.Popen(
        [str(Path(sys.executable).parent / "ray"), "start", "--block", "--disable-usage-stats", *words],
        env=host.env, stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(5)       # it would wait 30 s for its agents; what is left ends with the host
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        log.close()


def wait_until(condition: Callable[[], bool], limit_s: float) -> float:
    """Wait for a condition and return how long it took; the limit only says when a test has failed."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < limit_s, f"not true after {limit_s} s"
        time.sleep(0.05)
    return time.monotonic() - started


def free_port() -> int:
    """A port of the loopback address that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    if not port:
        return False
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, int(port))) == 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # gone, or not ours


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
