"""A PyMC model with two modes: each chain of pm.sample sees only one, levymc weighs both.

A source is at an unknown place along a road.  A detector beside the road hears how far away it
is, but not on which side; a second one, much noisier, favours the right.  Run it with

    python examples/pymc_two_modes.py [--out pymc_two_modes.png] [--small]
"""

import argparse
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import levymc


def source_on_a_road():
    with pm.Model(coords={"reading": range(5)}) as model:
        place = pm.Normal("place", 0.0, 10.0)  # metres, to the right of the first detector
        noise = pm.HalfNormal("noise", 1.0)
        distance = pm.Deterministic("distance", pm.math.abs(place))
        heard = np.array([4.6, 5.3, 4.9, 5.4, 4.8])
        pm.Normal("near", distance, noise, observed=heard, dims="reading")
        pm.Normal("far", place, 8.0, observed=3.0)
    return model


def main():
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--out", type=Path, default=Path("pymc_two_modes.png"))
    given.add_argument("--small", action="store_true", help="few evaluations, for a quick look")
    options = given.parse_args()

    model = source_on_a_road()
    fit = levymc.interop.pymc.sample(
        model, jax.random.key(0), budget=6000 if options.small else 40_000
    )
    print(fit.report)
    draws = fit.to_arviz()  # for ArviZ, with the model's names, dims and coords
    right = float((draws.posterior["place"] > 0).mean())
    print(f"The source is on the right with probability {right:.3f}.")

    picture(fit, right).savefig(options.out, dpi=150)
    print(f"wrote {options.out}")


def picture(fit, right):
    figure, (paths, law) = plt.subplots(
        1, 2, figsize=(9, 3.2), sharey=True, width_ratios=[2, 1], layout="constrained"
    )
    place = fit.posterior["place"]
    for number, chain in enumerate(place[:3]):
        paths.plot(chain[:300], ".", markersize=3, label=f"chain {number}")
    paths.set(xlabel="draw", ylabel="place [m]", title="Chains cross from side to side")
    paths.legend(loc="center", ncols=3, markerscale=3, frameon=False)
    law.hist(place.ravel(), bins=200, density=True, orientation="horizontal", color="0.6")
    law.text(0.95, 0.62, f"right {right:.0%}", transform=law.transAxes, ha="right")
    law.text(0.95, 0.34, f"left {1 - right:.0%}", transform=law.transAxes, ha="right")
    law.set(xlabel="density", title="Posterior of the place")
    for axes in (paths, law):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
