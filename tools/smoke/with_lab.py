"""The command, by its name."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import levymc

command = Path(sys.executable).with_name("levymc")
told = subprocess.check_output([command, "--version"], text=True)
assert told == f"levymc {levymc.__version__}\n" == f"levymc {version('levymc')}\n"
assert "double-well-bias" in subprocess.check_output([command, "list"], text=True)
subprocess.run([command, "demo"], check=True)
