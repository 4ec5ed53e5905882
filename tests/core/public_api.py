"""The names that users of levymc may have written down, read from its source.

A module is public if no part of its path begins with an underscore; its names are what it defines
and what it re-exports (``from ._x import name as name``).  With a function go its parameters, with
a class its methods and fields.  Nothing is imported: what needs an optional library is listed, too.

``python -m tests.core.public_api`` writes the list anew.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
LISTED = Path(__file__).parent / "data" / "public_api.txt"


def public_names(source: Path = SOURCE) -> list[str]:
    """Every public name, sorted: ``levymc.run.sample``, ``levymc.run.sample(thin)``."""
    return sorted({name for path in source.glob("levymc/**/*.py") for name in _names(path, source)})


def _names(path: Path, source: Path) -> Iterator[str]:
    module = _module_at(path, source)
    if _is_private(module):
        return
    yield module
    for node in ast.parse(path.read_text("utf-8")).body:
        yield from _defined(node, module)
        if isinstance(node, ast.ImportFrom):
            yield from _exported(node, module, path, source)


def _module_at(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_private(dotted: str) -> bool:
    return any(part.startswith("_") for part in dotted.split("."))


def _exported(node: ast.ImportFrom, module: str, path: Path, source: Path) -> Iterator[str]:
    """What is re-exported; from a private module, whose names have no other home, in full."""
    home = _home_of(node, module, is_package=path.name == "__init__.py")
    for alias in node.names:
        if alias.asname != alias.name:
            continue
        yield f"{module}.{alias.name}"
        if _is_private(home):
            for inner in ast.parse(_file_of(home, source).read_text("utf-8")).body:
                if getattr(inner, "name", None) == alias.name:
                    yield from _defined(inner, module)


def _home_of(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    parts = module.split(".")
    base = parts[: len(parts) - node.level + is_package] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def _file_of(module: str, source: Path) -> Path:
    path = source.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _defined(node: ast.stmt, owner: str) -> Iterator[str]:
    for name in _targets(node):
        if name.startswith("_"):
            continue
        yield f"{owner}.{name}"
        if isinstance(node, ast.FunctionDef):
            yield from (f"{owner}.{name}({argument})" for argument in _parameters(node))
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                yield from _defined(member, f"{owner}.{name}")


def _targets(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [target.id for target in targets if isinstance(target, ast.Name)]
    return []


def _parameters(node: ast.FunctionDef) -> list[str]:
    """Those that can be given by name."""
    names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
    return [name for name in names if name != "self" and not name.startswith("_")]


if __name__ == "__main__":
    LISTED.write_text("\n".join([*public_names(), ""]), "utf-8")
