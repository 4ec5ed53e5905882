"""Damage to stores, at random from a seed: what strangers, editors and failing disks do to files.

`corruptions(store, rng, n)` damages a copy of a store in n ways, one at a time.  `fault(...)` tells
what is wrong with how a reader takes it: nothing, if it refuses with an error of levymc that has a
remedy, or returns the draws bit for bit.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from levymc.run._integrity import StoreError, sealed

VALUES = (None, True, -1, 0, 1, 2**70, 1e308, "", "x", "../../x", [], [[]], {}, {"kind": "dict"})


class Corruption(NamedTuple):
    """A damaged copy of a store.

    is_forged: checksums were made to fit, so that other draws may well come out.
    """

    folder: Path
    what: str
    is_forged: bool


def corruptions(store: Path, rng: np.random.Generator, n: int) -> Iterator[Corruption]:
    """Damage a copy of a store in n ways; each copy is whole again before the next."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        shutil.copytree(store, folder)
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        for _ in range(n):
            file = files[rng.integers(len(files))]
            name = str(rng.choice([*DAMAGES, *(FORGERIES if rng.random() < 0.3 else ())]))
            is_forged = name in FORGERIES
            detail = (FORGERIES | DAMAGES)[name](folder if is_forged else file, rng)
            where = "levymc" if is_forged else file.relative_to(folder)
            yield Corruption(folder, f"{name} {where} {detail or ''}".strip(), is_forged)
            _restore(store, folder)


def _restore(store: Path, folder: Path) -> None:
    """Make a copy whole again; only what differs is written."""
    names = {file.relative_to(store) for file in store.rglob("*")}
    for path in sorted(folder.rglob("*"), reverse=True):
        name = path.relative_to(folder)
        if name not in names or path.is_dir() != (store / name).is_dir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in sorted(names):
        source, target = store / name, folder / name
        if source.is_dir():
            target.mkdir(exist_ok=True)
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)


def fault(
    damage: Corruption, read: Callable[[Path], Any], expected: Any, strict: bool = False
) -> str | None:
    """What is wrong with how `read` takes a damaged store; None if it is right.

    Args:
        expected: the result of the whole store.
        strict: refuse also what leaves every draw as it was.
    """
    try:
        found = read(damage.folder)
    except StoreError as error:
        text = str(error)
        has_remedy = text.rstrip().endswith(".") and ". " in text and len(text) < 1000
        return None if has_remedy else f"{damage.what}: no remedy in {text!r}"
    except Exception as error:
        if damage.is_forged and isinstance(error, UserWarning):  # of versions, where it is an error
            return None
        return f"{damage.what}: {type(error).__name__}: {str(error)[:200]}"
    if damage.is_forged or (same_bytes(found, expected) and not strict):
        return None
    return f"{damage.what}: read as if nothing were wrong"


def same_bytes(one: Any, other: Any) -> bool:
    """Whether two results agree in every bit."""
    trees = [(r.positions, r.weights, r.info, r.observed, r.steps) for r in (one, other)]
    left, right = (list(map(np.asarray, jax.tree.leaves(tree))) for tree in trees)
    return len(left) == len(right) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(left, right, strict=True)
    )


# What happens to a file.


def _place(content: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(max(len(content), 1)))


def flip_bit(file: Path, rng: np.random.Generator) -> str:
    content = bytearray(file.read_bytes())
    if content:
        place, bit = _place(content, rng), int(rng.integers(8))
        content[place] ^= 1 << bit
        file.write_bytes(content)
        return f"bit {bit} of byte {place}"
    file.write_bytes(b"x")
    return "from empty"


def change_byte(file: Path, rng: np.random.Generator) -> str:
    content = bytearray(file.read_bytes()) or bytearray(1)
    place = _place(content, rng)
    content[place] = (content[place] + int(rng.integers(1, 256))) % 256
    file.write_bytes(content)
    return f"byte {place}"


