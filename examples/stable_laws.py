"""Draw the symmetric α-stable laws: their densities, their tails, and the motions they drive.

The picture follows Figure 1 of Şimşekli (2017), "Fractional Langevin Monte Carlo".
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import ColorType

from levymc import stable

DENSITY_ALPHAS = (2.0, 1.8, 1.5, 1.2, 1.0)
MOTION_ALPHAS = (2.0, 1.7, 1.3)
NUM_STEPS = 3000
SEED = 4

INK, FAINT = "#2b2b2b", "#e4e4e4"
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": "#9a9a9a",
    "axes.labelcolor": INK,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "xtick.color": "#6b6b6b",
    "ytick.color": "#6b6b6b",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
}


def colour(alpha: float) -> ColorType:
    """From dark (α = 2, Brownian) to bright (α = 1, Cauchy); ordered also without hue."""
    return mpl.colormaps["plasma"](0.8 * (2.0 - alpha) ** 0.85)


def name(alpha: float) -> str:
    law = {2.0: " (Gaussian)", 1.0: " (Cauchy)"}.get(alpha, "")
    return f"α = {alpha:g}{law}"


def note(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="right", color="#6b6b6b", fontsize=9, fontweight="normal")


def draw_densities(axes: Axes) -> None:
    x = jnp.linspace(-6.0, 6.0, 601)
    for alpha in DENSITY_ALPHAS:
        axes.plot(x, stable.pdf(x, alpha), color=colour(alpha), linewidth=1.8, label=name(alpha))
    axes.set(title="Density", xlabel="x", xlim=(-6, 6), ylim=(0, 0.335))
    axes.set_xticks(range(-6, 7, 2))
    axes.legend(frameon=False, loc="upper left", handlelength=1.3, labelcolor="linecolor")


def draw_tails(axes: Axes) -> None:
    x = jnp.geomspace(0.3, 1000.0, 400)
    for alpha in DENSITY_ALPHAS:
        axes.loglog(x, stable.pdf(x, alpha), color=colour(alpha), linewidth=1.8)
        if alpha < 2.0:
            axes.annotate(
                f"$x^{{-{1 + alpha:g}}}$",
                (float(x[-1]), float(stable.pdf(x[-1], alpha))),
                xytext=(5, 0),
                textcoords="offset points",
                color=colour(alpha),
                va="center",
                fontsize=11,
                annotation_clip=False,
            )
    axes.annotate("$e^{-x^2/4}$", (9.9, 2e-9), color=colour(2.0), va="center", fontsize=11)
    axes.set(title="Right tail", xlabel="x", xlim=(0.3, 1000), ylim=(3e-10, 1))
    note(axes, "both axes logarithmic")
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])


def draw_motion(axes: Axes, alpha: float) -> None:
    """One path; what it covers within a single step by a jump is drawn thin."""
    times = jnp.linspace(0.0, 1.0, NUM_STEPS + 1)
    path = np.asarray(stable.levy_motion(jax.random.key(SEED), alpha, times))
    jump = np.abs(np.diff(path)) > 0.25
    axes.plot(times, path, color=colour(alpha), linewidth=0.6, alpha=0.45)
    pieces = np.insert(path, np.flatnonzero(jump) + 1, np.nan)
    piece_times = np.insert(np.asarray(times), np.flatnonzero(jump) + 1, np.nan)
    axes.plot(piece_times, pieces, color=colour(alpha), linewidth=1.4)
    kind = "Brownian path" if alpha == 2.0 else "Lévy path"
    axes.set(title=f"{kind}, α = {alpha:g}", xlabel="time", xlim=(0, 1))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
    note(axes, f"largest step {np.abs(np.diff(path)).max():.2f}")


def draw() -> Figure:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 7.4), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1), hspace=0.04)
        densities, tails = top.subplots(1, 2)
        draw_densities(densities)
        draw_tails(tails)
        densities.set_ylabel("probability density")
        motions = bottom.subplots(1, len(MOTION_ALPHAS), sharey=True, gridspec_kw={"wspace": 0.08})
        for axes, alpha in zip(motions, MOTION_ALPHAS, strict=True):
            draw_motion(axes, alpha)
        motions[0].set_ylabel("position")
        return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("stable_laws.png"), help="PNG, PDF or SVG")
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    draw().savefig(out, dpi=170, bbox_inches="tight", pad_inches=0.15)
    print(f"Wrote {out}")


if __name__ == "__main__":
    main()
