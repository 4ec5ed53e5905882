"""What a person takes away: predictions.csv and factors.npz."""

import csv
import io

import numpy as np

from levymc._files import atomic_bytes

from ._folder import Folder, write_arrays
from ._pairs import Labels
from ._predictions import Predictions
from ._sampler import Carry
from ._table import Scale, Table

HEADER = ("user", "item", "mean", "low", "high", "rating", "basis")


def write_predictions(folder: Folder, labels: Labels, predictions: Predictions) -> None:
    """A line a pair.

    ``basis`` is `known`, or says what no rating was fitted to: `new user`, `new item`, `new both`.
    Of those the model knows its prior only, and the interval says so.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEADER)
    numbers = [[f"{value:.6g}" for value in column.tolist()] for column in predictions]
    ratings = ["" if np.isnan(value) else f"{value:g}" for value in labels.ratings]
    columns = (labels.users, labels.items, *numbers, ratings, labels.bases)
    writer.writerows(zip(*columns, strict=True))
    atomic_bytes(folder.predictions, stream.getvalue().encode())


def write_factors(folder: Folder, carry: Carry, table: Table, scale: Scale, rank: int) -> None:
    """The last draw, in units of ratings: Y ≈ center + users itemsᵀ + user_biases + item_biases.

    Not a mean over draws: the posterior does not change if both factors are rotated together, so
    that the mean of a factor over a long chain is zero.
    """
    position, training = carry.state.position, table.training
    users, items = np.asarray(position["users"]), np.asarray(position["items"])
    root = np.float32(scale.spread**0.5)
    arrays = {
        "center": np.float64(scale.center),
        "users": root * users[:, :rank],
        "items": root * items[:, :rank],
        "user_biases": np.float32(scale.spread) * users[:, rank],
        "item_biases": np.float32(scale.spread) * items[:, rank + 1],
        "user_ids": table.whole.user_ids,
        "item_ids": table.whole.item_ids,
        "user_counts": np.bincount(training.users, minlength=training.num_users),
        "item_counts": np.bincount(training.items, minlength=training.num_items),
    }
    write_arrays(folder.factors, arrays)
