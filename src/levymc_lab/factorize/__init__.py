"""Ratings of items by users, from a person's table to predictions with intervals.

`prepare` reads and checks, and writes nothing; `run` fits, and can be interrupted at any time: the
same call goes on.  On the command line this is ``levymc factorize``.

A folder of results holds::

    manifest.json     settings, versions, digest of the data, error and coverage on held-out ratings
    predictions.csv   user, item, mean, low, high, rating (where known), basis
    factors.npz       the last draw of the factors and biases, with the ids
    chain.zarr/       while the run is not finished: the store of its chain, see `levymc.iterate`

The arrays of factors.npz, for U users, I items and rank L, are::

    center                        the mean rating of the training part, a number
    users, items                  (U, L), (I, L): the factors
    user_biases, item_biases      (U,), (I,)
    user_ids, item_ids            (U,), (I,): as in the table, one for each row
    user_counts, item_counts      (U,), (I,): ratings that were fitted; of a row without any the
                                  model knows its prior only

    rating of item i by user u  ≈  center + users[u] · items[i] + user_biases[u] + item_biases[i]

in units of a rating, without the noise.  This is one draw from the posterior: it shows how factors
may look, and predicts worse than predictions.csv, whose means are over all draws that count.  There
is no mean of the factors to give in its place: the posterior does not change if both are rotated
together, so that over a long chain it is zero.
"""

from ._prepare import Job as Job
from ._prepare import prepare as prepare
from ._run import Progress as Progress
from ._run import run as run
from ._table import Settings as Settings
