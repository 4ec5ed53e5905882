r"""Fit the reference to draws of the target, and judge it on others."""

from collections.abc import Iterator

import numpy as np

from ._reference import Fit, assemble_on_host, log_t, places_for

DEGREES = (1.0, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, np.inf)
NUM_ITERATIONS = 12  # of expectation and maximisation
KEPT = 0.1  # of the weights stays what exploration says
MOST_COMPONENTS = 64
MOST_POINTS = 4096  # to fit to
MOST_HELD_OUT = 8192  # to judge by
BATCH = 4096  # points at once, which the caches hold
FEWEST = 10  # draws for each component that is split


def harmonic_acceptance(log_ratios: np.ndarray) -> float:
    r"""How often proposals of q are accepted, harmonically averaged over draws of π,

    .. math:: h = 1 \big/ \mathrm{E}_{x∼π}[1/a(x)], \qquad
       a(x) = \frac{\mathrm{E}_{y∼π} \min(v(y), v(x))}{\mathrm{E}_{y∼π}\, v(y)}, \quad v = q/π,

    from log π − log q at draws of π alone.  The harmonic mean sees tails in which a chain would
    be stuck, where the arithmetic mean does not.
    """
    if not len(log_ratios):
        return 0.0
    finite = np.where(np.isfinite(log_ratios), log_ratios, -1e30)
    v = np.sort(np.exp(-(finite - finite.min())))
    below = np.cumsum(v)
    count = len(v)
    sums = below + v * (count - 1 - np.arange(count))
    acceptance = sums / below[-1]
    return float(1 / np.mean(1 / np.maximum(acceptance, 1e-300)))


def squared_distances(means: np.ndarray, inverses: np.ndarray, points: np.ndarray) -> np.ndarray:
    """|L_k⁻¹(x − μ_k)|² for each of the points and components."""
    squares = np.empty((len(points), len(means)))
    for number, (mean, inverse) in enumerate(zip(means, inverses, strict=True)):
        whitened = (points - mean) @ inverse.T
        squares[:, number] = np.einsum("ni,ni->n", whitened, whitened)
    return squares


def log_components(fit: Fit, points: np.ndarray) -> np.ndarray:
    """log of each summand of q at each of the points, the wide component first."""
    reference = assemble_on_host(fit, len(fit.weights) + 1)
    parts = [np.zeros((0, len(fit.weights) + 1))]
    for begin in range(0, len(points), BATCH):
        part = points[begin : begin + BATCH]
        squares = squared_distances(reference.means, reference.inverses, part)
        parts.append(reference.log_summands(squares, np))
    return np.concatenate(parts)


