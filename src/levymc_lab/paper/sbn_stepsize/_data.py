"""The binary images of the experiment `sbn_stepsize`."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from levymc_lab import data

SIDE = 28
PIXELS = SIDE * SIDE


class Split(NamedTuple):
    """Images of 0 and 1 to learn from, and those whose likelihood is estimated."""

    train: np.ndarray
    test: np.ndarray


def check_there(config: Any) -> None:
    """Refuse at once where the pictures are missing."""
    if config.source == "mnist":
        data.load("mnist")


@lru_cache(maxsize=1)
def split(source: str, num_train: int, num_test: int, seed: int) -> Split:
    """The test images are chosen at random, as the official order is not."""
    if source == "made":
        greys, _ = data.synthetic_images(num_train + num_test, seed)
        binary = data.binarize(greys, seed)
        return Split(binary[:num_train], binary[num_train:])
    pictures = data.load(source)
    chosen = np.random.default_rng(seed).permutation(len(pictures.test_images))[:num_test]
    train = data.binarize(pictures.train_images[:num_train], seed)
    return Split(train, data.binarize(pictures.test_images[np.sort(chosen)], seed + 1))


def of(config: Any) -> Split:
    return split(config.source, config.num_train, config.num_test, config.binarize_seed)
