r"""Figure 5: the error of SG-FLA's predictions of ratings against the iterations, for several α.

.. math:: x' = x + η_n\, c_α\, \widehat{∇\log φ}(x; Ω) + η_n^{1/α}\, ξ, \qquad
   η_n = (a/n)^{0.51}, \qquad |Ω| = N/10,

with the error of the current draw, as in the figure.  Three questions: which start and a give the
published curves; what is left of "faster for smaller α" if all start alike, and to which part of
the step it is due; and how far each α comes if a is tuned on a validation split.

With exact noise and Euler's step every run with α < 2 diverges sooner or later (see
`movielens_stability`): here the drift's step of a row is bounded by its curvature.

References: [simsekli2017], Figure 5.  Departures: the paper tells neither the start nor a.  Where
the larger data sets are not in the cache, they are made, and marked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from levymc_lab.framework import Cell, CellResult, Experiment, Tables

from .. import _movielens as ml
from .._published import published
from ._chains import VARIANTS, ablate, fit, tune, variants_of
from ._checks import checks, verdict
from ._tables import summarise as make_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {"ml-1m": "fig5_ml1m", "ml-10m": "fig5_ml10m", "ml-20m": "fig5_ml20m"}


@dataclass(frozen=True)
class Convergence:
    """Sizes.

    sets: of ratings; "small" is made.
    lengths: iterations on each.
    fit_a, tuned_a: values of a that are tried for the published curves and on the validation split.
    """

    sets: tuple[str, ...]
    lengths: tuple[int, ...]
    fit_a: tuple[float, ...]
    fit_scales: tuple[float, ...]
    tuned_a: tuple[float, ...]
    large_a: tuple[float, ...]
    num_seeds: int
    small_alphas: tuple[float, ...] = (2.0, 1.4)

    def alphas(self, name: str) -> tuple[float, ...]:
        """Those of the figure."""
        if name not in FIGURES:
            return self.small_alphas
        return tuple(sorted(set(published(FIGURES[name])["alpha"].tolist()), reverse=True))

    @property
    def first(self) -> str:
        """The data set that is looked at most closely."""
        return self.sets[0]


def needs(config: Convergence) -> None:
    ml.check_there(*config.sets)


def cells(config: Convergence) -> list[Cell]:
    found = []
    for name, length in zip(config.sets, config.lengths, strict=True):
        for alpha in config.alphas(name):
            base = {"set": name, "length": length, "alpha": alpha}
            if name == config.first:
                found.append(Cell(f"fit-{name}-alpha={alpha:g}", {**base, "does": "fit"}))
                found.append(Cell(f"ablate-{name}-alpha={alpha:g}", {**base, "does": "ablate"}))
            for variant in variants_of(alpha) if name == config.first else VARIANTS[:1]:
                id = f"tune-{name}-{variant.id}-alpha={alpha:g}"
                found.append(Cell(id, {**base, "does": "tune", "variant": variant.id}))
    return found


def run_cell(config: Convergence, cell: Cell, key: Any) -> CellResult:
    does = {"fit": fit, "ablate": ablate, "tune": tune}
    return does[cell["does"]](config, cell, key)


def summarise(config: Convergence, results: Mapping[str, CellResult]) -> Tables:
    return make_tables(config, cells(config), results)


def figures(config: Convergence, tables: Tables) -> "dict[str, Figure]":
    from ._figure import draw

    return {"movielens-convergence": draw(config, tables)}


EXPERIMENT = Experiment(
    name="movielens-convergence",
    title="How fast SG-FLA learns to predict ratings",
    paper_item="Figure 5",
    question="Does the error fall faster the smaller α is, and what is it due to?",
    profiles={
        "quick": Convergence(
            sets=("small",),
            lengths=(60,),
            fit_a=(1e-5,),
            fit_scales=(0.1,),
            tuned_a=(1e-5, 1e-4),
            large_a=(),
            num_seeds=2,
        ),
        "paper": Convergence(
            sets=("ml-1m", "ml-10m", "ml-20m"),
            lengths=(400, 500, 1490),
            fit_a=tuple(round(10 ** (k / 4), 15) for k in range(-40, -29)),
            fit_scales=(0.1, 0.4),
            tuned_a=(1e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5),
            large_a=(1e-8, 1e-7, 1e-6),
            num_seeds=3,
        ),
    },
    captions={
        "movielens-convergence": "Error against iterations. Top left: published curves and ours, "
        "each α from a start of its own; right: all from one start with one a, for the parts of "
        "the step. Bottom: with a tuned on a validation split, and so on all data sets."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
    needs=needs,
)
