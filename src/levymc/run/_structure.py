"""The structure of draws as JSON, for a store or a saved result, and back."""

from typing import Any

import jax
import numpy as np

from levymc.algorithms import Info

from ._step import Constant, Draws


def numbered(tree: Any) -> Any:
    """The tree with its leaves' numbers in their place; constants stay and have none."""
    leaves, structure = jax.tree.flatten(tree)
    numbers = iter(range(len(leaves)))
    return jax.tree.unflatten(
        structure, [leaf if isinstance(leaf, Constant) else next(numbers) for leaf in leaves]
    )


def to_json(tree: Any) -> Any:
    """Dictionaries, lists, tuples and named tuples of numbers; other nodes are refused."""
    if isinstance(tree, int):
        return tree
    if tree is None:
        return {"kind": "none"}
    if isinstance(tree, Constant):
        return {"kind": "constant", "value": tree.value.item(), "dtype": str(tree.value.dtype)}
    if isinstance(tree, dict):
        if not all(isinstance(key, str) for key in tree):
            raise TypeError("A store needs positions whose dictionaries have strings as keys.")
        return {"kind": "dict", "items": {key: to_json(value) for key, value in tree.items()}}
    if hasattr(tree, "_fields"):
        items = {key: to_json(value) for key, value in tree._asdict().items()}
        return {"kind": "info" if isinstance(tree, Info) else "dict", "items": items}
    if isinstance(tree, list | tuple):
        kind = "list" if isinstance(tree, list) else "tuple"
        return {"kind": kind, "items": [to_json(value) for value in tree]}
    raise TypeError(
        f"A store keeps positions of dictionaries, lists and tuples, got {type(tree).__name__}. "
        "Convert the position to one of these."
    )


def from_json(node: Any) -> Any:
    """The tree again; a named tuple that is not levymc's comes back as a dictionary."""
    if isinstance(node, int):
        return node
    kind, items = node["kind"], node.get("items")
    if kind == "none":
        return None
    if kind == "constant":
        return Constant(np.asarray(node["value"], node["dtype"]))
    if kind in ("list", "tuple"):
        values = [from_json(value) for value in items]
        return values if kind == "list" else tuple(values)
    named = {key: from_json(value) for key, value in items.items()}
    return Info(**named) if kind == "info" else named


def draws_to_json(structure: Draws) -> Any:
    return {"positions": to_json(structure.positions), "info": to_json(structure.info)}


def draws_from_json(node: Any) -> Draws:
    return Draws(from_json(node["positions"]), from_json(node["info"]))
