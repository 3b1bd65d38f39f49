"""Hosts on one machine: each with a network, processes, a name, a home, /tmp and an sshd of its own, on one bridge.

Everything lives in namespaces that the kernel ends with their first process, so nothing is left behind however a test
ends, and powering a host off is one signal. The laptop, from which a person would type, is a host too: it holds the
bridge. Hosts see the checkout and its environment, as machines do on which the same image was installed.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BOOT = Path(__file__).with_name("boot_host.sh")
HOME = "/mnt/home"
NETWORK = "10.77.0"
TOOLS = ("ip", "tc", "unshare", "nsenter", "setpriv", "ssh", "ssh-keygen", "sshd", "rsync")
_BOOT_LIMIT_S = 60.0
_NAMESPACES = ("--net", "--mount", "--pid", "--uts", "--ipc")
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_SHELL = {
    "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:{_SBIN}",
    "LANG": "C.UTF-8",
    "PYTHONPATH": str(ROOT),
    "RAY_USAGE_STATS_ENABLED": "0",
    # Three hosts share this machine's cores and memory: less of it for each, and more time for what has to start.
    "RAY_agent_register_timeout_ms": "120000",
    "RAY_worker_register_timeout_seconds": "120",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",      # then a node without its head ends; 60 otherwise
    "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": "200000000",
    "RAY_prestart_worker_first_driver": "0",
}
_SSHD = """\
ListenAddress 0.0.0.0
HostKey /run/sshd/host_key
AuthorizedKeysFile /run/sshd/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
StrictModes no
UseDNS no
PidFile none
MaxStartups 100
"""


def missing() -> str | None:
    """Why hosts cannot be made here; None when they can."""
    if os.geteuid() != 0:
        return "making hosts needs root"
    if importlib.util.find_spec("aiohttp") is None:
        return "ray[default] not installed, without which Ray has no jobs (`make test-cluster` installs it)"
    path = f"{os.environ['PATH']}:{_SBIN}"
    absent = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if absent:
        return f"{', '.join(absent)} not installed (iproute2, util-linux, openssh-server, rsync)"
    probe = "ip link add br0 type bridge && ip link add a0 type veth peer name b0 && mount -t tmpfs none /mnt"
    tried = subprocess.run(
        ["unshare", *_NAMESPACES, "--fork", "--mount-proc", "bash", "-c", probe],
        env=_environment(), capture_output=True, text=True,
    )  # fmt: skip
    return f"no privilege to make namespaces: {tried.stderr.strip()}" if tried.returncode else None


@dataclass(frozen=True)
class Machine:
    """A host. `pid` is its first process as seen from here; its end is the end of the host."""

    name: str
    address: str
    pid: int
    folder: Path

    @property
    def home(self) -> Path:
        """The home folder, as seen from here."""
        return self.folder / "home"

    def seen(self, path: str) -> Path:
        """A path of the host's own, as seen from here; there while the host runs."""
        return Path(f"/proc/{self.pid}/root{path}")

    def start(self, command: str, **options: object) -> subprocess.Popen[str]:
        """Start a command in the host's login shell, with nothing of this process's environment."""
        return subprocess.Popen(
            [*_enter(self.pid), "env", "-i", f"HOME={HOME}", "TERM=dumb", f"PATH={_SHELL['PATH']}", "LANG=C.UTF-8",
             "bash", "-c", f"cd; source ~/.bashrc; {command}"],
            text=True, stdin=subprocess.DEVNULL, start_new_session=True, **options,  # type: ignore[call-overload]
        )  # fmt: skip

    def run(self, command: str, *, limit_s: float = 120.0, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. An exit code other than 0 fails the test unless `check` is false."""
        process = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            out, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            raise AssertionError(f"{self.name}: {command}\nnot ended after {limit_s} s\n{out}") from None
        assert not check or process.returncode == 0, f"{self.name}: {command}\nexit code {process.returncode}\n{out}"
        return subprocess.CompletedProcess(command, process.returncode, out, "")

    @contextmanager
    def running(self, command: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on beside the test, and is ended with the block if it has not ended by itself."""
        process = self.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @property
    def is_on(self) -> bool:
        """Whether it runs."""
        return Path(f"/proc/{self.pid}/ns").exists() and bool(_children_or_self(self.pid))

    def power_off(self) -> None:
        """End every process of the host at once; its network falls silent, as when the power goes."""
        os.kill(self.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Lan:
    """A laptop and the hosts that it reaches."""

    laptop: Machine
    hosts: tuple[Machine, ...]

    def limit_link(self, host: Machine, rate: str) -> None:
        """Limit what `host` sends and receives to `rate`, e.g. `200mbit`: both ends of its cable."""
        shaper = f"root tbf rate {rate} burst 128kb latency 100ms"
        _call("nsenter", "-t", str(host.pid), "--net", "tc", "qdisc", "replace", "dev", "eth0", *shaper.split())
        port = f"to-{host.name}"
        _call("nsenter", "-t", str(self.laptop.pid), "--net", "tc", "qdisc", "replace", "dev", port, *shaper.split())

    def free_link(self, host: Machine) -> None:
        """Take the limit away."""
        _call("nsenter", "-t", str(host.pid), "--net", "tc", "qdisc", "del", "dev", "eth0", "root")
        port = f"to-{host.name}"
        _call("nsenter", "-t", str(self.laptop.pid), "--net", "tc", "qdisc", "del", "dev", port, "root")


@contextmanager
def lan(folder: Path, names: Sequence[str]) -> Iterator[Lan]:
    """A laptop and hosts of these names, reached by ssh with a key made on the spot; all gone with the block."""
    with ExitStack() as stack:
        everyone = ("laptop", *names)
        keys = _make_keys(folder)
        machines = [
            stack.enter_context(_host(folder / name, name, number, everyone, keys))
            for number, name in enumerate(everyone, 1)
        ]
        laptop, *hosts = machines
        _in_network(laptop, "ip link add br0 type bridge", f"ip addr add {laptop.address}/24 dev br0",
                    "ip link set br0 up")  # fmt: skip
        for host in hosts:
            _plug_in(laptop, host)
        made = Lan(laptop, tuple(hosts))
        for host in hosts:
            _wait_for_ssh(laptop, host)
        yield made


@contextmanager
def _host(folder: Path, name: str, number: int, everyone: Sequence[str], keys: Path) -> Iterator[Machine]:
    _furnish(folder, name, everyone, keys)
    log = (folder / "boot.log").open("w")
    command = ["unshare", *_NAMESPACES, "--fork", "--kill-child=SIGKILL", "--mount-proc", "--propagation=private",
               str(BOOT), name, str(folder), *_kept()]  # fmt: skip
    outer = subprocess.Popen(
        ["setpriv", "--pdeathsig=KILL", *command], env=_environment(), stdin=subprocess.DEVNULL, stdout=log,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        pid = _first_process(outer, folder)
        yield Machine(name, f"{NETWORK}.{number}", pid, folder)
    finally:
        outer.kill()      # takes the first process with it, and that one everything in the host
        outer.wait()
        log.close()


def _furnish(folder: Path, name: str, everyone: Sequence[str], keys: Path) -> None:
    """What a fresh installation would have: users, names, keys, and a shell that finds raybench."""
    etc, home, ssh = folder / "etc", folder / "home", folder / "ssh"
    for made in (etc, home, ssh, home / ".ssh"):
        made.mkdir(mode=0o700, parents=True)
    others = [(f"{NETWORK}.{number}", other) for number, other in enumerate(everyone, 1) if other != name]
    # As Debian does it: a host's own name is a loopback address, which no other host can reach.
    lines = ["127.0.0.1 localhost", f"127.0.1.1 {name}", *(f"{address} {other}" for address, other in others)]
    (etc / "hosts").write_text("\n".join(lines) + "\n")
    (etc / "hostname").write_text(f"{name}\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
    users = [line for line in Path("/etc/passwd").read_text().splitlines() if not line.startswith("root:")]
    (etc / "passwd").write_text("\n".join([f"root:x:0:0:root:{HOME}:/bin/bash", *users]) + "\n")
    (etc / "shadow").write_text("root:*:20000:0:99999:7:::\n")
    (ssh / "sshd_config").write_text(_SSHD)
    for source, target in (("host_key", ssh), ("authorized_keys", ssh), ("id_ed25519", home / ".ssh")):
        shutil.copy2(keys / source, target / source)
    (home / ".bashrc").write_text("".join(f"export {name}={value}\n" for name, value in _SHELL.items()))


def _make_keys(folder: Path) -> Path:
    keys = folder / "keys"
    keys.mkdir(mode=0o700, parents=True)
    for name in ("host_key", "id_ed25519"):
        _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name))
    (keys / "authorized_keys").write_text((keys / "id_ed25519.pub").read_text())
    return keys


def _plug_in(laptop: Machine, host: Machine) -> None:
    """A cable from the laptop's bridge to the host's eth0. The default route leads nowhere, as on a closed network."""
    port = f"to-{host.name}"
    _in_network(laptop, f"ip link add {port} type veth peer name eth0 netns {host.pid}",
                f"ip link set {port} master br0", f"ip link set {port} up")  # fmt: skip
    _in_network(host, f"ip addr add {host.address}/24 dev eth0", "ip link set eth0 up",
                f"ip route add default via {laptop.address}")  # fmt: skip


def _in_network(machine: Machine, *commands: str) -> None:
    for command in commands:
        _call("nsenter", "-t", str(machine.pid), "--net", *command.split())


def _wait_for_ssh(laptop: Machine, host: Machine) -> None:
    options = "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=2"
    words = f"ssh {options} -i ~/.ssh/id_ed25519 root@{host.address} hostname"
    deadline = time.monotonic() + _BOOT_LIMIT_S
    while True:
        tried = laptop.run(words, check=False)
        if tried.returncode == 0 and tried.stdout.strip().endswith(host.name):
            return
        boot_log = (host.folder / "boot.log").read_text()
        assert host.is_on, f"{host.name} did not boot\n{boot_log}"
        assert time.monotonic() < deadline, f"no ssh to {host.name}: {tried.stdout}\n{boot_log}"
        time.sleep(0.1)


def _first_process(outer: subprocess.Popen[bytes], folder: Path) -> int:
    """The child of `unshare`, once it is the first process of its own namespaces."""
    deadline = time.monotonic() + _BOOT_LIMIT_S
    ours = os.readlink("/proc/self/ns/pid")
    while time.monotonic() < deadline:
        assert outer.poll() is None, (folder / "boot.log").read_text()
        for pid in _children_or_self(outer.pid)[1:]:
            if os.readlink(f"/proc/{pid}/ns/pid") != ours:
                return pid
        time.sleep(0.02)
    raise AssertionError(f"no first process in {_BOOT_LIMIT_S} s\n{(folder / 'boot.log').read_text()}")


def _children_or_self(pid: int) -> list[int]:
    """The process, unless it has ended, and its children."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [] if state in "ZX" else [pid, *map(int, children)]


def _enter(pid: int) -> list[str]:
    return ["nsenter", "-t", str(pid), *_NAMESPACES]


def _kept() -> list[str]:
    """What every host must see of this machine: the checkout, and the Python that runs this."""
    wanted = {str(ROOT), sys.prefix, sys.base_prefix, *(path for path in sys.path if "site-packages" in path)}
    return sorted(wanted)


def _environment() -> dict[str, str]:
    return {"PATH": _SHELL["PATH"], "LANG": "C.UTF-8"}


def _call(*words: str) -> None:
    done = subprocess.run(words, env=_environment(), capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr.strip()}"
