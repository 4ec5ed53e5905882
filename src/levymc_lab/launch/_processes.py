"""Local processes that begin and end together.

Each is the leader of a session of its own, so that it and all that it starts can be ended, and
nothing else.  JAX is told by its environment where the processes meet (see
`levymc.distributed.initialize`); a script that does not ask runs as it does alone.

The first that fails is the cause: those that depend on it fail a moment later.  Where it was the
heartbeat that ended them, the cause is one that does not run any more, though it has not ended.
"""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple

from levymc.distributed import ADDRESS, COUNT, HEARTBEAT, NUMBER

GRACE = 4.0  # seconds from a request to end until it is enforced
PATIENCE = 20.0  # the same at Ctrl-C, when runs save what they have
PAUSE = 1.0  # seconds between two looks for processes that are stopped
BIND = "JAX_COORDINATOR_BIND_ADDRESS"


class Ended(NamedTuple):
    """How it went: the process that failed first and why, or None; `code` is for the shell."""

    failed: int | None
    reason: str
    code: int


class _Process:
    """One of them, whose output is passed on line by line.

    code: how it ended, as `subprocess` has it; None while it runs.
    """

    def __init__(
        self,
        number: int,
        command: Sequence[str],
        environment: dict[str, str],
        ends: "queue.Queue[_Process]",
    ) -> None:
        self.number = number
        self.code: int | None = None
        self.stopped_since: float | None = None
        self.popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        tasks: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
            (self._wait, (ends,)),
            (_pass_on, (number, self.popen.stdout, sys.stdout)),
            (_pass_on, (number, self.popen.stderr, sys.stderr)),
        ]
        self.threads = [threading.Thread(target=f, args=with_, daemon=True) for f, with_ in tasks]
        for thread in self.threads:
            thread.start()

    def _wait(self, ends: "queue.Queue[_Process]") -> None:
        """Put this into the queue when it has ended, and before the system may use its number."""
        if hasattr(os, "waitid"):
            found = os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOWAIT)
            assert found is not None
            is_own = found.si_code == os.CLD_EXITED
            self.code = found.si_status if is_own else -found.si_status
        else:
            self.code = self.popen.wait()
        ends.put(self)

    def send(self, number: signal.Signals) -> None:
        """To it and all that it started."""
        if (
            self.popen.returncode is None
        ):  # its number is its own until it is asked for how it ended
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, number)

    def wait(self, deadline: float) -> None:
        self.threads[0].join(max(deadline - time.monotonic(), 0.0))

    def seconds_stopped(self) -> float:
        """For how long it has been stopped, as by SIGSTOP; 0 if it runs."""
        if not hasattr(os, "waitid") or self.code is not None:
            return 0.0
        asked, found = os.WSTOPPED | os.WNOHANG | os.WNOWAIT, None
        with suppress(ChildProcessError):  # it has just ended
            found = os.waitid(os.P_PID, self.popen.pid, asked)
        if found is None:
            self.stopped_since = None
            return 0.0
        self.stopped_since = self.stopped_since or time.monotonic()
        return time.monotonic() - self.stopped_since

    def close(self) -> None:
        """Forget it, having passed on all that it wrote."""
        for thread in self.threads:
            thread.join(timeout=1.0)
        self.popen.wait()


def _pass_on(number: int, source: IO[bytes], sink: IO[str]) -> None:
    with source:
        for line in source:
            text = line.decode(errors="replace").rstrip("\n")
            sink.write(f"[{number}] {text}\n")  # in one piece, as others write, too
            sink.flush()


def launch(
    command: Sequence[str],
    count: int,
    *,
    heartbeat_seconds: int = 10,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Ended:
    """Run a command in several processes until all have ended, or one has failed.

    Where one fails, is killed, or is stopped for longer than a heartbeat, the others are ended
    within 5 seconds more.  Ctrl-C is passed on, and a second one ends all at once.

    Args:
        command: its words.
        count: of processes.
        heartbeat_seconds: after so long without a sign of a process, it counts as dead.
        tell: is given a sentence on what happens.
    """
    if os.name == "nt":
        raise ValueError(
            "`launch` needs sessions of processes, which this system has not. Start the processes "
            f"by hand, with {ADDRESS}, {COUNT} and {NUMBER} in their environment."
        )
    address = f"127.0.0.1:{_free_port()}"
    shared = {ADDRESS: address, BIND: address, COUNT: str(count), HEARTBEAT: str(heartbeat_seconds)}
    processes: list[_Process] = []
    ends: queue.Queue[_Process] = queue.Queue()
    with _ended_by_signals():
        try:
            for number in range(count):
                environment = {**os.environ, **shared, NUMBER: str(number), "PYTHONUNBUFFERED": "1"}
                processes.append(_Process(number, command, environment, ends))
            return _watched(processes, ends, heartbeat_seconds, tell)
        except KeyboardInterrupt:
            _end(processes, signal.SIGINT, PATIENCE)
            raise
        finally:
            _end(processes, signal.SIGTERM, GRACE)
            for process in processes:
                process.close()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let signals that would end this process alone raise an exception, so that all are ended."""

    def leave(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _watched(
    processes: list[_Process],
    ends: "queue.Queue[_Process]",
    heartbeat_seconds: int,
    tell: Callable[[str], None],
) -> Ended:
    """Until all have ended, or one has failed; the others are ended then."""
    for _ in processes:
        failed = _next_failure(processes, ends, heartbeat_seconds)
        if failed is not None:
            process, reason, code = failed
            others = [one for one in processes if one.code is None and one is not process]
            tell(f"process {process.number} {reason}; ending the {len(others)} others.")
            return Ended(process.number, reason, code)
    return Ended(None, "", 0)


def _next_failure(
    processes: list[_Process], ends: "queue.Queue[_Process]", heartbeat_seconds: int
) -> tuple[_Process, str, int] | None:
    """The next that fails, with the reason and a code; None once one ended well."""
    while True:
        try:
            ended = ends.get(timeout=PAUSE)
        except queue.Empty:
            ended = None
        stopped = {one: seconds for one in processes if (seconds := one.seconds_stopped()) > 0}
        for one, seconds in stopped.items():
            # Another that fails meanwhile does so for want of a sign of this one.
            if seconds > heartbeat_seconds or (ended is not None and ended.code):
                return one, "is stopped (by SIGSTOP)", 128 + signal.SIGSTOP
        if ended is not None:
            return (ended, *_reason(ended.code)) if ended.code else None


def _reason(code: int) -> tuple[str, int]:
    """Why a process ended, in words, and what a shell would give for it."""
    if code > 0:
        return f"ended with exit code {code}", code
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hints = {"SIGKILL": ", perhaps for want of memory", "SIGABRT": ", as JAX does to those it left"}
    return f"was ended by {name}{hints.get(name, '')}", 128 - code


def _end(processes: list[_Process], number: signal.Signals, seconds: float) -> None:
    """Ask processes to end, and enforce it after some seconds."""
    for process in processes:
        process.send(number)
        process.send(signal.SIGCONT)  # one that is stopped would not hear it
    deadline = time.monotonic() + seconds
    try:
        for process in processes:
            process.wait(deadline)
    finally:
        for process in processes:
            process.send(signal.SIGKILL)
