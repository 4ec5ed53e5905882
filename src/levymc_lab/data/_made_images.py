"""Made pictures of digits: pen strokes along jittered skeletons."""

from typing import NamedTuple

import numpy as np

from levymc._checks import check_count

from ._skeletons import NUM_VERTICES, curves

WOBBLE = 0.03  # standard deviations, as shares of the height of a digit: of each vertex …
SHIFT = 0.03
SCALE, SLANT, TURN = 0.1, 0.15, 0.1  # … of the logarithm of width and height, the shear, the angle
MEAN_SLANT = 0.15  # people lean their digits to the right
HEIGHT = 0.62  # of a digit in a picture
PEN, PEN_SPREAD = 0.042, 0.2  # half the width of a stroke in a picture, and its logarithm's spread
FULL_INK = 255
EDGE = 0.04  # over this share of a picture ink fades out
CHUNK = 256  # pictures at a time, whose greys stay in cache


class _Jitter(NamedTuple):
    """Standard normal numbers, a row for each picture."""

    vertices: np.ndarray
    affine: np.ndarray
    pen: np.ndarray


def made_images(count: int, seed: int = 0, size: int = 28) -> tuple[np.ndarray, np.ndarray]:
    r"""Made grey pictures of the ten digits, for tests and trials where MNIST is not at hand.

    A digit is a smooth curve :math:`q(s)` through some vertices that every picture moves a little,
    slanted, turned, stretched and shifted at random, and drawn with a round pen:

    .. math:: g(x) = \mathrm{clip}\Bigl(\frac12 + \frac{r - \min_s |x - q(s)|}{w},\ 0,\ 1\Bigr).

    Not valid for any statement about MNIST: these are ten curves, not people's handwriting.

    Args:
        count: how many.
        seed: the same seed gives the same pictures (in one version of NumPy), and the first of
            them whatever their number.
        size: height and width, in pixels.

    Returns:
        Pictures (count, size, size) with 0 for paper and 255 for full ink, and labels (count,)
        from 0 to 9; both uint8.

    Raises:
        TypeError, ValueError: a count or size below one.

    Examples:
        >>> import levymc_lab.data
        >>> images, labels = levymc_lab.data.made_images(100, seed=1)
        >>> images.shape, images.dtype, int(labels.max())
        ((100, 28, 28), dtype('uint8'), 9)
    """
    count = check_count("count", count, "100, say.")
    size = check_count("size", size, "28, as MNIST's pictures.")
    for_labels, for_jitter = np.random.default_rng(seed).spawn(2)
    labels = for_labels.integers(0, 10, count).astype(np.uint8)
    normals = for_jitter.standard_normal((count, 2 * NUM_VERTICES + 7), np.float32)
    images = np.empty((count, size, size), np.uint8)
    for begin in range(0, count, CHUNK):
        rows = slice(begin, begin + CHUNK)
        jitter = _jitter(normals[rows])
        images[rows] = _drawn(_curves(labels[rows], jitter), _pens(jitter), size)
    return images, labels


def _jitter(normals: np.ndarray) -> _Jitter:
    vertices, affine, pen = np.split(normals, [2 * NUM_VERTICES, 2 * NUM_VERTICES + 6], axis=1)
    return _Jitter(vertices.reshape(-1, NUM_VERTICES, 2), affine, pen[:, 0])


def _curves(labels: np.ndarray, jitter: _Jitter) -> np.ndarray:
    """Points (count, points, 2) along each digit, in a picture from 0 to 1."""
    weights, vertices = curves()
    written = weights[labels] @ (vertices[labels] - 0.5 + WOBBLE * jitter.vertices)
    moved = written @ _affine(jitter.affine) + SHIFT * jitter.affine[:, None, :2]
    return HEIGHT * moved + 0.5


def _affine(normals: np.ndarray) -> np.ndarray:
    """Matrices (count, 2, 2) that stretch, slant and turn rows (right, down)."""
    stretch = np.exp(SCALE * normals[:, 2:4])
    angle = TURN * normals[:, 4]
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], axis=1)
    slant = np.broadcast_to(np.eye(2, dtype=np.float32), turn.shape).copy()
    slant[:, 1, 0] = -MEAN_SLANT + SLANT * normals[:, 5]
    return stretch[:, :, None] * slant @ turn


def _pens(jitter: _Jitter) -> np.ndarray:
    return PEN * np.exp(PEN_SPREAD * jitter.pen)


def _drawn(points: np.ndarray, pens: np.ndarray, size: int) -> np.ndarray:
    """Greys of pixels by their distance from the nearest point of the curve."""
    centres = (np.arange(size, dtype=np.float32) + 0.5) / size
    squares = (points[:, :, :, None] - centres) ** 2
    nearest = np.full((len(points), size, size), np.inf, np.float32)
    for point in range(points.shape[1]):
        right, down = squares[:, point, 0, None, :], squares[:, point, 1, :, None]
        np.minimum(nearest, right + down, out=nearest)
    ink = 0.5 + (pens[:, None, None] - np.sqrt(nearest)) / EDGE
    return np.rint(FULL_INK * np.clip(ink, 0, 1)).astype(np.uint8)
