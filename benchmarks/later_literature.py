r"""What samplers of the later literature target, and whether they pay.

Run: python benchmarks/later_literature.py

- Tempered noise with b̂ on N(0, 1), as η → 0: the law of dX = -c_α X dt + dT has the characteristic
  function exp(-(1/c_α) ∫_0^ω ψ(u)/u du), ψ(u) = (λ² + u²)^{α/2} - λ^α: nothing is simulated.
- The bias of `underdamped` on N(0, 1) in its step: E cos(1.5 x) over 1e5 chains that start in their
  law, from 6 units of time on, and its slope in log η.
- Isotropic against independent noise in `mafla`: passages between two modes, a distance of 6 apart
  along an axis or the diagonal, in 1000 steps; the best of three step sizes each.
- The proximal sampler beside `levy_walk`: passages of a Cauchy law over its median from beyond 10
  quartiles, in 1000 densities.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import levymc
from levymc import drifts, noises, stable, targets

FREQUENCY = 1.5
CHAINS = 100_000


def tempered_law(alpha: float, rate: float) -> tuple[float, float, float]:
    """Kolmogorov's distance to N(0, 1), the variance, and P(|X| > 4)."""
    c = float(drifts.gradient_coefficient(alpha))
    omega = np.linspace(0, 40, 400_001)
    exponent = (rate**2 + omega**2) ** (alpha / 2) - rate**alpha
    slope = np.divide(exponent, omega, out=np.zeros_like(omega), where=omega > 0)
    steps = np.diff(omega)
    total = np.concatenate([[0.0], np.cumsum(steps * (slope[1:] + slope[:-1]) / 2)])
    values = np.exp(-total / c)
    places = np.append(np.linspace(0.05, 5, 100), 4.0)
    inner = np.array([2 / math.pi * np.sum(_sinc(omega, x) * values) * steps[0] for x in places])
    inner -= places / math.pi * steps[0]  # the trapezoid's half of the first term
    normal = np.array([math.erf(x / math.sqrt(2)) for x in places])
    variance = alpha * rate ** (alpha - 2) / (2 * c) if rate else math.inf
    return float(np.max(np.abs(inner - normal)) / 2), variance, 1 - float(inner[-1])


def _sinc(omega, x):
    return x * np.sinc(omega * x / math.pi)


def underdamped_error(alpha: float, eta: float) -> float:
    """E cos(1.5 x) less that of N(0, 1)."""
    algorithm = levymc.underdamped(lambda x: -x * x / 2, eta, alpha)
    burn, kept = math.ceil(6 / eta), math.ceil(8 / eta)

    def chain(key):
        key_x, key_v, key_run = jax.random.split(key, 3)
        state = algorithm.init(jax.random.normal(key_x, dtype=jnp.float32))
        momentum = stable.sample(key_v, alpha, scale=0.5**0.5, dtype=jnp.float32)

        def body(state, step_key):
            state, _ = algorithm.step(step_key, state)
            return state, jnp.cos(FREQUENCY * state.position)

        keys = jax.random.split(key_run, burn + kept)
        return jnp.mean(jax.lax.scan(body, state._replace(momentum=momentum), keys)[1][burn:])

    found = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), CHAINS))
    return float(np.mean(np.asarray(found, np.float64))) - math.exp(-(FREQUENCY**2) / 2)


def passages(make, dimension: int, is_rotated: bool) -> float:
    """Changes of mode in 1000 steps, of the best of three step sizes."""
    direction = np.ones(dimension) / math.sqrt(dimension) if is_rotated else np.eye(dimension)[0]
    means = np.stack([-3 * direction, 3 * direction])
    target = targets.gaussian_mixture(np.array([0.5, 0.5]), means, np.ones(2))
    num_chains, num_steps = 32, 500

    def chain(algorithm, key, start):
        def body(state, step_key):
            state, _ = algorithm.step(step_key, state)
            return state, state.position @ jnp.asarray(direction, jnp.float32) > 0

        keys = jax.random.split(key, num_steps)
        sides = jax.lax.scan(body, algorithm.init(start), keys)[1]
        return jnp.sum(sides[1:] != sides[:-1])

    starts = jnp.asarray(means[np.arange(num_chains) % 2], jnp.float32)
    found = []
    for eta in (0.3, 1.0, 3.0):
        run = jax.jit(jax.vmap(functools.partial(chain, make(target, eta))))
        found.append(float(jnp.mean(run(jax.random.split(jax.random.key(1), num_chains), starts))))
    return max(found) * 1000 / num_steps


def returns(algorithm, densities: int) -> float:
    """Visits of |x| > 10 of a Cauchy law, one chain's mean in 1000 densities."""
    num_chains, num_steps = 256, 2000

    def chain(key):
        def body(state, step_key):
            state, _ = algorithm.step(step_key, state)
            return state, jnp.abs(state.position) > 10

        keys = jax.random.split(key, num_steps)
        is_far = jax.lax.scan(body, algorithm.init(jnp.float32(0.0)), keys)[1]
        return jnp.sum(is_far[1:] & ~is_far[:-1])

    visits = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(2), num_chains))
    return float(jnp.mean(visits)) * 1000 / (num_steps * densities)


def main() -> None:
    print("tempered noise with b̂ on N(0, 1), α = 1.7: distance, variance, P(|X| > 4)")
    balanced = (1.7 / (2 * float(drifts.gradient_coefficient(1.7)))) ** (1 / 0.3)
    for rate in (0.0, 0.1, 0.3, balanced, 1.0, 3.0):
        distance, variance, tail = tempered_law(1.7, rate)
        print(f"  rate {rate:.3f}: {distance:.4f}, {variance:.3f}, {tail:.2e}")
    print("underdamped on N(0, 1): error of E cos(1.5 x)")
    for alpha in (2.0, 1.7, 1.3):
        steps = np.array([1.0, 0.7, 0.5])
        errors = np.array([underdamped_error(alpha, eta) for eta in steps])
        slope = np.polyfit(np.log(steps), np.log(np.abs(errors)), 1)[0]
        print(f"  α = {alpha}: {errors.round(4).tolist()}, slope {slope:.2f}", flush=True)
    print("the proximal sampler on a Cauchy law: visits of |x| > 10 in 1000 densities")
    cauchy = lambda x: -jnp.log1p(x * x)  # noqa: E731
    for scale in (2.0, 8.0, 32.0):
        walk = returns(levymc.levy_walk(cauchy, 2 * scale, 1.0), 1)
        tries = [returns(levymc.proximal(cauchy, scale, num_tries=n), n) for n in (1, 4)]
        fresh = returns(levymc.proximal(cauchy, scale, num_tries=4, upper_bound=0.0), 4)
        print(f"  η = {scale}: levy_walk {walk:.1f}, 1 and 4 tries {tries}, bound {fresh:.1f}")
    print("mafla, α = 1.5: passages in 1000 steps, independent and isotropic noise")
    for dimension in (2,):
        for is_rotated in (False, True):
            counts = [
                passages(
                    lambda f, eta, noise=noise: levymc.mafla(f, eta, 1.5, noise=noise),
                    dimension,
                    is_rotated,
                )
                for noise in (noises.independent(), noises.isotropic())
            ]
            where = "diagonal" if is_rotated else "axis"
            print(f"  {dimension}-D, {where}: {counts[0]:.1f}, {counts[1]:.1f}", flush=True)


if __name__ == "__main__":
    main()
