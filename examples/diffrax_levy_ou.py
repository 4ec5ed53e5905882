"""diffrax with Lévy noise: the stable Ornstein–Uhlenbeck process dX = -λX dt + dL.

Its law is known, SαS with scale ((1 - exp(-αλt))/(αλ))^{1/α}, and the picture shows both.

    python examples/diffrax_levy_ou.py [--out diffrax_levy_ou.png] [--small]
"""

import argparse
from pathlib import Path

import diffrax
import jax
import jax.numpy as jnp
import lineax
import matplotlib.pyplot as plt
import numpy as np

import levymc
from levymc.interop.diffrax import LevyMotion

RATE, END = 1.0, 5.0


def solve(alpha, key, num_paths, num_steps):
    """Times and paths from 0, by Euler's method in steps of one cell of the motion's grid."""
    motion = LevyMotion(0.0, END, alpha, key, (num_paths,), num_steps=num_steps)
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(lambda t, x, args: -RATE * x),
        diffrax.ControlTerm(lambda t, x, args: lineax.IdentityLinearOperator(x), motion),
    )
    solution = diffrax.diffeqsolve(
        terms,
        diffrax.Euler(),
        t0=0.0,
        t1=END,
        dt0=END / num_steps,
        y0=jnp.zeros(num_paths),
        saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, END, 201)),
    )
    return solution.ts, solution.ys


def scale_at(alpha, time):
    return ((1 - np.exp(-alpha * RATE * time)) / (alpha * RATE)) ** (1 / alpha)


def draw(results, out):
    figure, (paths, tails) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    levels = np.geomspace(0.1, 60, 200)
    for color, (alpha, (times, values)) in zip(("C0", "C3"), results.items(), strict=True):
        paths.plot(times, values[:, :4], color=color, lw=0.8, label=[f"α = {alpha}", *[None] * 3])
        ends = np.abs(np.asarray(values[-1]))
        share = [np.mean(ends > level) for level in levels]
        tails.loglog(levels, share, color=color, lw=3, alpha=0.4, label=f"diffrax, α = {alpha}")
        exact = 2 * levymc.stable.sf(levels / scale_at(alpha, END), alpha)
        tails.loglog(levels, exact, color=color, ls="--", label=f"closed form, α = {alpha}")
    paths.set(xlabel="t", ylabel="X(t)", title="Four paths each")
    tails.set(xlabel="x", ylabel=f"P(|X({END:g})| > x)", title="The law at the end")
    tails.set_ylim(1 / len(ends), 1.2)
    paths.legend()
    tails.legend()
    figure.savefig(out, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("diffrax_levy_ou.png"))
    parser.add_argument("--small", action="store_true", help="few paths, for a quick look")
    options = parser.parse_args()
    num_paths, num_steps = (200, 100) if options.small else (50_000, 500)

    results = {}
    for seed, alpha in enumerate((1.5, 2.0)):
        results[alpha] = solve(alpha, jax.random.key(seed), num_paths, num_steps)
        median = np.median(np.abs(results[alpha][1][-1]))
        exact = scale_at(alpha, END) * levymc.stable.ppf(0.75, alpha)
        print(f"α = {alpha}: median of |X({END:g})| {median:.3f}, exactly {exact:.3f}")
    draw(results, options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
