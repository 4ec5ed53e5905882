"""Without NumPyro: levymc works, and says what is missing."""

import subprocess
import sys

SCRIPT = """
import sys
import levymc
assert "numpyro" not in sys.modules and "funsor" not in sys.modules
sys.modules["numpyro"] = None  # as if it were not there
try:
    levymc.interop.numpyro
except ImportError as error:
    print(error)
try:
    levymc.interop.nothing
except AttributeError as error:
    print(error)
"""


def test_a_missing_library_is_named_with_its_extra():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    missing, unknown = done.stdout.splitlines()
    assert "pip install 'levymc[numpyro]'" in missing
    assert "has no attribute 'nothing'" in unknown
