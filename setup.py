"""Compile the native kernels when the package is installed, where that is possible.

Everything else is in pyproject.toml.  An install never fails for want of a compiler, or of JAX, in
whose folder the headers are: the kernels are then compiled at their first use, or done without.
"""

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCES = Path(__file__).parent / "src"


class BuildWithKernels(build_py):
    """Puts the library beside its source: in the build, or for an editable install in the tree."""

    def run(self) -> None:
        super().run()
        root = SOURCES if self.editable_mode else Path(self.build_lib)
        try:
            build_kernels(root / "levymc" / "native")
        except Exception as error:  # whatever it is, the package works without
            print(f"levymc: the kernels are left for their first use: {error}", file=sys.stderr)


def build_kernels(folder: Path) -> None:
    sys.path.insert(0, str(SOURCES))
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from levymc.native import build_library

    print(f"levymc: compiled {build_library(folder)}", file=sys.stderr)


setup(cmdclass={"build_py": BuildWithKernels})
