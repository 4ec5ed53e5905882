"""Compile the native kernels when the package is built, where that is possible.

Everything else is in pyproject.toml.  With a C++ compiler, wheels are for this platform and hold
the compiled library; without one they are pure, and the models run by JAX alone.
"""

import os
import platform
import sys
from pathlib import Path
from types import ModuleType

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SOURCES = Path(__file__).parent / "src"


class WithKernels(Distribution):
    """A package that is pure until its kernels have been compiled."""

    has_kernels = False

    def has_ext_modules(self) -> bool:
        return self.has_kernels


class BuildWithKernels(build_py):
    """Puts the library beside its source: in the build, or for an editable install in the tree."""

    def run(self) -> None:
        super().run()
        root = SOURCES if self.editable_mode else Path(self.build_lib)
        folder = root / "levymc" / "models"
        for old in folder.glob("kernels-*.so*") if not self.editable_mode else ():
            old.unlink()  # of an earlier build into the same folder
        try:
            build_kernels(folder)
        except Exception as error:  # whatever it is, the package works without
            print(f"levymc is built without its kernels in C++: {error}", file=sys.stderr)
        else:
            self.distribution.has_kernels = True


class PlatformWheel(bdist_wheel):
    """Tags a wheel with kernels as one for this platform and, as ctypes loads them, any Python."""

    def run(self) -> None:
        self.run_command("build")  # only then is it known whether there are kernels
        self.root_is_pure = not self.distribution.has_ext_modules()
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        *_, system = super().get_tag()
        return "py3", "none", system.replace("universal2", platform.machine())


def build_kernels(folder: Path) -> None:
    # The package itself would import all that it needs at run time, which a build does not have.
    package = ModuleType("levymc")
    package.__path__ = [str(SOURCES / "levymc")]
    sys.modules["levymc"] = package
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from levymc._native import build_library

    print(f"levymc: compiled {build_library(folder)}", file=sys.stderr)


setup(
    distclass=WithKernels,
    cmdclass={"build_py": BuildWithKernels, "bdist_wheel": PlatformWheel},
)
