"""Belief networks so small that all can be added up, in plain numpy and double precision."""

import itertools

import numpy as np


def states(num_hidden):
    """All values of the hidden units, a row each; unit 0 is the highest bit of a row's number."""
    return np.array(list(itertools.product((0, 1), repeat=num_hidden)))


def number_of(hidden):
    """The row of `states` that each state is in."""
    units = np.asarray(hidden, np.int64)
    return units @ 2 ** np.arange(units.shape[1])[::-1]


def softplus(x):
    return np.logaddexp(0, x)


def make(num_visible, num_hidden, seed, scale=1.0, count=7):
    """A position, and images of independent pixels."""
    rng = np.random.default_rng(seed)
    position = {
        "weights": scale * rng.standard_normal((num_visible, num_hidden)),
        "hidden_bias": rng.standard_normal(num_hidden),
        "visible_bias": rng.standard_normal(num_visible),
    }
    return position, rng.integers(0, 2, (count, num_visible)).astype(np.uint8)


def in_dtype(position, dtype):
    return {name: np.asarray(leaf, dtype) for name, leaf in position.items()}


def logjoint(position, image, hidden):
    """log p(v, h) of one image and one state, unit by unit and pixel by pixel."""
    total = 0.0
    for bias, unit in zip(position["hidden_bias"], hidden, strict=True):
        rate = 1 / (1 + np.exp(-float(bias)))
        total += np.log(rate if unit else 1 - rate)
    for row, bias, pixel in zip(position["weights"], position["visible_bias"], image, strict=True):
        logit = float(bias) + sum(float(w) for w, unit in zip(row, hidden, strict=True) if unit)
        total += pixel * logit - softplus(logit)
    return total


def logjoints(position, image):
    """log p(v, h) of one image and all states."""
    every = states(len(position["hidden_bias"]))
    logits = every @ np.asarray(position["weights"], float).T + position["visible_bias"]
    prior = every * position["hidden_bias"] - softplus(np.asarray(position["hidden_bias"], float))
    return prior.sum(axis=1) + (image * logits - softplus(logits)).sum(axis=1)


def loglikelihood(position, image):
    return np.logaddexp.reduce(logjoints(position, image))


def posterior(position, image):
    """p(h | v) of all states."""
    logs = logjoints(position, image)
    return np.exp(logs - np.logaddexp.reduce(logs))
