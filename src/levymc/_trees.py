"""Names of a pytree's leaves, the same wherever draws are shown, stored or handed to ArviZ."""

from typing import Any

import jax


def leaf_names(tree: Any) -> list[str]:
    """A name for each leaf, in JAX's order: its keys with dots between; x where there are none.

    Examples:
        >>> leaf_names({"a": 1.0, "b": (2.0, 3.0)}), leaf_names(1.0)
        (['a', 'b.0', 'b.1'], ['x'])
    """
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    return [jax.tree_util.keystr(path, simple=True, separator=".") or "x" for path in paths]


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves by these names."""
    return dict(zip(leaf_names(tree), jax.tree.leaves(tree), strict=True))
