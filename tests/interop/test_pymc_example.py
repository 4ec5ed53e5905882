"""The example for users of PyMC, at small size."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pymc")
pytest.importorskip("matplotlib")

EXAMPLE = Path(__file__).parents[2] / "examples" / "pymc_two_modes.py"


# PyTensor warns where it has no BLAS, which this model is not slow without.
@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")
def test_example_weighs_both_sides_and_leaves_a_picture(tmp_path, monkeypatch, capsys):
    """At r metres the right side has probability 1/(1 + exp(-12 r/128)), 0.614 for the r heard.

    At least 400 effective draws of the side have a standard error of 0.024: beyond 0.15 false
    alarms are rarer than 1e-8.  That one of the sides is missed is seen.
    """
    picture = tmp_path / "picture.png"
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--small", "--out", str(picture)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out.splitlines()[-2]
    right = float(said.split()[-1].rstrip("."))
    assert abs(right - 1 / (1 + np.exp(-12 * 5 / 128))) < 0.15
    assert picture.read_bytes().startswith(b"\x89PNG")
