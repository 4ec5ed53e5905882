"""A disk that loses power: what a run does to files is recorded, and replayed up to any moment.

`recorded(root)` notes every change below a folder, in the order in which the system is asked for
it.  `after(operations)` are the files that a process leaves that is killed: all that was asked for.
`after_power_loss(operations, ...)` are those of a machine without power: what was synchronised, and
of the rest some and some not.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

Tree = dict[str, bytes | None]  # the content of files by path; None for a folder


class Operation(NamedTuple):
    """make, create, rename, remove and their folder's sync; write and sync of a file's content."""

    kind: str
    path: str
    content: bytes = b""
    target: str = ""

    @property
    def parent(self) -> str:
        return str(Path(self.path).parent)


NAMES = ("make", "create", "rename", "remove")  # change the names in a folder


class Recorder:
    """Notes changes below a folder; nothing outside of it is looked at."""

    def __init__(self, root: Path) -> None:
        self.root, self.operations = root, list[Operation]()
        self.synchronised: dict[str, bytes] = {}

    def inside(self, path: object) -> str | None:
        try:
            return str(Path(str(path)).absolute().relative_to(self.root))
        except ValueError:
            return None

    def note(self, kind: str, path: str, content: bytes = b"", target: str = "") -> None:
        self.operations.append(Operation(kind, path, content, target))

    def note_sync(self, path: str) -> None:
        if (self.root / path).is_dir():
            self.note("sync folder", path)
            return
        content = (self.root / path).read_bytes()
        if self.synchronised.get(path) != content:
            self.note_write(path, content)
        self.note("sync", path)
        self.synchronised[path] = content

    def note_write(self, path: str, content: bytes) -> None:
        self.note("create", path)
        self.note("write", path, content)

    def note_rename(self, source: str, target: str) -> None:
        is_file = (self.root / source).is_file()
        if is_file and source not in self.synchronised:
            self.note_write(source, (self.root / source).read_bytes())
        self.note("rename", source, target=target)
        moved = {p: c for p, c in self.synchronised.items() if p == source or f"{source}/" in p}
        for path, content in moved.items():
            del self.synchronised[path]
            self.synchronised[path.replace(source, target, 1)] = content


@contextmanager
def recorded(root: Path) -> Iterator[list[Operation]]:
    """Record what is asked of the system, which is the one place that all changes go through."""
    recorder = Recorder(root)
    with pytest.MonkeyPatch.context() as patch:

        def watch(name: str, note: Callable[..., None], *, is_after: bool) -> None:
            ask = getattr(os, name)

            def asked(path, *arguments, **options):
                where = f"/proc/self/fd/{path}" if isinstance(path, int) else path
                inside = recorder.inside(os.readlink(where) if isinstance(path, int) else where)
                others = [recorder.inside(one) for one in arguments if isinstance(one, str | Path)]
                if is_after:
                    found = ask(path, *arguments, **options)
                if inside is not None:
                    note(inside, *others)
                return found if is_after else ask(path, *arguments, **options)

            patch.setattr(os, name, asked)

        watch("fsync", recorder.note_sync, is_after=False)
        watch("mkdir", lambda path: recorder.note("make", path), is_after=True)
        for name in ("replace", "rename"):
            watch(name, recorder.note_rename, is_after=False)
        for name in ("unlink", "rmdir"):
            watch(name, lambda path: recorder.note("remove", path), is_after=True)
        yield recorder.operations


def tree_of(root: Path) -> Tree:
    """The files that there are."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


def after(operations: list[Operation], *, torn: int | None = None) -> Tree:
    """What a killed process leaves: all that it asked for; of its last write `torn` bytes."""
    tree: Tree = {}
    for operation in operations:
        _apply(tree, operation)
    if torn is not None and operations and operations[-1].kind == "write":
        tree[operations[-1].path] = operations[-1].content[:torn]
    return tree


def safe_from(operations: list[Operation]) -> list[int]:
    """For each operation, after how many of them what it did is safe: one more than all, if never.

    Names are once their folder is synchronised, and contents once their file is.
    """
    coming: dict[tuple[str, str], int] = {}
    found = []
    for number in range(len(operations) - 1, -1, -1):
        operation = operations[number]
        if operation.kind.startswith("sync"):
            coming[operation.kind, operation.path] = number + 1
        needed = ("sync", operation.path)
        if operation.kind in NAMES:
            needed = ("sync folder", operation.parent)
        found.append(coming.get(needed, len(operations) + 1))
    return found[::-1]


def after_power_loss(
    operations: list[Operation], safe: list[int], is_lucky: Callable[[], bool], torn: float
) -> Tree:
    """What a machine without power leaves: what was synchronised.

    Of names that were changed in a folder since that was synchronised, those there are for which
    `is_lucky`; of contents, the first part.
    """
    kept = []
    for operation, moment in zip(operations, safe, strict=False):
        is_safe, content = moment <= len(operations), operation.content
        if operation.kind == "write" and not is_safe:
            operation = operation._replace(content=content[: int(torn * len(content))])
        if is_safe or operation.kind not in NAMES or is_lucky():
            kept.append(operation)
    return after(kept)


def _apply(tree: Tree, operation: Operation) -> None:
    """Change names or contents; what lies in a folder that was lost, is lost."""
    path, parent = operation.path, operation.parent
    is_reachable = parent == "." or tree.get(parent, b"") is None
    if operation.kind == "make" and is_reachable:
        tree[path] = None
    elif operation.kind == "create" and is_reachable:
        tree[path] = b""
    elif operation.kind == "write" and path in tree:
        tree[path] = operation.content
    elif operation.kind == "remove":
        tree.pop(path, None)
    elif operation.kind == "rename" and path in tree:
        for old in [one for one in tree if one == path or one.startswith(f"{path}/")]:
            tree[operation.target + old.removeprefix(path)] = tree.pop(old)


def lay_out(tree: Tree, root: Path, laid: Tree) -> None:
    """Make the files below a folder those of a tree, where `laid` are; only what differs."""
    for path in sorted((one for one in laid if one not in tree), reverse=True):
        place = root / path
        if place.is_dir():
            shutil.rmtree(place)
        elif place.exists():
            place.unlink()
    for path in sorted(tree):
        if path in laid and laid[path] == tree[path]:
            continue
        if tree[path] is None:
            (root / path).mkdir(exist_ok=True)
        else:
            (root / path).write_bytes(tree[path] or b"")
    laid.clear()
    laid.update(tree)
