"""Whether the kernels in C++ work here."""

import pytest

from levymc import _native


def has_native() -> bool:
    try:
        _native.load()
    except _native.BuildError:
        return False
    return True


needs_native = pytest.mark.skipif(not has_native(), reason="no C++ compiler, and no library")
