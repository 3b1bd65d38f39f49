"""An S3 server of the tests, and a gate before it that holds, cuts or refuses what goes through."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.end_to_end.harness import free_port, wait_until

START_LIMIT_S = 300.0
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
}  # fmt: skip


@dataclass
class S3:
    """moto's S3 as a process of its own, holding everything in memory, with one empty bucket."""

    port: int
    process: subprocess.Popen[bytes]

    def uri(self, prefix: str, port: int | None = None) -> str:
        """A place in it, by way of another port where one is given."""
        return f"s3://bucket/{prefix}?endpoint_override=127.0.0.1:{port or self.port}&scheme=http&region=us-east-1"

    def stop(self) -> None:
        """It is away: connections are taken, and nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """It answers again, late, what was asked meanwhile."""
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def started_s3(folder: Path) -> Iterator[S3]:
    """The server, answering; it ends with the block."""
    port = free_port()
    with (folder / "s3.log").open("wb") as log:
        command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | CREDENTIALS)
    try:
        wait_until(lambda: process.poll() is not None or _made_bucket(port), START_LIMIT_S)
        assert process.poll() is None, (folder / "s3.log").read_text()
        yield S3(port, process)
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def _made_bucket(port: int) -> bool:
    with suppress(urllib.error.URLError, ConnectionError):
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
        with urllib.request.urlopen(asked) as answer:
            return bool(answer.status == 200)
    return False


class Gate:
    """A way to the server that can be shut (connections are refused), and that can hold what goes through it."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._listener: socket.socket | None = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.holding = threading.Event()      # that bytes are held
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._room: int | None = None
        self._connections: set[socket.socket] = set()
        self._serve()

    def hold_after(self, count: int | None) -> None:
        """Hold everything after so many more bytes towards the server; None: let all through from now on."""
        with self._lock:
            self._room = count
        self.holding.clear()
        self._released.clear()

    def release(self) -> None:
        """Give up what is held: the server sees its connections end in the middle."""
        self._released.set()

    def shut(self) -> None:
        """Refuse connections, and end those that there are."""
        assert self._listener is not None
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listener = None
        self.release()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def open(self) -> None:
        """Take connections again, at the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._serve()

    def _serve(self) -> None:
        assert self._listener is not None
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to_port))
                self._connections |= {client, server}
                threading.Thread(target=self._up, args=(client, server), daemon=True).start()
                threading.Thread(target=_copy, args=(server, client), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            while data := client.recv(4096):
                through = self._through(data)
                server.sendall(through)
                if len(through) < len(data):
                    self.holding.set()
                    self._released.wait()
                    break
        self._connections -= {client, server}

    def _through(self, data: bytes) -> bytes:
        with self._lock:
            if self._room is None:
                return data
            through = data[: self._room]
            self._room -= len(through)
            return through


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; only what hangs ends by the limit."""
    wait_until(condition, START_LIMIT_S)
