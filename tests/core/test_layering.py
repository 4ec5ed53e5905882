"""The shape of the source tree: layers, private modules, length of files."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(SOURCE.glob("levymc*/**/*.py"))
MAX_LINES = 800

# From the bottom: a layer may import itself and those before it.
LAYERS = (
    "_checks",
    "_workdir",
    "_trees",
    "_settled",
    "_room",
    "_cache",
    "_native",
    "stable",
    "riesz",
    "drifts",
    "integrators",
    "schedules",
    "noises",
    "algorithms",
    "run",
    "distributed",
    "diagnostics",
    "targets",
    "theory",
    "models",
    "adapt",
    "interop",
    "__main__",
    # levymc_lab
    "_interrupt",
    "worker",
    "data",
    "framework",
    "paper",
    "contest",
    "factorize",
    "report",
    "launch",
    "cli",
)
LIBRARY = LAYERS[: LAYERS.index("__main__")]
PRESENTATION = {"matplotlib", "rich", "typer", "jinja2"}
ALLOWED_PRESENTATION = {"run": {"rich"}}  # for the progress bar
PACKAGES = ("levymc", "levymc_lab")
# Private to the project, not to a package.
SHARED = {"_cache", "_checks", "_interrupt", "_native", "_room", "_settled", "_trees", "_workdir"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(source: str, module: str, *, is_package: bool) -> list[tuple[int, str]]:
    """Line and absolute dotted name of everything imported, at any depth of the source."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").split(".") if node.module else []
            if node.level:
                package = module.split(".") if is_package else module.split(".")[:-1]
                base = package[: len(package) - node.level + 1] + base
            found += [(node.lineno, ".".join([*base, alias.name])) for alias in node.names]
    return found


def layer_of(name: str) -> str | None:
    """`levymc.stable._law` → `stable`; `levymc` itself → None."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else None


def layer_fault(importer: str | None, imported: str) -> str | None:
    """What is wrong with a module of the layer `importer` importing the name `imported`."""
    if importer is None:  # levymc/__init__.py gathers everything
        return None
    top = imported.split(".")[0]
    if importer == "__main__":  # the door to the laboratory
        return None
    if top in PACKAGES:
        layer = layer_of(imported)
        if layer not in LAYERS and importer not in LIBRARY:  # the laboratory is a user like others
            return None
        if layer not in LAYERS:
            return f"{imported} is in no layer: import from the layer that defines it"
        if LAYERS.index(layer) > LAYERS.index(importer):
            return f"{importer} lies below {layer}"
    elif (
        importer in LIBRARY
        and top in PRESENTATION
        and top not in ALLOWED_PRESENTATION.get(importer, set())
    ):
        return f"the library does without {top}"
    return None


def privacy_fault(module: str, imported: str) -> str | None:
    """A name with a leading underscore belongs to the package that holds it."""
    parts = imported.split(".")
    for depth, part in enumerate(parts):
        is_private = part.startswith("_") and not part.startswith("__") and part not in SHARED
        if is_private and parts[0] in PACKAGES:
            owner = ".".join(parts[:depth])
            if module != owner and not module.startswith(owner + "."):
                return f"{part} is private to {owner}"
    return None


def faults(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Everything wrong with the imports of one module, a line each."""
    layer = layer_of(module)
    if layer is not None and layer not in LAYERS:
        return [f"{module} is in no layer: add {layer} to LAYERS"]
    found = []
    for line, imported in imported_names(source, module, is_package=is_package):
        for fault in (layer_fault(layer, imported), privacy_fault(module, imported)):
            if fault is not None:
                found.append(f"{module}:{line} imports {imported}: {fault}")
    return found


def test_there_are_modules_to_check():
    assert MODULES


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_respect_layers_and_privacy(path):
    is_package = path.name == "__init__.py"
    assert faults(path.read_text("utf-8"), module_name(path), is_package=is_package) == []


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_file_is_short(path):
    assert len(path.read_text("utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("levymc.drifts.euler", "from levymc.stable import logpdf"),
        ("levymc.drifts.euler", "import levymc.riesz as riesz"),
        ("levymc.drifts.euler", "from . import _types\nfrom ._types import Drift"),
        ("levymc.drifts.euler", "from .._checks import check_alpha"),
        ("levymc.stable._law", "from levymc._checks import check_alpha"),
        ("levymc.stable._law", "from __future__ import annotations\nimport numpy as np"),
        ("levymc.run.sample", "from rich.progress import Progress"),
        ("levymc_lab.report.figures", "import matplotlib.pyplot as plt"),
        ("levymc", "from levymc import stable"),
    ],
)
def test_good_imports_pass(module, source):
    assert faults(source, module) == []


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("levymc.stable._law", "from levymc.riesz import coefficients", "lies below riesz"),
        ("levymc.stable._law", "from levymc import drifts", "lies below drifts"),
        ("levymc.stable._law", "import levymc.drifts as d", "lies below drifts"),
        ("levymc.stable._law", "from ..run import sample", "lies below run"),
        ("levymc.stable._law", "from .. import run", "lies below run"),
        ("levymc.stable._law", "def f():\n    import levymc_lab.cli", "lies below cli"),
        ("levymc.stable._law", "import levymc", "in no layer"),
        ("levymc.stable._law", "from levymc import fla", "in no layer"),
        ("levymc.utils", "import numpy", "add utils to LAYERS"),
        ("levymc.stable._law", "import matplotlib.pyplot", "without matplotlib"),
        ("levymc.drifts.a", "from rich import print", "without rich"),
        ("levymc.run.sample", "import typer", "without typer"),
        ("levymc.drifts.a", "from levymc.stable._law import logpdf", "private to levymc.stable"),
        ("levymc.drifts.a", "from levymc.stable import _law", "private to levymc.stable"),
        ("levymc.drifts.a", "from ..stable import _law", "private to levymc.stable"),
        ("levymc", "from levymc.stable._law import logpdf", "private to levymc.stable"),
    ],
)
def test_bad_imports_are_found(module, source, message):
    (fault,) = faults(source, module)
    assert message in fault


def test_relative_imports_of_a_package_start_at_the_package():
    source = "from ._law import logpdf"
    assert imported_names(source, "levymc.stable", is_package=True) == [
        (1, "levymc.stable._law.logpdf")
    ]
    assert faults(source, "levymc.stable", is_package=True) == []
