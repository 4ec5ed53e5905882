r"""Pictures of black and white, made of grey ones."""

import math
import operator
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from levymc._checks import check_interval

FULL_INK = 255
WORDS_AT_ONCE = 2**20  # random words, 8 bytes each
UNIT = 2.0**-53  # of the top 53 bits of a word, as a float64 holds them


def binarize(images: ArrayLike, seed: int | None = 0, threshold: float | None = None) -> np.ndarray:
    r"""Make every pixel 0 or 1, at random by its grey, or by a threshold:

    .. math:: v_{ij} = 1 \text{ with probability } g_{ij}, \qquad\text{or}\qquad
       v_{ij} = [g_{ij} > \text{threshold}], \qquad g_{ij} \in [0, 1] \text{ the grey},

    independently for all pixels, once and for all.  The bits are the same on every platform, and
    those of a picture depend on the seed, on its place and on itself only: the first pictures come
    out equally, however many follow.

    Args:
        images: (count, …), uint8 with 255 for full ink, or floating in [0, 1].
        seed: a whole number from 0; without a threshold.
        threshold: in (0, 1); then nothing is random.

    Returns:
        (count, pixels of a picture), uint8 of 0 and 1.

    Raises:
        TypeError, ValueError: other arrays, seeds and thresholds; pictures that are binary already.

    Examples:
        >>> import numpy as np, levymc_lab.data
        >>> grey = np.array([[[0, 255], [128, 127]]], np.uint8)
        >>> levymc_lab.data.binarize(grey, seed=1)
        array([[0, 1, 1, 0]], dtype=uint8)
        >>> levymc_lab.data.binarize(grey, threshold=0.5)
        array([[0, 1, 1, 0]], dtype=uint8)

    References: [salakhutdinov2008dbn].  Departures: the law is that of its binarised
    MNIST, the bits are not.
    """
    pictures = _checked(images)
    if threshold is None:
        words = np.random.PCG64(_checked_seed(seed))
        return _of_greys(pictures, lambda greys: _uniforms(words, greys.shape) < greys)
    _check_threshold(threshold)
    return _of_greys(pictures, lambda greys: greys > threshold)


def _of_greys(pictures: np.ndarray, ink: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply `ink` to the greys in [0, 1] of some pictures at a time, in their order."""
    count, size = len(pictures), math.prod(pictures.shape[1:])
    flat = pictures.reshape(count, size)
    scale = FULL_INK if flat.dtype == np.uint8 else 1
    binary = np.empty((count, size), np.uint8)
    step = max(1, WORDS_AT_ONCE // size)
    for begin in range(0, count, step):
        rows = slice(begin, begin + step)
        binary[rows] = ink(flat[rows].astype(np.float64) / scale)
    return binary


def _uniforms(words: np.random.PCG64, shape: tuple[int, ...]) -> np.ndarray:
    """In [0, 1); from the words themselves, which NumPy promises to keep, unlike its floats."""
    return (words.random_raw(math.prod(shape)).reshape(shape) >> np.uint64(11)) * UNIT


def _checked(images: ArrayLike) -> np.ndarray:
    pictures = np.asarray(images)
    remedy = "Give them as read, or divided by 255."
    if pictures.dtype != np.uint8 and not jnp.issubdtype(pictures.dtype, np.floating):
        raise TypeError(f"`images` must be uint8 or floating, got {pictures.dtype}. {remedy}")
    if pictures.ndim < 2 or 0 in pictures.shape[1:]:
        raise ValueError(
            f"`images` must have the shape (count, …), got {pictures.shape}. "
            "For one picture, write images[None]."
        )
    if pictures.dtype == np.uint8:
        if np.max(pictures, initial=0) == 1:
            raise ValueError(
                "`images` must be grey, got uint8 of 0 and 1 only, which are binary already. "
                "Leave them as they are, or multiply them by 255."
            )
    else:
        check_interval("images", pictures, 0.0, 1.0, includes_low=True, remedy=remedy)
    return pictures


def _checked_seed(seed: int | None) -> int:
    remedy = "Give a whole number from 0, or a threshold."
    try:
        number = operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`seed` must be an integer, got {seed!r}. {remedy}") from None
    if number < 0:
        raise ValueError(f"`seed` must not be negative, got {number}. {remedy}")
    return number


def _check_threshold(threshold: float) -> None:
    if not 0 < threshold < 1:
        raise ValueError(
            f"`threshold` must lie in (0, 1), got {threshold}. It is a share of full ink: 0.5, say."
        )
