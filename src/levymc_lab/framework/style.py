"""One look for all figures: colours that colour-blind readers tell apart, and little else."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, GREY, FAINT = "#2b2b2b", "#6b6b6b", "#e4e4e4"

# Okabe and Ito's palette, without its yellow, which is too faint for lines on white.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK = "#CC79A7", "#56B4E9", "#000000"
CYCLE = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK)

# A sampler has its colour in every figure.
SAMPLERS = {
    "ULA": GREY,
    "FLA": VERMILLION,
    "FLMC": BLUE,
    "MAFLA": GREEN,
    "Lévy walk": PURPLE,
    "levymc.auto": ORANGE,
}

STYLE: Any = {
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
    "axes.prop_cycle": cycler(color=CYCLE),
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.1,
    "figure.constrained_layout.w_pad": 0.08,
    # The same picture gives the same bytes, and looks the same whatever fonts the reader has.
    "svg.hashsalt": "levymc",
    "svg.fonttype": "path",
}


@contextmanager
def styled() -> Iterator[None]:
    """The style while figures are drawn and saved; the framework puts `figures` inside."""
    with mpl.rc_context(STYLE):
        yield


def new_figure(width: float | int = 11, height: float | int = 4) -> Figure:
    """A figure of that many inches, outside pyplot's books."""
    return Figure(figsize=(width, height))


def note(axes: Axes, text: str) -> None:
    """A small remark at the right of the title."""
    axes.set_title(text, loc="right", color=GREY, fontsize=9, fontweight="normal")


def alpha_colour(alpha: float) -> Any:
    """From dark (α = 2, Gaussian) to bright (α = 1, Cauchy); ordered also without hue."""
    return mpl.colormaps["plasma"](0.8 * (2.0 - alpha) ** 0.85)


def rendered(figure: Figure, suffix: str) -> bytes:
    """As PNG or SVG, without the date and version, which would change from run to run."""
    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None}, "png": {"Software": None}}[suffix]
    figure.savefig(buffer, format=suffix, dpi=150, metadata=metadata)
    return buffer.getvalue()
