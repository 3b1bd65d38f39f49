"""SIGINT and SIGTERM, one rule: commit what is known, say how to continue, leave within 2.5 s with exit code 130.

Python runs a handler in the main thread, which may sit in Ray's C++ for seconds, and may interrupt a commit. So the
handlers do nothing; the interpreter writes the signal's number into a pipe at once, and a thread reads that pipe.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

EXIT_INTERRUPTED = 130
_COMMIT_LIMIT_S = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalWatch:
    """Reads signals from a pipe: the first runs `on_stop` and ends the process, a second ends it at once."""

    def __init__(self) -> None:
        self.on_stop: Callable[[], None] = lambda: None
        self._stopping = threading.Event()
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._write_fd, False)

    def install(self) -> None:
        """Take both signals. `ray.init` replaces SIGTERM's handler without a word, so this is called after it too."""
        for number in _SIGNALS:
            signal.signal(number, _nothing)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    def read(self) -> None:
        """The reading thread's loop."""
        while (byte := os.read(self._read_fd, 1)) != b"\0":
            if byte[0] not in _SIGNALS:
                continue
            if self._stopping.is_set():
                os._exit(EXIT_INTERRUPTED)
            self._stopping.set()
            threading.Thread(target=self._stop, name="raybench-stop", daemon=True).start()
            threading.Timer(_COMMIT_LIMIT_S, os._exit, (EXIT_INTERRUPTED,)).start()

    def close(self) -> None:
        """End the reading thread."""
        os.write(self._write_fd, b"\0")

    def park_if_stopping(self) -> None:
        """For the main thread, when something ends it while the stop is under way: the process is about to end."""
        if self._stopping.is_set():
            threading.Event().wait()

    def _stop(self) -> None:
        try:
            self.on_stop()
        finally:
            os._exit(EXIT_INTERRUPTED)


@contextlib.contextmanager
def watching_signals() -> Iterator[SignalWatch]:
    """Take SIGINT and SIGTERM for the length of the block; only in the main thread."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    watch = SignalWatch()
    watch.install()
    reader = threading.Thread(target=watch.read, name="raybench-signals", daemon=True)
    reader.start()
    try:
        yield watch
    except BaseException:
        watch.park_if_stopping()
        raise
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        watch.close()
        reader.join()


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """A handler must be Python's own for the interpreter to write to the pipe."""
