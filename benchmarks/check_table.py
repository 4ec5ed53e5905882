"""What `levymc.diagnostics.check` sees: forty runs, half of them wrecked in different ways."""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

os.environ.setdefault("JAX_ENABLE_X64", "1")

import blackjax
import jax
import jax.numpy as jnp
from bars import Bar, show
from check_targets import (
    Classification,
    Regression,
    beta,
    chained,
    exponential,
    funnel,
    gaussian,
    gumbel,
    logistic_law,
    two_modes,
    uniform,
)

import levymc
from levymc import integrators, targets
from levymc.diagnostics import Report, check

SEED = 20_260
SPREAD = jnp.linspace(-3.0, 3.0, 4)
INSIDE = jnp.linspace(0.2, 0.8, 4)


class Case(NamedTuple):
    """A run, and what is known of it.

    density: given to `check`, too, if not None.
    steps: after the burn-in.  options: of `levymc.sample`.
    """

    subject: str
    is_wrecked: bool
    algorithm: Any
    starts: Any
    steps: int
    density: Callable[[Any], Any] | None = None
    options: dict[str, Any] = {}  # noqa: RUF012

    def report(self, number: int) -> Report:
        result = levymc.sample(
            self.algorithm,
            jax.random.key(SEED + number),
            self.starts,
            self.steps,
            progress=False,
            **self.options,
        )
        return check(result, self.density)


def wrecked_steps() -> list[Case]:
    """Steps too large for the target, in different ways."""
    regression, many = Regression(), Classification(100_000)
    small = {"minibatches": levymc.batches(regression.data, 10)}
    batches = {"minibatches": levymc.batches(regression.data, 100), "burn_in": 500}
    widths = jnp.array([0.05, 0.2, 0.5, 1.0])
    along, rotated = gaussian(0.0, widths), chained(20, 0.9)
    many_rows = {"minibatches": levymc.batches(many.data, 100)}
    capped = integrators.tamed(0.02)
    starts, four, twenty = regression.starts, jnp.zeros((4, 4)), jnp.zeros((4, 20))
    posterior = regression.logdensity
    forgotten, twice = regression.scaled(0.2), regression.scaled(2.0)
    thinned = {**batches, "thin": 20}

    def wrecked(subject, algorithm, starts, steps, density=None, **options):
        return Case(subject, True, algorithm, starts, steps, density, options)

    return [
        wrecked("sgld, η = 0.1 on 100 000 rows", levymc.sgld(many.gradient, 0.1), many.starts,
                2000, **many_rows),
        wrecked("sgld, noise of the minibatches", levymc.sgld(regression.gradient, 2e-4), starts,
                10_000, **small),
        wrecked("sgld, thinned, step too large", levymc.sgld(regression.gradient, 2.5e-3), starts,
                20_000, **thinned),
        wrecked("sgld, N/|Ω| forgotten, density given", levymc.sgld(forgotten, 2e-4), starts,
                40_000, posterior, **batches),
        wrecked("sgld, likelihood twice, density given", levymc.sgld(twice, 3e-5), starts,
                60_000, posterior, **batches),
        wrecked("ula, logistic law, η = 3", levymc.ula(logistic_law, 3.0), SPREAD, 10_000),
        wrecked("ula, one narrow coordinate", levymc.ula(along, 3e-3), four, 40_000),
        wrecked("ula, one narrow direction", levymc.ula(rotated, 0.06), twenty, 20_000),
        wrecked("ula, two wells, each too narrow", levymc.ula(targets.double_well, 0.12), SPREAD,
                20_000),
        wrecked("flmc, tamed far too much",
                levymc.flmc(gumbel, 0.1, 1.8, integrator=capped), SPREAD, 10_000),
    ]  # fmt: skip


