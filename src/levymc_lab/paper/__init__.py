"""The paper's figures and tables, a module each, in the order of `framework.names`.

A module reads from the question to the picture, in this order:

1. its docstring: what the paper shows or claims, in formulas, and where this experiment departs;
2. constants, and a frozen dataclass of sizes, of which each profile is one;
3. ``cells`` and ``run_cell``: what is computed, cut into independent units of work;
4. ``summarise``: the tables;
5. ``checks``: numbers beside the published or exact ones, with the reason for each tolerance;
6. ``verdict``: the answer in words, of which every number comes from a table;
7. ``figures``: the pictures, drawn from the tables alone;
8. ``EXPERIMENT``, which names them all; `levymc_lab.framework` says what each has to do.

What several of them need is in private modules: the double well, its scores and its samplers in
``_double_well``; stationary laws of diffusions, without random numbers, in ``_generator``; ratings
and chains on them in ``_movielens``; parts of tables, verdicts and plots in ``_shared``.
"""

from ._shared import published as published
