"""The Python of README.md, as it stands."""

import re
from pathlib import Path

text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
namespace: dict[str, object] = {}
for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
    exec(block, namespace)
assert namespace["result"].modes.num_modes == 2
