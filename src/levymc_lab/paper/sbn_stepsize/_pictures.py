"""What a trained network has learnt, as pictures, for the experiment `sbn_stepsize`."""

import base64
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc_lab.framework import Table, Tables
from levymc_lab.framework.style import new_figure, note

from ._data import SIDE

GAP = 2  # pixels between two pictures
COLUMNS = 10


def draw_model(config: Any, tables: Tables) -> Figure:
    figure = new_figure(11, 3.4)
    places = figure.subplot_mosaic("WI;WD")
    weights, pairs, fantasies = (places[letter] for letter in "WID")
    if "pictures" in tables:
        table = tables["pictures"]
        _show(weights, _greys(table, "weights"), "RdBu_r")
        both = np.concatenate([_greys(table, "originals"), _greys(table, "reconstructions")])
        _show(pairs, both, "gray_r")
        _show(fantasies, _greys(table, "fantasies"), "gray_r")
    weights.set_title("Weights")
    note(weights, "blue: off; red: on")
    pairs.set_title("Test images, and below what the network makes of them")
    fantasies.set_title("Drawn from the model")
    for axes in (weights, pairs, fantasies):
        axes.set_axis_off()
        axes.set_anchor("N")
    return figure


def _greys(table: Table, what: str) -> np.ndarray:
    texts = table.where(what=what)["pixels"].tolist()
    return np.stack([np.frombuffer(base64.b64decode(text), np.uint8) for text in texts])


def _show(axes: Axes, pictures: np.ndarray, colours: str) -> None:
    """Side by side, some in a row, a gap between them."""
    blank = 128 if colours == "RdBu_r" else 0
    rows = -(-len(pictures) // COLUMNS)
    cell = SIDE + GAP
    sheet = np.full((rows * cell + GAP, COLUMNS * cell + GAP), blank, np.uint8)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, COLUMNS)
        top, left = row * cell + GAP, column * cell + GAP
        sheet[top : top + SIDE, left : left + SIDE] = picture.reshape(SIDE, SIDE)
    axes.imshow(sheet, cmap=colours, vmin=0, vmax=255, interpolation="nearest")
