"""No public name disappears, or appears, unnoticed."""

import importlib
import sys
import textwrap

import pytest
from tests.core.public_api import LISTED, public_names

UPDATE = "Then write the list anew: python -m tests.core.public_api"
ROOT = {
    "levymc/__init__.py": """
        import os as _os
        from levymc import parts as parts
        from levymc.parts import make as make
    """,
    "levymc/_hidden.py": "def helper(): ...",
    "levymc/parts/__init__.py": """
        from ._made import LIMIT as LIMIT
        from ._made import Made as Made
        from ._made import make as make
        from ._made import unsaid
    """,
    "levymc/parts/_made.py": """
        LIMIT = 3
        class Made:
            size: int
            _secret: int
            def grow(self, by, /, *, how): ...
            def _shrink(self): ...
        def make(size, *, colour): ...
        def unsaid(): ...
    """,
    "levymc/plain.py": """
        import numpy as np
        from levymc.parts import make
        def fold(x): ...
        def _fold(x): ...
    """,
}


@pytest.fixture
def small_tree(tmp_path):
    for name, text in ROOT.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
    return tmp_path


def listed() -> list[str]:
    return LISTED.read_text("utf-8").split("\n")[:-1]


def test_no_public_name_has_disappeared():
    gone = sorted(set(listed()) - set(public_names()))
    assert not gone, (
        f"Users' programs break without {', '.join(gone)}: keep it, or write its end into "
        f"CHANGELOG.md. {UPDATE}"
    )


def test_every_public_name_is_listed():
    new = sorted(set(public_names()) - set(listed()))
    assert not new, f"Public now, and to be kept: {', '.join(new)}. {UPDATE}"


def test_what_is_listed_is_there_after_an_import():
    importlib.import_module("levymc")
    for name in listed():
        module, _, leaf = name.rpartition(".")
        is_optional = module == "levymc.interop"  # a library each, which need not be there
        if module in sys.modules and not is_optional and not leaf.endswith(")"):
            assert hasattr(sys.modules[module], leaf), name


def test_names_parameters_and_members_are_found(small_tree):
    assert public_names(small_tree) == [
        "levymc",
        "levymc.make",
        "levymc.parts",
        "levymc.parts.LIMIT",
        "levymc.parts.Made",
        "levymc.parts.Made.grow",
        "levymc.parts.Made.grow(how)",
        "levymc.parts.Made.size",
        "levymc.parts.make",
        "levymc.parts.make(colour)",
        "levymc.parts.make(size)",
        "levymc.plain",
        "levymc.plain.fold",
        "levymc.plain.fold(x)",
    ]