def change_digit(file: Path, rng: np.random.Generator) -> str:
    """As a person would, by whom JSON stays well-formed."""
    content = bytearray(file.read_bytes())
    digits = [place for place, byte in enumerate(content) if 48 <= byte < 58]
    if not digits:
        return change_byte(file, rng)
    place = digits[rng.integers(len(digits))]
    content[place] = 48 + (content[place] - 48 + int(rng.integers(1, 10))) % 10
    file.write_bytes(content)
    return f"byte {place}"


def insert_byte(file: Path, rng: np.random.Generator) -> str:
    content = file.read_bytes()
    place = int(rng.integers(len(content) + 1))
    file.write_bytes(content[:place] + bytes([int(rng.integers(256))]) + content[place:])
    return f"before byte {place}"


def erase_block(file: Path, rng: np.random.Generator) -> str:
    """As a bad sector does."""
    content = bytearray(file.read_bytes())
    place = _place(content, rng)
    content[place : place + 512] = bytes(len(content[place : place + 512]))
    file.write_bytes(content)
    return f"from byte {place}"


def truncate(file: Path, rng: np.random.Generator) -> str:
    size = _place(file.read_bytes(), rng)
    os.truncate(file, size)
    return f"to {size}"


def lengthen(file: Path, rng: np.random.Generator) -> str:
    count = int(rng.integers(1, 100))
    file.write_bytes(file.read_bytes() + rng.bytes(count))
    return f"by {count}"


def remove(file: Path, rng: np.random.Generator) -> None:
    file.unlink()


def make_folder(file: Path, rng: np.random.Generator) -> None:
    file.unlink()
    file.mkdir()


def make_noise(file: Path, rng: np.random.Generator) -> None:
    file.write_bytes(rng.bytes(max(file.stat().st_size, 1)))


def exchange(file: Path, rng: np.random.Generator) -> str:
    """Put the content of another file into its place."""
    others = sorted(other for other in file.parents[1].rglob("*") if other.is_file())
    other = others[rng.integers(len(others))]
    file.write_bytes(other.read_bytes())
    return f"for {other.name}"


def edit_json(file: Path, rng: np.random.Generator) -> str:
    """Change, remove or add a value anywhere in an object; other files get noise."""
    if file.suffix != ".json":
        return change_byte(file, rng)
    content = json.loads(file.read_text())
    detail = edit(content, rng)
    file.write_text(json.dumps(content, indent=1) + "\n")
    return detail


def edit(content: Any, rng: np.random.Generator) -> str:
    """Change something at a random depth, in place."""
    places = list(_places(content))
    container, key = places[rng.integers(len(places))]
    if rng.random() < 0.2:
        del container[key]
        return f"without {key}"
    container[key] = VALUES[rng.integers(len(VALUES))]
    return f"{key} = {container[key]!r}"


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    keys = content if isinstance(content, dict) else range(len(content))
    for key in list(keys):
        yield content, key
        if isinstance(content[key], dict | list):
            yield from _places(content[key])


DAMAGES = {
    function.__name__: function
    for function in (
        flip_bit,
        change_byte,
        change_digit,
        insert_byte,
        erase_block,
        truncate,
        lengthen,
        remove,
        make_folder,
        make_noise,
        exchange,
        edit_json,
    )
}


# What somebody does who knows how it is checked.


def forge_progress(folder: Path, rng: np.random.Generator) -> str:
    file = folder / "levymc/progress.json"
    content = json.loads(file.read_text())
    del content["checksum"]
    detail = edit(content, rng)
    file.write_bytes(sealed(content))
    return detail


def forge_run(folder: Path, rng: np.random.Generator) -> str:
    file = folder / "levymc/run.json"
    content = json.loads(file.read_text())
    detail = edit(content, rng)
    file.write_text(json.dumps(content, indent=1) + "\n")
    progress = json.loads((folder / "levymc/progress.json").read_text())
    del progress["checksum"]
    progress["run"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (folder / "levymc/progress.json").write_bytes(sealed(progress))
    return detail


FORGERIES = {function.__name__: function for function in (forge_progress, forge_run)}
