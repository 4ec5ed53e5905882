"""Processes of Python that tests start: alone with several devices, or several that know another.

They get a session of their own, and are ended with it.
"""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

PATIENCE = 60


def outputs(command, count=1, devices=1):
    """What each of `count` processes prints, each with so many devices; all have to succeed.

    More than one are given, as their last arguments, an address, their number and which they are,
    for `jax.distributed.initialize`.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "0"}
    address = f"localhost:{free_port()}"
    started = [
        subprocess.Popen(
            [sys.executable, *command, *([address, str(count), str(number)] if count > 1 else [])],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for number in range(count)
    ]
    try:
        said = [process.communicate(timeout=PATIENCE) for process in started]
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for process, (_, error) in zip(started, said, strict=True):
        assert process.returncode == 0, error
    return [output for output, _ in said]


def free_port():
    """One that the system has not given to anybody."""
    with socket.socket() as held:
        held.bind(("localhost", 0))
        return held.getsockname()[1]
