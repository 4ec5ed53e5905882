"""Ratings of items by users, from a person's table to predictions with intervals.

`prepare` reads and checks, and writes nothing; `run` fits, and can be interrupted at any time: the
same call goes on.  On the command line this is ``levymc factorize``.  `predict` and `recommend` use
a fit that is finished, as ``levymc predict`` and ``levymc recommend`` do.  The method, stochastic
gradients or the Gibbs sampler, is among the `Settings`.

A folder of results holds::

    manifest.json       settings, versions, digest of the data, error and coverage on what was
                        held out
    predictions.csv     user, item, mean, low, high, rating (where known), basis
    factors.npz         draws of the factors and biases, with the ids: all that predictions need
    factors-README.md   what its arrays are
    chain.zarr/, draws/ while the run is not finished: the store of its chain, see `levymc.iterate`,
                        and the draws so far

`Fit` describes the arrays of factors.npz.  For draws d, user u and item i,

    rating  ≈  mean over d of  center + users[d, u] · items[d, i] + user_biases[d, u]
                               + item_biases[d, i]

in units of a rating, and within the scale of the ratings: these are the means in predictions.csv.
There is no mean of the factors to give in the place of draws: the posterior does not change if both
are rotated together, so that over a long chain it is zero.
"""

from ._fit import Fit as Fit
from ._fit import Predictions as Predictions
from ._fit import load as load
from ._fit import predict as predict
from ._fit import recommend as recommend
from ._prepare import Job as Job
from ._prepare import prepare as prepare
from ._run import Progress as Progress
from ._run import run as run
from ._table import Reading as Reading
from ._table import Settings as Settings
