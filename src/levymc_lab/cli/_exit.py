"""How a command ends: codes for scripts, one sentence for people."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer


class Exit(IntEnum):
    """Exit codes."""

    FINE = 0
    CHECK_FAILED = 1
    BAD_INPUT = 2
    IO_PROBLEM = 3
    FAULT = 4  # of the program; with a traceback
    INTERRUPTED = 130  # what shells give for Ctrl-C


def stop(code: Exit, sentence: str) -> typer.Exit:
    """Tell why on stderr; to be raised."""
    print(f"levymc: {sentence}", file=sys.stderr)
    return typer.Exit(int(code))


@contextmanager
def guarded(resume: str, bad_input: type[Exception]) -> Iterator[None]:
    """Turn what goes wrong into a sentence and a code; `bad_input` is the user's to put right.

    Args:
        resume: the command that goes on after Ctrl-C.
        bad_input: while arguments are looked at, ValueError; in a run that would be a fault.
    """
    from levymc_lab.framework import ResultsError

    try:
        yield
    except KeyboardInterrupt:
        sentence = f"stopped; what was finished is safe. Go on with:\n  {resume}"
        raise stop(Exit.INTERRUPTED, sentence) from None
    except bad_input as error:
        raise stop(Exit.BAD_INPUT, str(error)) from None
    except (ResultsError, OSError) as error:
        raise stop(Exit.IO_PROBLEM, str(error)) from None
    except typer.Exit:
        raise
    except Exception:
        traceback.print_exc()
        sentence = f"this is a fault of the program. After a remedy, go on with:\n  {resume}"
        raise stop(Exit.FAULT, sentence) from None