def wrecked_draws() -> list[Case]:
    """Chains that have not been where they should, or went where they should not."""
    student, modes = targets.student_t(2.0), two_modes(10.0, 1.0)
    wide, nuts = gaussian(0.0, 3.0), blackjax.nuts(funnel, 0.3, jnp.ones(8))
    far = jnp.array([40.0, 50.0, 60.0, 70.0])

    def wrecked(subject, algorithm, starts, steps, density=None, **options):
        return Case(subject, True, algorithm, starts, steps, density, options)

    return [
        wrecked("fla on Student's t(2)", levymc.fla(student, 0.1, 1.5), SPREAD, 20_000),
        wrecked("fla's own tails on a normal law, density given", levymc.fla(wide, 0.5, 1.6),
                SPREAD, 20_000, wide),
        wrecked("mafla in one of two modes, density given", levymc.mafla(modes, 0.5, 1.95),
                jnp.full(4, 10.0), 10_000, modes),
        wrecked("ula in both of two modes", levymc.ula(modes, 0.1),
                jnp.array([-10.0, -10.0, 10.0, 10.0]), 10_000),
        wrecked("mafla, creeping from far starts", levymc.mafla(wide, 1e-3), far, 5000),
        wrecked("ula, 16 chains from one far place", levymc.ula(wide, 0.1), jnp.full(16, 60.0),
                8000),
        wrecked("levy_walk, stuck: scale of 1000", levymc.levy_walk(logistic_law, 1000.0, 1.8),
                SPREAD, 5000),
        wrecked("ula, weights that fall like 1/n", levymc.ula(logistic_law, lambda n: 1.0 / n),
                SPREAD, 10_000),
        wrecked("NUTS on a funnel", nuts, jnp.zeros((4, 8)), 1500, funnel),
        wrecked("ula on (0, 1)", levymc.ula(beta, 0.01), INSIDE, 10_000),
    ]  # fmt: skip


def good_langevin() -> list[Case]:
    """Algorithms without a Metropolis test, at steps that are small enough."""
    regression, classes = Regression(), Classification(200)
    batches = {"minibatches": levymc.batches(regression.data, 100), "burn_in": 500}
    whole = {"minibatches": levymc.whole(classes.data), "burn_in": 500}
    modes, five = two_modes(1.5, 0.8), chained(5, 0.5)
    drift = levymc.drifts.gaussian_mixture(1.6, [0.5, 0.5], [-1.5, 1.5], 0.8)
    wide = gaussian(3.0, 2.0)

    def good(subject, algorithm, starts, steps, density=None, **options):
        return Case(subject, False, algorithm, starts, steps, density, options)

    return [
        good("ula, Gumbel's law", levymc.ula(gumbel, 0.05), SPREAD, 50_000, gumbel, burn_in=500),
        good("ula, five correlated coordinates", levymc.ula(five, 0.04), jnp.zeros((4, 5)), 80_000,
             five, burn_in=500),
        good("ula, a decreasing step",
             levymc.ula(wide, lambda n: 0.6 / (1 + n / 200.0) ** (1 / 3)), SPREAD, 60_000, wide,
             burn_in=200),
        good("ula, thinned", levymc.ula(gaussian(0.0, 0.5), 0.02), SPREAD, 200_000, thin=10,
             burn_in=500),
        good("fla at α = 2", levymc.fla(logistic_law, 0.2, 2.0), SPREAD, 40_000, logistic_law,
             burn_in=500),
        good("sgld, linear regression", levymc.sgld(regression.gradient, 8e-5), regression.starts,
             40_000, regression.logdensity, **batches),
        good("sgld, a decreasing step",
             levymc.sgld(regression.gradient, lambda n: 1.6e-4 / (1 + n / 1000.0) ** (1 / 3)),
             regression.starts, 60_000, **batches),
        good("sgfla at α = 2, all data", levymc.sgfla(classes.gradient, 1e-3, 2.0),
             classes.starts, 20_000, classes.logdensity, **whole),
        good("flmc, a normal law", levymc.flmc(wide, 0.05, 1.8), SPREAD, 120_000, wide, thin=3,
             burn_in=2000),
        good("flmc, two modes", levymc.flmc(modes, 0.03, 1.6, drift=drift), SPREAD, 200_000, modes,
             thin=5, burn_in=500),
    ]  # fmt: skip


