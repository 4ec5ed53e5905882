r"""A line for each coordinate, with the weights of the draws."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float

from levymc.run import Result

from ._convergence import KINDS, ess_of, fewest_draws, has_arviz, rhat_of
from ._draws import (
    checked_variables,
    columns,
    coordinate_name,
    even_in_time,
    shares,
)

LEVELS = (0.05, 0.5, 0.95)
HEADS = ("mean", "sd", "5 %", "median", "95 %", "ESS bulk", "ESS tail", "R-hat")


@dataclass(frozen=True, eq=False)
class Summary:
    """Arrays with a number for each coordinate, in the order of `names`.

    quantiles: at 5, 50 and 95 %, along the second axis.
    ess_bulk, ess_tail, rhat: NaN without ArviZ, or where there are too few draws or all are equal.
    """

    names: tuple[str, ...]
    mean: np.ndarray
    sd: np.ndarray
    quantiles: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray
    rhat: np.ndarray

    def rows(self) -> list[tuple[str, ...]]:
        """A name and its numbers as text, for each coordinate."""
        numbers = np.column_stack(
            [self.mean, self.sd, self.quantiles, self.ess_bulk, self.ess_tail, self.rhat]
        )
        formats = ("{:.4g}",) * 5 + ("{:.0f}",) * 2 + ("{:.3f}",)
        return [
            (name, *(form.format(x) for form, x in zip(formats, row, strict=True)))
            for name, row in zip(self.names, numbers, strict=True)
        ]

    def __repr__(self) -> str:
        table = [("", *HEADS), *self.rows()]
        widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in table
        )

    def _repr_html_(self) -> str:
        def line(cells: tuple[str, ...], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line(row, "td") for row in self.rows())
        return f"<table>{line(('', *HEADS), 'th')}{body}</table>"


def summary(draws: Any) -> Summary:
    r"""Mean, standard deviation, quantiles, effective sizes and R-hat, weighted:

    .. math:: \bar x = \sum_n w_n x_n \Big/ \sum_n w_n , \qquad
       s^2 = \sum_n w_n (x_n - \bar x)^2 \Big/ \sum_n w_n ,

    over all chains, and the quantiles of the weighted draws.  The weights of a `Result` are the
    step sizes, where these decrease; effective sizes and R-hat see them as `ess` and `rhat` do.

    Not valid when: the target has no mean or no variance, as laws with heavy tails may: what is
    printed as such does not settle then.  The quantiles do.

    Args:
        draws: a `Result`, or a pytree of arrays with the axes (chain, draw, …), all of one weight.

    Returns:
        `Summary`, which prints itself as a table.

    Raises:
        ValueError, TypeError: draws that are not finite, or none.

    Examples:
        >>> import numpy as np
        >>> from levymc import diagnostics
        >>> found = diagnostics.summary(np.random.default_rng(0).standard_normal((4, 1000)))
        >>> found.names, bool(abs(found.mean[0]) < 0.1), bool(found.ess_bulk[0] > 3000)
        (('x',), True, True)

    References: [simsekli2017], section 3.1, for the weights.
    """
    names, rows = [], []
    for name, leaf in checked_variables(draws).items():
        weights = draws.weights if isinstance(draws, Result) else np.ones(leaf.shape[:2])
        for place, values in zip(np.ndindex(leaf.shape[2:]), columns(leaf), strict=True):
            names.append(coordinate_name(name, place))
            rows.append([*_moments(values, weights), *_convergence(values, weights)])
    numbers = np.array(rows).reshape(len(rows), -1)
    mean, sd, *levels = numbers[:, : 2 + len(LEVELS)].T
    ess_bulk, ess_tail, rhat = numbers[:, -3:].T
    quantiles = np.stack(levels, axis=1)
    return Summary(tuple(names), mean, sd, quantiles, ess_bulk, ess_tail, rhat)


def _moments(
    values: Float[np.ndarray, "chain draw"], weights: Float[np.ndarray, "chain draw"]
) -> list[float]:
    """Mean, standard deviation and quantiles of all chains together."""
    share = shares(weights, values.shape)
    mean = float(np.sum(share * values))
    sd = float(np.sqrt(np.sum(share * (values - mean) ** 2)))
    levels = np.quantile(values.ravel(), LEVELS, weights=share.ravel(), method="inverted_cdf")
    return [mean, sd, *map(float, levels)]


def _convergence(
    values: Float[np.ndarray, "chain draw"], weights: Float[np.ndarray, "chain draw"]
) -> list[float]:
    if not has_arviz() or values.shape[1] < fewest_draws(len(values)):
        return [np.nan] * (len(KINDS) + 1)
    even = even_in_time(values, weights)
    return [*(ess_of(even, kind) for kind in ("bulk", "tail")), rhat_of(even)]
