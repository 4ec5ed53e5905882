"""The contest with five times the budget, where more evaluations may tell.

Problems with many modes that two hundred thousand evaluations solve are left out (two Gaussians or
Student laws in up to 200 dimensions, the flip-flop), as are the easier twins of others (the wells
along the axes, the rings side by side, rotated versions); those of heavy tails are here, those of
light tails and the hierarchies, where only more draws would come of it, are not.

Departures: the paper has no such comparison.
"""

import dataclasses

from . import problems
from .experiment import EXPERIMENT as SMALLER
from .experiment import OURS, Contest

# Solved with the smaller budget, or like another that is run.
LEFT_OUT = (
    "two-modes-20-rotated", "two-modes-50", "two-modes-100", "two-modes-200", "two-student-5",
    "flip-flop-ode", "wells-16-axes", "rings-shifted", "two-bananas-10-rotated",
    "label-switching-rotated", "sensors-rotated",
)  # fmt: skip

EXPERIMENT = dataclasses.replace(
    SMALLER,
    name="contest-large",
    title="The same contest with five times the budget",
    question="Do more evaluations help levymc.auto and its peers with many modes?",
    profiles={
        "quick": Contest(
            problems=("two-student-5",), methods=(OURS, "tempering"), budget=8000, num_seeds=2
        ),
        "paper": Contest(
            problems=tuple(
                name for name in problems.names("final", ("modes", "heavy")) if name not in LEFT_OUT
            ),
            methods=(OURS, "nuts-dense", "tempering", "smc"),
            budget=1_000_000,
            num_seeds=5,
        ),
    },
)
