"""Processes that run one program together, each with devices of its own.

Chains need none of this: processes share them in a folder, see `shards` of `levymc.sample`.  What
needs it is a mesh over the devices of several processes, as for gradients that they compute
together.
"""

import os

import jax

from levymc._checks import check_count
from levymc.run import own_chains as own_chains

HEARTBEAT = "LEVYMC_HEARTBEAT_SECONDS"
ADDRESS, COUNT, NUMBER = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
DEFAULT_SECONDS = 30


def initialize(*, heartbeat_seconds: int | None = None) -> int:
    """Join the processes that were started with this one, before JAX is used for anything else.

    One line for the beginning of a script that runs anywhere: under `levymc launch`, under Slurm's
    srun and Open MPI, which JAX knows, and where the variables JAX_COORDINATOR_ADDRESS,
    JAX_NUM_PROCESSES and JAX_PROCESS_ID are set, as in a Kubernetes job.  A process that is alone
    stays so.

    Args:
        heartbeat_seconds: after so long without a sign of a process, JAX ends the others.  If not
            given, that of `levymc launch` or LEVYMC_HEARTBEAT_SECONDS, or 30.

    Returns:
        The number of processes.

    Raises:
        ValueError: variables that are not numbers, or not all there.
        RuntimeError: JAX was used before, or it is the second call.

    Examples:
        >>> import levymc
        >>> levymc.distributed.initialize()  # doctest: +SKIP
        1
    """
    given = heartbeat_seconds if heartbeat_seconds is not None else _number(HEARTBEAT)
    seconds = check_count(
        "heartbeat_seconds",
        DEFAULT_SECONDS if given is None else given,
        "It is a time, such as 30.",
    )
    count, number = _number(COUNT), _number(NUMBER)
    if ADDRESS in os.environ and (count is None or number is None):
        missing = COUNT if count is None else NUMBER
        raise ValueError(
            f"`{missing}` must be set with {ADDRESS}, got nothing in the environment. They are the "
            "number of processes, and that of this one from 0 on."
        )
    try:
        jax.distributed.initialize(
            num_processes=count, process_id=number, heartbeat_timeout_seconds=seconds
        )
    except ValueError as error:
        if "should be defined" not in str(error):  # else nobody started others
            raise
        return 1
    return jax.process_count()


def _number(name: str) -> int | None:
    """A whole number of the environment."""
    text = os.environ.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise ValueError(f"`{name}` must be a whole number, got {text!r} in the environment.")
    return int(text)
