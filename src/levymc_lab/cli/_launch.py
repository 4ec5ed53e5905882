"""``levymc launch``: a script in several processes of this machine."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ._shared import command_line, guarded

EXAMPLES = """
**Examples**

- `levymc launch -n 4 script.py`
- `levymc launch -n 2 --heartbeat 30 script.py --steps 1000`

A script whose processes compute together calls `levymc.distributed.initialize()` first; those that
share a folder by `shards=` need not. Lines of output begin with the number of their process.

**Exit codes**: that of the process that failed, 128 and the signal's number if one ended it; 0 all
ended well; 130 stopped by Ctrl-C.
"""


def launch(
    script: Annotated[Path, Argument(exists=True, dir_okay=False, help="This is a Python script.")],
    arguments: Annotated[
        list[str] | None, Argument(metavar="ARGUMENTS", help="These are given to the script.")
    ] = None,
    count: Annotated[int, Option("--count", "-n", min=1, help="Start this many processes.")] = 2,
    heartbeat: Annotated[
        int, Option(min=1, help="Give up a process that is silent for this many seconds.")
    ] = 10,
) -> None:
    """Run a script in several processes of this machine, and end all of them if one dies."""
    from levymc_lab.launch import launch as start

    words = arguments or []
    options = ["-n", str(count), "--heartbeat", str(heartbeat)]
    resume = command_line("launch", *options, str(script), *words)
    command = [sys.executable, str(script), *words]
    with guarded(resume):
        ended = start(command, count, heartbeat_seconds=heartbeat, tell=_tell)
    if ended.failed is not None:
        _tell(f"runs that are stored are safe. After a remedy, go on with:\n  {resume}")
        raise typer.Exit(ended.code)


def _tell(sentence: str) -> None:
    print(f"levymc: {sentence}", file=sys.stderr)
