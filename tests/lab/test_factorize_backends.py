"""With a compiler and without, `factorize` gives the same law: of the noise, and of the error."""

import jax
import numpy as np
import pytest
from scipy import stats
from tests.models.kernels import needs_native

import levymc
from levymc_lab import data, factorize
from levymc_lab.factorize import _model, _noise

NUM_CHAINS = 32
FALSE_ALARM = 1e-6
BACKENDS = ("native", "jax")

pytestmark = needs_native


def prepared(folder, rank):
    """The same fit by each backend."""
    with pytest.MonkeyPatch.context() as patch:
        for backend in BACKENDS:
            patch.setenv("LEVYMC_NATIVE", backend)
            table, settings = folder / "ratings.csv", factorize.Settings(rank=rank, steps=300)
            yield backend, factorize.prepare(table, folder / backend, settings, num_threads=1)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """A small fit, and its noise, of fewer sweeps than usual."""
    folder = tmp_path_factory.mktemp("jobs")
    data.write(data.synthetic(40, 25, 500, seed=3, noise=0.5), folder / "ratings.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_noise, "MOST_SWEEPS", 48)
        yield {backend: (job, _noise._sampler(job)) for backend, job in prepared(folder, 2)}


def starts(job):
    """Of independent chains."""
    keys = jax.random.split(jax.random.key(5), NUM_CHAINS)
    return jax.tree.map(lambda *one: np.concatenate(one), *(_model.start_of(job, k) for k in keys))


@pytest.fixture(scope="module")
def squares(jobs):
    """The mean square error of each sweep of each chain, by backend."""
    found = {}
    for number, (backend, (job, (algorithm, ratings))) in enumerate(jobs.items()):
        (visit,) = levymc.iterate(
            algorithm,
            jax.random.key(number),
            starts(job),
            algorithm.num_sweeps,
            at=algorithm.num_sweeps,
            minibatches=levymc.whole(ratings),
        )
        found[backend] = job, np.asarray(visit.states.squares)
    return found


def assert_same_mean(one, other):
    """Welch's test of two samples of independent estimates, each a mean over many draws."""
    spread = np.sqrt(np.var(one, ddof=1) / len(one) + np.var(other, ddof=1) / len(other))
    limit = stats.t.isf(FALSE_ALARM / 2, min(len(one), len(other)) - 1)
    assert abs(np.mean(one) - np.mean(other)) < limit * spread


def test_both_backends_estimate_the_same_noise(squares):
    """False alarm: 1e-6 (Student's t).  Detects: noises that differ by 1.5 %."""
    estimates = [
        np.array([_noise._noise(chain[None], job).deviation for chain in found])
        for job, found in squares.values()
    ]
    assert_same_mean(*estimates)


def test_the_noise_is_a_mean_and_no_single_draw(squares):
    """The variance over chains is below half that of one draw's error, which it was once.

    False alarm: 1e-6 (F test with 62 and 62 degrees of freedom, as the ratio is about 1/8).
    Detects: a single draw, with probability 0.99.
    """
    single, mean = [], []
    for job, found in squares.values():
        roots = job.scale.spread * np.sqrt(found[:, -1])
        single.append(np.var(roots, ddof=1))
        mean.append(np.var([_noise._noise(chain[None], job).deviation for chain in found], ddof=1))
    assert np.mean(mean) < np.mean(single) / 2


def test_the_error_of_the_noise_is_reported(squares):
    """Within a factor of four of the deviation over chains: sweeps are correlated."""
    for job, found in squares.values():
        estimates = [_noise._noise(chain[None], job) for chain in found]
        deviation = np.std([one.deviation for one in estimates], ddof=1)
        reported = np.median([one.error for one in estimates])
        assert deviation / 4 < reported < 4 * deviation


@pytest.mark.nightly
def test_estimates_differ_by_their_errors_where_ratings_are_few(tmp_path, monkeypatch):
    """300 ratings without any structure for 500 factors: two chains end up some per cent apart.

    False alarm: 1e-6 (F test: of four estimates, and of the errors by seven degrees of freedom
    each).  Detects: errors that are reported ten times too small, as parts of one chain had them,
    with probability 0.9.
    """
    monkeypatch.setattr(_noise, "MOST_SWEEPS", 48)
    chance = np.random.default_rng(4)
    pairs = chance.permutation(600)[:300]
    lines = [f"u{pair % 30},i{pair // 30},{chance.integers(1, 6)}\n" for pair in pairs]
    (tmp_path / "ratings.csv").write_text("".join(lines))
    found = [
        list(_noise.estimate_noise(job, jax.random.key(seed)))[-1]
        for backend, job in prepared(tmp_path, 10)
        for seed in (BACKENDS.index(backend), 2 + BACKENDS.index(backend))
    ]
    variance = np.var([one.deviation for one in found], ddof=1)
    reported = np.mean([one.error**2 for one in found])
    degrees = len(found) * (_noise.MOST_CHAINS - 1)
    assert variance < stats.f.isf(FALSE_ALARM, len(found) - 1, degrees) * reported


@pytest.mark.nightly
def test_both_backends_predict_equally_well(jobs):
    """The error of the mean over a chain's draws, over independent chains.

    False alarm: 1e-6 (Student's t).  Detects: errors that differ by 8 %.
    """
    errors = []
    for number, (job, _) in enumerate(jobs.values()):
        predict = _model.Predict.of(job)
        fast = _model.sampler_of(job, 0.5)
        result = levymc.sample(
            fast.algorithm,
            jax.random.key(number),
            starts(job),
            300,
            minibatches=levymc.whole(fast.data),
            observe={"predicted": levymc.observe.mean(predict.mean)},
            observe_every=list(range(60, 301, 10)),
            progress=False,
        )
        mean = job.scale.center + job.scale.spread * np.asarray(result.observed["predicted"])
        errors.append(np.sqrt(np.mean((mean - job.table.held_out.values) ** 2, axis=1)))
    assert_same_mean(*errors)
