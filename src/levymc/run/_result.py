r"""What a run leaves: draws, weights, and what to know of them; on a screen, and in a file."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._trees import named_leaves
from levymc._workdir import atomic_bytes, parse_json
from levymc.algorithms import Info

from ._arviz import Names, checked_dims, to_groups
from ._engine import Draws

FORMAT = 3
MOST_ROWS = 12
LEVELS = (0.05, 0.5, 0.95)
COLUMNS = ("", "5 %", "median", "95 %")
LARGEST_DRIFT_ERROR = 1e-3
AT_ONCE = 64 * 2**20  # bytes of draws that are worked on at once
# What ArviZ calls the statistics of ours and of BlackJAX's samplers.
STATISTICS = {
    "step_size": "step_size",
    "acceptance_rate": "acceptance_rate",
    "is_divergent": "diverging",
    "energy": "energy",
    "logdensity": "lp",
    "num_integration_steps": "n_steps",
    "num_trajectory_expansions": "tree_depth",
    "largest_jump": "largest_jump",
    "taming": "taming",
    "is_outside": "outside",
    "drift_error": "drift_error",
    "jumps_tried": "jumps_tried",
    "jumps_accepted": "jumps_accepted",
    "is_above_bound": "above_bound",
}


@dataclass(frozen=True, eq=False)
class Result:
    """Draws of a run; every array has the axes (chain, draw, …).

    positions: pytree of draws, or of what was kept of them; None where nothing was.  Those of a
        large store are read when they are indexed, or by np.asarray.
    weights: the step sizes η_n, the weights of the paper's estimator; ones for other algorithms.
    info: the algorithm's diagnostics, draw by draw.
    is_interrupted: the run was stopped before its end.
    observed: what the observers of the run say, by name; every array has the chains first.
    steps: the number of the step that each draw was kept at, counted after the burn-in.
    algorithm: the name of what made it.  is_exact: whether its target is φ at every step size;
        None: not known.
    """

    positions: Any
    weights: np.ndarray
    info: Any
    is_interrupted: bool = False
    observed: dict[str, Any] = field(default_factory=dict)
    steps: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    algorithm: str = ""
    is_exact: bool | None = None

    @property
    def num_chains(self) -> int:
        return self.weights.shape[0]

    @property
    def num_draws(self) -> int:
        return self.weights.shape[1]

    @property
    def num_divergent(self) -> int:
        """Draws with a step that diverged: one of ours left the finite numbers or the support."""
        found = self.statistics.get("diverging")
        return 0 if found is None else int(np.count_nonzero(found))

    @property
    def num_outside(self) -> int:
        """Those of them that would have ended where log φ is not finite."""
        found = self.statistics.get("outside")
        return 0 if found is None else int(np.count_nonzero(found))

    @property
    def num_inexact(self) -> int:
        """Draws with a step whose drift was in doubt: its estimated error was more than 1e-3."""
        found = self.statistics.get("drift_error")
        # Not "more than": what is NaN is in doubt.
        return 0 if found is None else int(np.count_nonzero(~(found <= LARGEST_DRIFT_ERROR)))

    @property
    def num_above_bound(self) -> int:
        """Draws with a step that met log φ above the bound given for it: their law is not φ."""
        found = self.statistics.get("above_bound")
        return 0 if found is None else int(np.count_nonzero(found))

    @property
    def statistics(self) -> dict[str, np.ndarray]:
        """One number per draw and chain, by the names that ArviZ knows."""
        fields = self.info if isinstance(self.info, dict) else _fields(self.info)
        shape = (self.num_chains, self.num_draws)
        return {
            STATISTICS[name]: np.asarray(value)
            for name, value in fields.items()
            if name in STATISTICS and getattr(value, "shape", None) == shape
        }

    def expectation(self, g: Callable[[Any], Any]) -> Any:
        r"""The weighted estimator of E g(X), a value for each chain:

        .. math:: ν_N(g) = \sum_n η_n g(X_n) \Big/ \sum_n η_n .

        The sums are made in float64; what they give has the type of g(X), or that of the weights
        where they are wider.

        References: [simsekli2017], section 3.1.
        """
        self._need_draws()
        return self._weighted_mean(jax.jit(jax.vmap(jax.vmap(g))))

    def mean(self) -> Any:
        """The weighted mean of the positions, for each chain."""
        self._need_draws()
        return self._weighted_mean(lambda positions: positions)  # JAX may not know float64

    def _weighted_mean(self, of_all: Callable[[Any], Any]) -> Any:
        """That of a function of all draws."""
        # Of a million draws, sums in float32 would keep one digit, and those in float16 overflow.
        total = self.weights.sum(axis=1, keepdims=True, dtype=np.float64)
        sums = values = None
        for part, values in self._by_parts(of_all):
            share = np.asarray(self.weights[:, part], np.float64) / total
            own = jax.tree.map(partial(_weighted_sum, share), values)
            sums = own if sums is None else jax.tree.map(np.add, sums, own)
        return jax.tree.map(lambda leaf, like: leaf.astype(self._type_of(like)), sums, values)

    def _type_of(self, leaf: Any) -> Any:
        """Of a mean: that of what it is the mean of, or of the weights if they are wider."""
        widest: Any = self.weights.dtype
        if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            return jnp.promote_types(leaf.dtype, widest)
        is_wider = jnp.issubdtype(leaf.dtype, jnp.floating) and (
            leaf.dtype.itemsize >= widest.itemsize
        )
        return leaf.dtype if is_wider else widest

    def to_arviz(
        self,
        *,
        dims: Names | None = None,
        coords: Mapping[str, Any] | None = None,
        logdensity_fn: Callable[[Any], Any] | None = None,
    ) -> Any:
        """The draws for ArviZ: InferenceData, or a DataTree from version 1 on.

        The statistics of the steps are in `sample_stats` by the names that ArviZ knows, with the
        `weights` of draws where they differ.  ArviZ's own summaries do not use those:
        `levymc.diagnostics.summary` does.

        Args:
            dims: by the name of a variable, the names of its axes after those of chains and draws.
            coords: by the name of an axis, the labels along it.  Those of draws are the steps that
                they were kept at, unless given here.
            logdensity_fn: log φ, to have it at every draw as `lp`; it is there by itself where the
                sampler keeps it, as those of `levymc.auto` do.

        Raises:
            ValueError: names that do not fit the variables; no draws were made or kept.
            ImportError: without ArviZ.
        """
        self._need_draws()
        posterior = {name: np.asarray(leaf) for name, leaf in named_leaves(self.positions).items()}
        stats = dict(self.statistics)
        if np.ptp(self.weights):
            stats["weights"] = self.weights
        if logdensity_fn is not None and "lp" not in stats:
            of_all = jax.jit(jax.vmap(jax.vmap(logdensity_fn)))
            parts = [np.asarray(values) for _, values in self._by_parts(of_all)]
            stats["lp"] = np.concatenate(parts, axis=1)
        places = {"draw": self.steps} if len(self.steps) == self.num_draws else {}
        groups = {"posterior": posterior, "sample_stats": stats}
        names = checked_dims(posterior, dims or {})
        return to_groups(groups, names, {**places, **(coords or {})}, self.attributes)

    @property
    def attributes(self) -> dict[str, Any]:
        """What a file of another library may say of the draws."""
        known = {"inference_library": "levymc", "algorithm": self.algorithm}
        return {name: value for name, value in known.items() if value}

    def save(self, path: str | Path) -> None:
        """Write all of it to one file, whole or not at all; `levymc.load` reads it."""
        save(self, Path(path))

    def _need_positions(self) -> None:
        if self.positions is None:
            raise ValueError(
                "The positions of this run were not kept, as `observe` was given. "
                "Observe what you need, or run with keep=True."
            )

    def _need_draws(self) -> None:
        self._need_positions()
        if not self.num_draws:
            raise ValueError(
                f"A result must have draws, got {self.num_chains} chains × 0 draws, as of a run "
                "that was stopped before its first. Run it longer."
            )

    def _by_parts(self, of_all: Callable[[Any], Any]) -> Iterator[tuple[slice, Any]]:
        """A function of all draws, some at a time, and which those are."""
        for part in self._parts():
            yield part, of_all(jax.tree.map(lambda leaf, part=part: leaf[:, part], self.positions))

    def _parts(self) -> list[slice]:
        """Slices of the draws, of which one at a time is worked on."""
        leaves = jax.tree.leaves(self.positions)
        size = sum(leaf.nbytes for leaf in leaves) // max(self.num_draws, 1)
        step = max(1, AT_ONCE // max(size, 1))
        count = self.num_draws
        return [slice(begin, min(begin + step, count)) for begin in range(0, count, step)]

    def _rows(self) -> list[tuple[str, ...]]:
        """Weighted quantiles of the first coordinates, all chains together: they always exist."""
        table: list[tuple[str, ...]] = []
        if not self.num_draws:
            return table
        weights = np.ravel(self.weights).astype(np.float64)  # which are summed up
        for name, leaf in named_leaves(self.positions).items():
            for index in np.ndindex(leaf.shape[2:]):
                if len(table) == MOST_ROWS:
                    return [*table, ("…", "", "", "")]
                label = name + (f"[{', '.join(map(str, index))}]" if index else "")
                values = np.ravel(leaf[(slice(None), slice(None), *index)])
                levels = np.quantile(values, LEVELS, weights=weights, method="inverted_cdf")
                table.append((label, *(f"{level:.4g}" for level in levels)))
        return table

    def __rich__(self) -> Any:
        from rich.table import Table

        shown = Table(title=repr(self), title_justify="left")
        for number, column in enumerate(COLUMNS):
            shown.add_column(column, justify="left" if number == 0 else "right")
        for cells in self._rows():
            shown.add_row(*cells)
        return shown

    def _repr_html_(self) -> str:
        def line(cells: tuple[str, ...], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line(cells, "td") for cells in self._rows())
        caption = f"<caption>{escape(repr(self))}</caption>"
        return f"<table>{caption}{line(COLUMNS, 'th')}{body}</table>"

    def __repr__(self) -> str:
        named = named_leaves(self.positions)
        shapes = {name: leaf.shape[2:] for name, leaf in named.items()}
        by = f" by {self.algorithm}" if self.algorithm else ""
        text = f"Result({self.num_chains} chains × {self.num_draws} draws of {shapes}{by}"
        if any(not isinstance(leaf, np.ndarray) for leaf in named.values()):
            text += ", on disk"
        if self.observed:
            text += f", observed {', '.join(self.observed)}"
        if self.num_divergent:
            # A trajectory that diverged is no mere refusal, exact though its sampler is.
            is_refusal = self.is_exact and "energy" not in self.statistics
            text += f", {self.num_divergent} {'refused' if is_refusal else 'divergent'}"
        if self.num_inexact:
            text += f", {self.num_inexact} with a drift in doubt"
        if self.num_above_bound:
            text += f", {self.num_above_bound} with log φ above its bound"
        return text + (", interrupted)" if self.is_interrupted else ")")


def _weighted_sum(share: np.ndarray, leaf: Any) -> np.ndarray:
    """Over the draws, in float64, or complex numbers of two of them."""
    wide = np.complex128 if jnp.issubdtype(leaf.dtype, jnp.complexfloating) else np.float64
    return np.einsum("cd,cd...->c...", share, np.asarray(leaf, wide))


def _fields(info: Any) -> dict[str, Any]:
    return info._asdict() if hasattr(info, "_asdict") else {}


@dataclass(frozen=True)
class Constant:
    """A leaf that is the same in every draw, as a step size may be: it is written once."""

    value: Any


def placed(tree: Any, varying: tuple[bool, ...] | None = None, values: Any = ()) -> Any:
    """The tree with the number of each leaf in its place; where it is fixed, a `Constant`."""
    leaves, structure = jax.tree.flatten(tree)
    numbers, constants = iter(range(len(leaves))), iter(values)
    return jax.tree.unflatten(
        structure,
        [
            next(numbers) if varies else Constant(np.asarray(next(constants)))
            for varies in varying or (True,) * len(leaves)
        ],
    )


def from_leaves(
    leaves: list[Any],
    structure: Draws,
    counts: tuple[int, int],
    *,
    is_interrupted: bool,
    observed: dict[str, Any],
    steps: np.ndarray,
    algorithm: str = "",
    is_exact: bool | None = None,
) -> Result:
    """The result of leaves with axes (chain, draw, …); `structure` holds their numbers.

    `counts` are those of chains and draws, to which constants are spread.
    """

    def filled(place: Any) -> Any:
        if isinstance(place, Constant):
            return np.broadcast_to(place.value, (*counts, *place.value.shape))
        return leaves[place]

    positions, info = jax.tree.map(filled, tuple(structure))
    weights = np.asarray(info.step_size) if isinstance(info, Info) else np.ones(counts)
    return Result(positions, weights, info, is_interrupted, observed, steps, algorithm, is_exact)


def to_json(tree: Any) -> Any:
    """Dictionaries, lists, tuples and named tuples of numbers; other nodes are refused."""
    if isinstance(tree, int):
        return tree
    if tree is None:
        return {"kind": "none"}
    if isinstance(tree, Constant):
        value = tree.value if np.all(np.isfinite(tree.value)) else tree.value.astype(str)
        return {"kind": "constant", "value": value.tolist(), "dtype": str(tree.value.dtype)}
    if isinstance(tree, dict):
        if not all(isinstance(key, str) for key in tree):
            raise TypeError(
                "A store needs positions whose dictionaries have strings as keys, got "
                f"{list(tree)}. Rename them."
            )
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
        if np.dtype(node["dtype"]).kind not in "biuf":
            raise ValueError(f"a constant has the type {node['dtype']}")
        return Constant(np.asarray(node["value"], node["dtype"]))
    if kind in ("list", "tuple"):
        values = [from_json(value) for value in items]
        return values if kind == "list" else tuple(values)
    named = {key: from_json(value) for key, value in items.items()}
    return Info(**named) if kind == "info" else named


FIELDS = ("positions", "weights", "info", "observed", "steps")
FACTS = ("is_interrupted", "algorithm", "is_exact")


def save(result: Result, path: Path) -> None:
    """Write a result; no pickle, and checksums are the archive's own."""
    from ._programs import in_bits  # as JAX's export takes time to import

    tree = {name: getattr(result, name) for name in FIELDS}
    header = {
        "format": FORMAT,
        **{name: getattr(result, name) for name in FACTS},
        "structure": to_json(placed(tree)),
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    arrays = {}
    for place, leaf in enumerate(jax.tree.leaves(tree)):
        suffix, bits = in_bits(np.asarray(leaf))
        arrays[f"{place}{suffix}"] = bits
    stream = io.BytesIO()
    np.savez(stream, levymc=text, **arrays)  # type: ignore[arg-type]
    atomic_bytes(path, stream.getvalue())


def load_saved(path: Path) -> Result:
    """Read a result, or report what is wrong with the file."""
    from ._programs import from_bits

    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            header = parse_json(bytes(archive["levymc"]))
            names = [name.split(".") for name in archive.files if name != "levymc"]
            found = {int(name[0]): from_bits(archive[".".join(name)], *name[1:]) for name in names}
            leaves = [found[place] for place in range(len(found))]
        if header["format"] == FORMAT:
            structure = from_json(header["structure"])
            tree: dict[str, Any] = jax.tree.map(lambda place: leaves[place], structure)
            return Result(**tree, **{name: header[name] for name in FACTS})
    except Exception as error:  # a damaged archive may make its reader stumble in any way
        raise ValueError(
            f"{path} is no result of levymc, or a damaged one ({type(error).__name__}). "
            "Give a file of Result.save, or the folder of a store."
        ) from error
    raise ValueError(
        f"{path} has format {header['format']}; this version reads {FORMAT}. "
        "Use the version of levymc that wrote it."
    )