def good_exact() -> list[Case]:
    """Algorithms with a Metropolis test; heavy tails, bounded supports, modes."""
    heavy, five, modes = targets.student_t(1.5), targets.student_t(5.0), two_modes(3.0, 1.0)
    student, pair = targets.student_t(2.0), chained(2, 0.8)
    normal = gaussian(0.0, jnp.array([1.0, 2.0, 0.5, 1.0, 1.5]))
    nuts = blackjax.nuts(normal, 0.5, jnp.ones(5))

    def good(subject, algorithm, starts, steps, density=None, **options):
        return Case(subject, False, algorithm, starts, steps, density, options)

    return [
        good("mafla, Student's t(2)", levymc.mafla(student, 4.0, 1.3), SPREAD, 40_000, student),
        good("mafla, Student's t(5), three coordinates", levymc.mafla(five, 0.8), jnp.zeros((4, 3)),
             40_000, five),
        good("mafla, two modes", levymc.mafla(modes, 1.0, 1.2), SPREAD, 60_000, modes),
        good("mafla, Beta(2, 3)", levymc.mafla(beta, 0.02), INSIDE, 40_000, beta),
        good("mafla, the exponential law", levymc.mafla(exponential, 0.5), INSIDE, 40_000,
             exponential),
        good("levy_walk, Student's t(1.5)", levymc.levy_walk(heavy, 8.0, 1.0), SPREAD, 60_000,
             heavy),
        good("levy_walk, four modes", levymc.levy_walk(targets.four_modes, 3.0),
             jnp.asarray(targets.FOUR_MODES_MEANS), 200_000, targets.four_modes, thin=4),
        good("levy_walk, the uniform law", levymc.levy_walk(uniform, 1.5), INSIDE, 40_000, uniform),
        good("levy_walk, correlated coordinates",
             levymc.levy_walk(pair, 0.8, 1.5, coordinatewise=False), jnp.zeros((4, 2)), 60_000,
             pair),
        good("NUTS, a normal law", nuts, jnp.zeros((4, 5)), 3000, normal, burn_in=100),
    ]  # fmt: skip


GROUPS = (wrecked_steps, wrecked_draws, good_langevin, good_exact)


def cases() -> list[Case]:
    return [case for group in GROUPS for case in group()]


def row(case: Case, report: Report) -> str:
    """A line of the table."""
    verdict = {
        (True, True): "seen",
        (True, False): "MISSED",
        (False, True): "BLAMED",
        (False, False): "fine",
    }[case.is_wrecked, not report]
    kinds = ", ".join(dict.fromkeys(report.kinds)) or "-"
    return f"  {case.subject:<50} {verdict:<7} {kinds}"


def reports(chosen: list[Case]) -> Iterator[tuple[Case, Report]]:
    for number, case in enumerate(chosen):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # wrecked runs warn
            report = case.report(number)
        yield case, report


def table() -> list[Bar]:
    """Print what was seen of each run, and count."""
    found = []
    for case, report in reports(cases()):
        print(row(case, report), flush=True)
        found.append((case, report))
    seen = sum(not report for case, report in found if case.is_wrecked)
    blamed = sum(not report for case, report in found if not case.is_wrecked)
    return [
        Bar("wrecked runs that check sees", seen, "of 20", 19, at_least=True),
        Bar("good runs that check blames", blamed, "of 20", 1),
    ]


if __name__ == "__main__":
    begin = time.process_time()
    bars = show(table())
    print(f"  {time.process_time() - begin:.0f} s of processor time")
    sys.exit(0 if all(bar.is_met for bar in bars) else 1)