def log_reference(fit: Fit, points: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(log_components(fit, points), axis=-1)


def score(fit: Fit, points: np.ndarray, values: np.ndarray) -> float:
    """The harmonic acceptance of a fit on draws that it was not made from."""
    return harmonic_acceptance(values - log_reference(fit, points))


def improve(
    current: Fit,
    prior: Fit,
    points: np.ndarray,
    held_out: tuple[np.ndarray, np.ndarray],
) -> tuple[Fit, float]:
    """The best of several fits by its score on the draws that are held out."""
    held_out = _thinned(held_out[0], MOST_HELD_OUT), _thinned(held_out[1], MOST_HELD_OUT)
    best, best_score = current, score(current, *held_out)
    for candidate in _candidates(current, prior, points):
        found = score(candidate, *held_out)
        if found > best_score * 1.01:
            best, best_score = candidate, found
    for degrees in DEGREES:
        candidate = best._replace(degrees=np.full(len(best.weights), degrees))
        found = score(candidate, *held_out)
        if found > best_score * 1.01:
            best, best_score = candidate, found
    return best, best_score


def _candidates(current: Fit, prior: Fit, points: np.ndarray) -> Iterator[Fit]:
    points = _thinned(points, MOST_POINTS)
    yield reweighted(prior, prior, points)
    fitted = expectation_maximisation(current, prior, points)
    yield fitted
    split = split_components(fitted, points)
    if split is not None:
        yield expectation_maximisation(split, prior, points)


def _thinned(array: np.ndarray, most: int) -> np.ndarray:
    """Evenly."""
    return array[np.linspace(0, len(array) - 1, min(len(array), most)).astype(int)]


def reweighted(fit: Fit, prior: Fit, points: np.ndarray) -> Fit:
    """The same shapes, weighed by the draws that belong to them."""
    return fit._replace(weights=_kept(_responsibilities(fit, points)[0].mean(axis=0), fit, prior))


def expectation_maximisation(fit: Fit, prior: Fit, points: np.ndarray) -> Fit:
    """A t mixture nearer to the draws; covariances are shrunk to those of exploration."""
    dimension = points.shape[1]
    shrinkage = dimension + 2.0
    for _ in range(NUM_ITERATIONS):
        shares, scales = _responsibilities(fit, points)
        counts, weighed = shares.sum(axis=0), shares * scales
        totals = np.maximum(weighed.sum(axis=0), 1e-300)
        means = np.where(
            (counts > 1e-6)[:, None], (weighed.T @ points) / totals[:, None], fit.means
        )
        # A mean moves as far as there are draws to say so.
        trust = (counts / (counts + 1.0))[:, None]
        means = trust * means + (1 - trust) * fit.means
        covariances = np.empty_like(fit.covariances)
        for number, mean in enumerate(means):
            offsets = points - mean
            scatter = (weighed[:, number, None] * offsets).T @ offsets
            before = shrinkage * prior.covariances[fit.mode[number]]
            covariances[number] = (scatter + before) / (counts[number] + shrinkage)
        fit = fit._replace(
            weights=_kept(counts / len(points), fit, prior), means=means, covariances=covariances
        )
    return fit


def _kept(weights: np.ndarray, fit: Fit, prior: Fit) -> np.ndarray:
    """Weights of which some stay those of exploration, so that no mode is given up."""
    per_mode = np.bincount(fit.mode, minlength=len(prior.weights))
    given = prior.weights[fit.mode] / np.maximum(per_mode[fit.mode], 1)
    mixed = (1 - KEPT) * weights + KEPT * given
    return mixed / mixed.sum()


def _responsibilities(fit: Fit, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the components in each point, and the t law's weight of the point in each."""
    dimension = points.shape[1]
    factors = np.linalg.cholesky(fit.covariances)
    squares = squared_distances(fit.means, np.linalg.inv(factors), points)
    halves = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    heights = log_t(squares, fit.degrees, dimension, np)
    logs = np.log(np.maximum(fit.weights, 1e-300)) - halves + heights
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    with np.errstate(invalid="ignore"):
        scales = (fit.degrees + dimension) / (fit.degrees + squares)
    scales = np.where(np.isinf(fit.degrees), 1.0, scales)
    return shares / shares.sum(axis=1, keepdims=True), scales


def split_components(fit: Fit, points: np.ndarray) -> Fit | None:
    """Two components for each that has draws enough, apart along its longest axis."""
    shares, _ = _responsibilities(fit, points)
    enough = shares.sum(axis=0) > FEWEST * points.shape[1] ** 0.5
    count = len(fit.weights)
    most = min(MOST_COMPONENTS, 8 * (fit.mode.max() + 1))
    chosen = np.flatnonzero(enough)[np.argsort(-fit.weights[enough])][: max(most - count, 0)]
    if not len(chosen):
        return None
    parts: list[Fit] = []
    for number in range(count):
        one = Fit(*(field[number : number + 1] for field in fit))
        if number not in chosen:
            parts.append(one)
            continue
        eigenvalues, vectors = np.linalg.eigh(fit.covariances[number])
        shift = 0.8 * np.sqrt(eigenvalues[-1]) * vectors[:, -1]
        shrunk = one.covariances - 0.6 * eigenvalues[-1] * np.outer(vectors[:, -1], vectors[:, -1])
        for sign in (-1.0, 1.0):
            parts.append(
                one._replace(
                    weights=one.weights / 2, means=one.means + sign * shift, covariances=shrunk
                )
            )
    return Fit(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def shared_places(*fits: Fit) -> int:
    """Places for the largest of some fits."""
    return max(places_for(len(fit.weights)) for fit in fits)
