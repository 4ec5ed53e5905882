"""What a person takes away: the fit with its README, its predictions, and how good they are."""

from typing import Any

import numpy as np

from levymc._workdir import ResultsError, atomic_bytes, read_arrays, write_arrays
from levymc_lab import data

from ._fit import LEVEL, Fit
from ._model import Position
from ._prepare import Job
from ._table import Table

REMEDY = "Start the fit anew with --force."
OF_DRAWS = ("users", "items", "user_biases", "item_biases")
README = """\
# factors.npz

A fit of {num_ratings} ratings of {num_items} items by {num_users} users: {num_draws} draws of the
factors from the posterior, {every} steps of the chain apart. `numpy.load` reads it.

For D draws, U users, I items, N ratings and L columns of the factors the arrays are

- `center`: the mean rating of the part that was fitted;
- `spread`: the unit; a factor has the prior variance `spread`, a bias `spread`²;
- `noise`: the standard deviation of a rating about its mean;
- `scale` (2): the least and the largest rating, infinite where there is no bound;
- `users` (D, U, L) and `items` (D, I, L): the factors;
- `user_biases` (D, U) and `item_biases` (D, I);
- `user_ids` (U) and `item_ids` (I): as in the table, one for each row;
- `user_counts` (U) and `item_counts` (I): how many ratings were fitted; of a row without any the
  model knows its prior only;
- `rated_offsets` (U + 1): where the ratings of each user begin in the next two;
- `rated` (N) and `codes` (N): the items that were rated, and the number of each rating in
- `levels`: the different ratings.

All is in units of a rating. The prediction for user u and item i is the mean over the draws d of

    center + users[d, u] @ items[d, i] + user_biases[d, u] + item_biases[d, i]

and, where that lies outside of the scale, its nearer end. A user or item that no rating was fitted
to counts with zeros. These are the means in predictions.csv. The interval, of {level:.0f} %, is the
mean ± z √(variance over draws + noise²), wider for what is new, cut off at the ends of the scale.

There is no mean of the factors to give in the place of draws: the posterior does not change if both
factors are rotated together, so that over a long chain it is zero.

    levymc predict FOLDER pairs.csv
    levymc recommend FOLDER --user U --top 20
"""


def write_draw(job: Job, step: int, position: Position) -> None:
    """Keep a draw until the fit is written; on disk before the chain counts the step as made."""
    rank, users, items = job.settings.rank, position["users"], position["items"]
    root, spread = np.float32(job.scale.spread**0.5), np.float32(job.scale.spread)
    draw = {
        "users": root * users[:, :rank],
        "items": root * items[:, :rank],
        "user_biases": spread * users[:, rank],
        "item_biases": spread * items[:, rank + 1],
    }
    write_arrays(job.folder.draw(step), draw)


def missing_draws(job: Job, until: int) -> list[int]:
    """The steps before a given one whose draws are not there."""
    return [step for step in job.draws if step < until and not job.folder.draw(step).is_file()]


def write_outputs(job: Job, noise: float, num_divergent: int) -> dict[str, Any]:
    """The files; returns what the manifest tells of them."""
    fit = _fit(job, noise)
    scores = _scores(fit, job.table)
    if not np.isfinite(scores["rmse"]):
        raise ResultsError(
            "The chain left the finite numbers, and there are no predictions. "
            "Give a larger --noise, or --alpha 2."
        )
    predictions = fit.predict(_held_out(job.table) if job.asked is None else job.asked)
    write_arrays(job.folder.factors, fit._asdict())
    atomic_bytes(job.folder.readme, _readme(job).encode())
    atomic_bytes(job.folder.predictions, predictions.to_csv())
    return {
        "scores": scores,
        "num_predictions": len(predictions.users),
        "num_predictions_for_new": sum(basis != "known" for basis in predictions.bases),
        "num_draws": len(job.draws),
        "num_divergent_steps": num_divergent,
    }


def _fit(job: Job, noise: float) -> Fit:
    whole, training = job.table.whole, job.table.training
    offsets = np.zeros(whole.num_users + 1, np.int64)
    np.cumsum(np.bincount(whole.users, minlength=whole.num_users), out=offsets[1:])
    return Fit(
        center=np.array(job.scale.center),
        spread=np.array(job.scale.spread),
        noise=np.array(noise),
        scale=np.array(job.scale.ends),
        **_stacked(job),
        user_ids=whole.user_ids,
        item_ids=whole.item_ids,
        user_counts=np.bincount(training.users, minlength=training.num_users),
        item_counts=np.bincount(training.items, minlength=training.num_items),
        rated_offsets=offsets,
        rated=whole.items,
        codes=whole.codes,
        levels=whole.levels,
    )


def _stacked(job: Job) -> dict[str, np.ndarray]:
    """All draws, read one after the other into the arrays that hold them."""
    found: dict[str, np.ndarray] = {}
    for number, step in enumerate(job.draws):
        draw = read_arrays(job.folder.draw(step), REMEDY)
        for name in OF_DRAWS:
            if number == 0:
                found[name] = np.empty((len(job.draws), *draw[name].shape), np.float32)
            found[name][number] = draw[name]
    return found


def _held_out(table: Table) -> data.Pairs:
    part = table.held_out
    return data.Pairs(_texts(part.user_ids[part.users]), _texts(part.item_ids[part.items]))


def _texts(ids: np.ndarray) -> list[str]:
    return [str(one) for one in ids.tolist()]


def _scores(fit: Fit, table: Table) -> dict[str, Any]:
    """Errors and coverage on the held-out ratings."""
    part = table.held_out
    ratings = part.values.astype(np.float64)
    users, items = part.users.astype(np.int64), part.items.astype(np.int64)
    mean, low, high = fit.estimates(users, items)
    constant = float(table.training.values.mean(dtype=np.float64))
    return {
        "rmse": rms(mean - ratings),
        "rmse_of_the_mean_rating": rms(constant - ratings),
        "interval_level": LEVEL,
        "interval_coverage": float(np.mean((low <= ratings) & (ratings <= high))),
        "interval_mean_width": float(np.mean(high - low)),
        "num_held_out": len(ratings),
    }


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def _readme(job: Job) -> str:
    whole = job.table.whole
    return README.format(
        num_ratings=whole.num_ratings,
        num_items=whole.num_items,
        num_users=whole.num_users,
        num_draws=len(job.draws),
        every=job.draws.step,
        level=100 * LEVEL,
    )
