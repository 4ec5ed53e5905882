"""Every script of examples/ runs at small size, and leaves a picture where it is told to."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = sorted((REPOSITORY / "examples").glob("*.py"))
QUICK = ("optax_network",)  # the others take longer, in new processes: most compile levymc.auto
PNG = b"\x89PNG\r\n"


def imported(script):
    """The packages that a script imports."""
    names = set()
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def run(script, *arguments, cwd):
    source = os.pathsep.join([str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        # As a user would have it: precision is single unless the script says otherwise.
        env=os.environ | {"PYTHONPATH": source, "MPLBACKEND": "Agg", "JAX_ENABLE_X64": "0"},
    )


def test_there_are_examples():
    assert {script.stem for script in SCRIPTS} > set(QUICK)
    assert len(SCRIPTS) >= 8


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            script, id=script.stem, marks=[] if script.stem in QUICK else pytest.mark.nightly
        )
        for script in SCRIPTS
    ],
)
def test_an_example_leaves_its_picture_and_nothing_else(script, tmp_path):
    missing = [name for name in imported(script) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(sorted(missing))}")
    picture = tmp_path / "elsewhere" / "picture.png"
    picture.parent.mkdir()
    done = run(script, "--small", "--out", str(picture), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(PNG)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [picture]
    assert str(picture) in done.stdout
