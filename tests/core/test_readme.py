"""The Python in README.md runs as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_examples_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed
    assert "nan" not in printed


@pytest.mark.parametrize("library", ["numpyro", "pymc"])
def test_make_smoke_makes_the_two_line_calls_as_written(library):
    """In an empty environment, with the extra alone."""
    (block,) = re.findall(r"```text\n(fit = .*?)```", README, flags=re.DOTALL)
    lines = [line.split("#")[0].strip() for line in block.splitlines()]
    calls = [line for line in lines if f"interop.{library}." in line]
    assert calls
    wanted = "\n".join([*calls, lines[-1]])
    assert wanted in (ROOT / "tools" / "smoke" / f"with_{library}.py").read_text("utf-8")
