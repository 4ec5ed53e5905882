"""The command, by its name."""

import subprocess
import sys
from pathlib import Path

command = Path(sys.executable).with_name("levymc")
assert "double-well-bias" in subprocess.check_output([command, "list"], text=True)
subprocess.run([command, "demo"], check=True)
