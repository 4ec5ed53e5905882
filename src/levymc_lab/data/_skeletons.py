"""The curves along which made digits are written."""

from functools import cache

import numpy as np

# Vertices (right, down) of each digit in a box from 0 to 1; twice the same makes a corner.
SKELETONS: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0.55, 0.02), (0.2, 0.2), (0.12, 0.6), (0.4, 0.98), (0.8, 0.75), (0.85, 0.3), (0.5, 0.02)),
    ((0.5, 0.0), (0.5, 0.35), (0.5, 0.7), (0.5, 1.0)),
    (
        *((0.15, 0.25), (0.45, 0.0), (0.8, 0.2), (0.65, 0.55)),
        *((0.1, 0.97), (0.1, 0.97), (0.5, 0.93), (0.92, 0.97)),
    ),
    (
        *((0.15, 0.1), (0.5, 0.0), (0.8, 0.2), (0.4, 0.47)),
        *((0.4, 0.47), (0.85, 0.68), (0.6, 0.97), (0.12, 0.88)),
    ),
    (
        *((0.2, 0.02), (0.12, 0.5), (0.12, 0.5), (0.78, 0.48), (0.78, 0.48)),
        *((0.78, 0.02), (0.78, 0.02), (0.75, 0.5), (0.72, 1.0)),
    ),
    (
        *((0.82, 0.02), (0.28, 0.03), (0.28, 0.03), (0.22, 0.45), (0.22, 0.45)),
        *((0.62, 0.4), (0.85, 0.68), (0.6, 0.97), (0.12, 0.9)),
    ),
    (
        *((0.7, 0.0), (0.32, 0.3), (0.15, 0.72), (0.45, 0.99)),
        *((0.8, 0.75), (0.55, 0.5), (0.2, 0.7)),
    ),
    ((0.1, 0.05), (0.85, 0.05), (0.85, 0.05), (0.6, 0.5), (0.4, 1.0)),
    (
        *((0.75, 0.12), (0.45, 0.0), (0.22, 0.22), (0.5, 0.47), (0.82, 0.75)),
        *((0.5, 1.0), (0.18, 0.78), (0.5, 0.47), (0.78, 0.22), (0.72, 0.1)),
    ),
    (
        *((0.78, 0.25), (0.5, 0.0), (0.2, 0.25), (0.45, 0.5)),
        *((0.78, 0.25), (0.78, 0.25), (0.75, 0.6), (0.6, 1.0)),
    ),
)
NUM_VERTICES = max(map(len, SKELETONS))
NUM_POINTS = 48  # along a curve: closer together than a stroke of MNIST is wide
FINE = 2000


@cache
def curves() -> tuple[np.ndarray, np.ndarray]:
    """For each digit, weights (points, vertices) of a curve at equal distances, and the vertices.

    The curve is Catmull and Rom's; digits with fewer vertices than others have weights of zero.
    """
    weights = np.zeros((len(SKELETONS), NUM_POINTS, NUM_VERTICES), np.float32)
    vertices = np.zeros((len(SKELETONS), NUM_VERTICES, 2), np.float32)
    for digit, skeleton in enumerate(SKELETONS):
        own = np.array(skeleton)
        fine = _catmull_rom(len(own), np.linspace(0, len(own) - 1, FINE))
        lengths = np.linalg.norm(np.diff(fine @ own, axis=0), axis=1)
        travelled = np.concatenate([[0], np.cumsum(lengths)])
        places = np.searchsorted(travelled, np.linspace(0, travelled[-1], NUM_POINTS))
        weights[digit, :, : len(own)] = fine[np.minimum(places, FINE - 1)]
        vertices[digit, : len(own)] = own
    return weights, vertices


def _catmull_rom(num_vertices: int, times: np.ndarray) -> np.ndarray:
    """Weights of the vertices at each time; the curve passes vertex k at time k."""
    left = np.minimum(times.astype(int), num_vertices - 2)
    t = times - left
    cubics = (
        (-t + 2 * t**2 - t**3) / 2,
        (2 - 5 * t**2 + 3 * t**3) / 2,
        (t + 4 * t**2 - 3 * t**3) / 2,
        (-(t**2) + t**3) / 2,
    )
    weights = np.zeros((len(times), num_vertices))
    for offset, cubic in zip((-1, 0, 1, 2), cubics, strict=True):
        vertex = np.clip(left + offset, 0, num_vertices - 1)
        np.add.at(weights, (np.arange(len(times)), vertex), cubic)
    return weights
