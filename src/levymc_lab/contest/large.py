"""The contest with five times the budget: on many modes, where more evaluations may tell.

Departures: the paper has no such comparison.
"""

import dataclasses

from . import problems
from .experiment import EXPERIMENT as SMALLER
from .experiment import OURS, Contest

EXPERIMENT = dataclasses.replace(
    SMALLER,
    name="contest-large",
    title="The same contest with five times the budget",
    question="Do more evaluations help levymc.auto and tempering with many modes?",
    profiles={
        "quick": Contest(
            problems=("two-student-5",), methods=(OURS, "tempering"), budget=8000, num_seeds=2
        ),
        "paper": Contest(
            problems=tuple(problems.names("final", "modes")),
            methods=(OURS, "tempering"),
            budget=1_000_000,
            num_seeds=5,
        ),
    },
)
