"""The Python in README.md runs as it stands."""

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def test_examples_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed
    assert "nan" not in printed
