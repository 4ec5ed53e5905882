"""What the experiment `model_selection` makes of its cells: tables, checks and the verdict.

A size has an evidence with two errors.  The random one is a standard error over chains.  The
systematic one bounds what chains cannot tell: half of what lies between those that are cooled
from the prior and those that begin in a mode, or by how much more their second halves give, and the
error of the rule between rungs.  A size is taken for better than another if it leads by more than
the t quantile of the random errors, pooled over sizes, and both systematic ones.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from levymc_lab.framework import Cell, CellResult, Check, Table, Tables, Verdict

from . import _movielens as ml
from ._evidence_by_gibbs import NUM_STARTS
from ._evidence_by_gradients import FULL, MINIBATCH, STARTS
from ._shared import failures, groups

if TYPE_CHECKING:
    from .model_selection import Selection

SURE = 3.0  # standard errors, of the regression
RATE = 1e-3  # at which a size that is not the best one is taken for it, where chains are normal
GOOD = 0.002  # of RMSE: what is as near to the least is as good, as in `movielens-posterior`
COSTS = (
    "it asks how well the prior foretells all ratings, and every column of N(0, 1) costs it; the "
    "error, how well the posterior does once nine tenths are known"
)
NUMBERS = (
    "value",
    "standard_error",
    "trapezoid",
    "discretisation_error",
    "stepping_stones",
    "stepping_stones_error",
    "step_bias",
    "step_bias_error",
    "change",
)
ERRORS = (
    "its standard error over chains, and what may be systematic: the error of the rule, and half "
    "of what is between both starts, or what second halves of chains give more than the first"
)
CAPTIONS = {
    "known": "A regression whose log evidence is known: thermodynamic integration with its "
    "standard error, the plain trapezoid, what the rule between rungs may be off by, stepping "
    "stones, how far halving SGLD's steps moved it, and by how much more the second halves of the "
    "chains give than the first.",
    "rank": f"Ratings: the log evidence of each rank, {ERRORS}; the numbers behind them; and RMSE "
    "and mean log density of ratings that were held out.",
    "control": "Pictures that a network of two hidden units made: the log evidence of each number "
    f"of units, {ERRORS}; and what chains that were cooled from the prior, and those from a good "
    "mode, give.",
    "units": f"Small pictures: the log evidence of each number of hidden units, {ERRORS}; and what "
    "chains that were cooled from the prior, and those from a good mode, give.  SGLD's bias, as "
    "halving its steps foretells it, is taken off.",
    "starts": "Networks with few units: the numbers behind their evidence, from each start.",
    "held": "Pictures that were held out: their mean log-likelihood after SGLD with each number of "
    "hidden units, in nats, over all training seeds, with the standard error over pictures; and "
    "how far it is behind the best, with the error of that: over pictures, which all sizes share, "
    "and half the range of the seeds.",
    "curves": "E_β[log L] with its standard error, along β.",
}


def tables_of(
    config: "Selection", cells: Sequence[Cell], results: Mapping[str, CellResult]
) -> Tables:
    done = [cell for cell in cells if cell.id in results]
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in CAPTIONS}
    for cell in done:
        if cell["kind"] == "held":
            continue
        result = {name: _plain(value) for name, value in results[cell.id].items()}
        if cell["kind"] in ("control", "units"):
            paths = [_of_start(result, start) for start in STARTS]
            rows[cell["kind"]].append(_both(config, cell, result, paths))
            rows["starts"] += [
                {**cell.parameters, "start": start, **_numbers(path)}
                for start, path in zip(STARTS, paths, strict=True)
            ]
        else:
            paths = [result]
            rows[cell["kind"]].append(_one(cell, result))
        names = [f"{cell.id}-{start}" for start in STARTS] if len(paths) > 1 else [cell.id]
        rows["curves"] += [
            {"cell": name, **_curve(path)} for name, path in zip(names, paths, strict=True)
        ]
    rows["held"] = _held([cell for cell in done if cell["kind"] == "held"], results)
    return {kind: Table.stack(CAPTIONS[kind], part) for kind, part in rows.items() if part}


def _plain(value: Any) -> Any:
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def _of_start(result: Mapping[str, Any], start: str) -> dict[str, Any]:
    prefix = f"{start}_"
    return {
        name.removeprefix(prefix): value
        for name, value in result.items()
        if name.startswith(prefix)
    }


def _numbers(path: Mapping[str, Any]) -> dict[str, Any]:
    return {name: path[name] for name in (*NUMBERS, "warnings")}


def _curve(path: Mapping[str, Any]) -> dict[str, np.ndarray]:
    names = {"beta": "betas", "mean": "means", "error": "standard_errors"}
    return {name: np.asarray(path[place]) for name, place in names.items()}


def unbiased(path: Mapping[str, Any]) -> tuple[float, float]:
    """The evidence less SGLD's bias, as halving its steps foretells it, and its standard error.

    2 T(η/2) − T(η) has the variance 4 V(η/2) + V(η), of which that of the bias holds one of each.
    """
    if not math.isfinite(path["step_bias"]):
        return path["value"], path["standard_error"]
    error = math.hypot(math.sqrt(3) * path["standard_error"], path["step_bias_error"])
    return path["value"] - path["step_bias"], error


def _rule(path: Mapping[str, Any]) -> float:
    """What is known of the error of the rule: nothing, where the number of rungs is odd."""
    off = path["discretisation_error"]
    return float(off) if math.isfinite(off) else 0.0


def _one(cell: Cell, result: Mapping[str, Any]) -> dict[str, Any]:
    if cell["kind"] == "known":
        return {"way": cell["way"], "truth": result["truth"], **_numbers(result)}
    evidence, error = unbiased(result)
    return {
        "size": cell["size"],
        "evidence": evidence,
        "random": error,
        "systematic": _rule(result) + abs(result["change"]),
        "freedom": NUM_STARTS - 1,
        "rmse": result["rmse"],
        "log_predictive": result["log_predictive"],
        "source": result["source"],
        **_numbers(result),
    }


def _both(
    config: "Selection", cell: Cell, result: Mapping[str, Any], paths: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    (low, low_error), (high, high_error) = map(unbiased, paths)
    change = abs(sum(path["change"] for path in paths)) / len(paths)
    return {
        "size": cell["size"],
        "way": cell["way"],
        "evidence": (low + high) / 2,
        "random": math.hypot(low_error, high_error) / 2,
        "systematic": max(abs(high - low) / 2, change) + max(map(_rule, paths)),
        "freedom": len(paths) * (config.num_chains - 1),
        "from_prior": low,
        "from_mode": high,
        "height": result["height"],
        "source": result["source"],
    }


def _held(cells: Sequence[Cell], results: Mapping[str, CellResult]) -> list[dict[str, Any]]:
    """A row for each size, of the seeds that all sizes have."""
    sizes = dict.fromkeys(cell["size"] for cell in cells)
    seeds_of = {size: {cell["seed"] for cell in cells if cell["size"] == size} for size in sizes}
    seeds = sorted(set.intersection(*seeds_of.values())) if sizes else []
    if not seeds:
        return []
    found = {(cell["size"], cell["seed"]): results[cell.id] for cell in cells}
    each = {
        size: np.array([found[size, seed]["loglikelihoods"] for seed in seeds]) for size in sizes
    }
    best = max(each, key=lambda size: each[size].mean())
    return [
        {
            "size": size,
            "loglikelihood": values.mean(),
            "error": _error(values.mean(axis=0)),
            "behind": (each[best] - values).mean(),
            "behind_error": math.hypot(
                _error((each[best] - values).mean(axis=0)),
                float(np.ptp((each[best] - values).mean(axis=1))) / 2,
            ),
            "seeds": len(seeds),
            "is_exact": bool(found[size, seeds[0]]["is_exact"]),
        }
        for size, values in each.items()
    ]


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def pooled(errors: Any) -> np.ndarray:
    """Standard errors with few degrees of freedom: their root mean square, or their own if larger.

    With the quantile for all degrees of freedom, this is right where they estimate one number, and
    errs to the safe side where they do not.
    """
    own = np.asarray(errors, float)
    return np.maximum(own, math.sqrt(float(np.mean(own**2))))


def quantile(freedom: int, num_tests: int) -> float:
    """Of the t law, beyond which one of so many tests is at `RATE`."""
    return float(-special.stdtrit(freedom, RATE / num_tests))


@dataclass(frozen=True)
class Choice:
    """What has the most evidence, and which rival it leads by the least beyond its margin.

    margin: the t quantile times the random error of the difference, and both systematic errors.
    is_most: no larger size was tried.
    """

    size: int
    rival: int
    lead: float
    margin: float
    is_most: bool

    @property
    def is_sure(self) -> bool:
        return self.lead > self.margin


def chosen(table: Table) -> Choice:
    best, sizes = int(np.argmax(table["evidence"])), table["size"]
    is_most = bool(sizes[best] == sizes.max())
    if len(sizes) == 1:
        return Choice(int(sizes[0]), int(sizes[0]), 0.0, 0.0, is_most)
    leads = table["evidence"][best] - table["evidence"]
    margins = _margins(table, best)
    margins[best] = -math.inf  # is no rival of its own
    rival = int(np.argmin(leads - margins))
    return Choice(
        int(sizes[best]), int(sizes[rival]), float(leads[rival]), float(margins[rival]), is_most
    )


def _margins(table: Table, best: int) -> np.ndarray:
    """Of the difference of each from that one."""
    random, systematic = pooled(table["random"]), table["systematic"]
    times = quantile(int(table["freedom"].sum()), max(len(random) - 1, 1))
    return times * np.hypot(random, random[best]) + systematic + systematic[best]


def checks(config: "Selection", tables: Tables) -> list[Check]:
    found = [_check_known(row) for row in (tables["known"].rows() if "known" in tables else [])]
    if "rank" in tables:
        found += _check_ranks(tables["rank"])
    if "control" in tables:
        found += _check_control(config, tables["control"])
    if "starts" in tables:
        found += _check_starts(config, tables["starts"])
    if "units" in tables:
        found += _check_minibatches(tables["units"])
    return found


def _check_known(row: Mapping[str, Any]) -> Check:
    value, own = unbiased(row)
    return Check.below(
        f"evidence of a regression, {row['way']}: from the truth, in standard errors",
        abs(value - row["truth"]) / math.hypot(own, _rule(row)),
        SURE,
        reason="a t law of 31 degrees of freedom is beyond three once in 190 runs; the rule's "
        "own error counts, and of SGLD its bias is taken off as halving its steps foretells",
    )


def _check_ranks(table: Table) -> list[Check]:
    choice, rmse = chosen(table), table["rmse"]
    of_choice = float(table.where(size=choice.size)["rmse"][0])
    return [
        Check.above(
            f"lead of rank {choice.size}, with the most evidence, over rank {choice.rival}",
            choice.lead,
            choice.margin,
            reason="in nats; at the margin, the t quantile of the pooled errors of two starts of "
            f"the Gibbs sampler, some other rank leads once in {1 / RATE:.0f} runs, and what may "
            "be systematic is added",
            explanation="two ranks may be as good as each other",
        ),
        Check.below(
            "RMSE of the rank with the most evidence, above the least",
            of_choice - float(rmse.min()),
            GOOD,
            reason="it pays to choose by evidence if the choice predicts as well",
            explanation=f"Evidence and error answer different questions: {COSTS}.",
        ),
    ]


def _check_control(config: "Selection", table: Table) -> list[Check]:
    """Once all sizes are there: of a part, the best need not be the true one."""
    if len(table) < len(config.control_units):
        return []
    true = int(np.flatnonzero(table["size"] == config.control_truth)[0])
    beaten = table["evidence"] - table["evidence"][true] - _margins(table, true)
    beaten[true] = 0.0  # by itself
    return [
        Check.below(
            "evidence of other networks above that of the one that made the pictures, less margins",
            float(np.max(beaten)),
            0.0,
            reason="a larger network that fits as well has the smaller evidence; where they are as "
            f"good, one is above its margin once in {1 / RATE:.0f} runs",
        ),
        Check.near(
            "hidden units with the most evidence, of pictures that a network made",
            chosen(table).size,
            config.control_truth,
            0,
            reason="its own",
            explanation="within the margins another may be as good; beyond them the check fails",
        ),
    ]


def _check_starts(config: "Selection", table: Table) -> list[Check]:
    full = table.where(way=FULL)
    return [
        check
        for kind, part in groups(full, "kind")
        for check in (_check_stones(config, kind, part), _check_modes(config, kind, part))
    ]


PICTURES = {"control": "simulated pictures", "units": "small pictures"}


def _check_stones(config: "Selection", kind: str, part: Table) -> Check:
    errors = np.hypot(pooled(part["standard_error"]), pooled(part["stepping_stones_error"]))
    rules = np.array([_rule(row) for row in part.rows()])
    excess = part["stepping_stones"] - part["value"] - rules
    return Check.below(
        f"stepping stones above thermodynamic integration, {PICTURES[kind]}, in standard errors",
        float(np.max(excess / errors)),
        quantile(len(part) * (config.num_chains - 1), len(part)),
        reason="of converged chains the stones are the lower ones on average; beyond this, one of "
        f"these paths is once in {1 / RATE:.0f} runs",
        explanation="rungs that have not converged: half of what is between their starts, or the "
        "change of their second halves, counts as an error",
    )


def _check_modes(config: "Selection", kind: str, part: Table) -> Check:
    prior, mode = part.where(start="prior"), part.where(start="mode")
    errors = np.hypot(pooled(prior["standard_error"]), pooled(mode["standard_error"]))
    return Check.above(
        f"evidence from a good mode less that from the prior, {PICTURES[kind]}, in standard errors",
        float(np.min((mode["value"] - prior["value"]) / errors)),
        -quantile(len(part) * (config.num_chains - 1), len(prior)),
        reason="chains that freeze are below, and those that melt above: otherwise the mode is "
        f"not a good one; of equals, one is so far below once in {1 / RATE:.0f} runs",
        explanation="the mode that was taken for the best is not",
    )


def _check_minibatches(table: Table) -> list[Check]:
    full, estimated = table.where(way=FULL), table.where(way=MINIBATCH)
    sizes = [size for size in estimated["size"].tolist() if size in full["size"]]
    if not sizes:
        return []
    both = [
        Table.stack("", [row for size in sizes for row in part.where(size=size).rows()])
        for part in (full, estimated)
    ]
    distance = np.abs(both[1]["evidence"] - both[0]["evidence"])
    random = np.hypot(*(pooled(part["random"]) for part in both))
    freedom = sum(int(part["freedom"].sum()) for part in both)
    margins = quantile(freedom, 2 * len(sizes)) * random
    margins += both[0]["systematic"] + both[1]["systematic"]
    return [
        Check.below(
            "evidence by minibatches from that by full gradients, in margins",
            float(np.max(distance / margins)),
            1.0,
            reason=f"for {_listed(sizes)} hidden units, of which one is beyond its margin once in "
            f"{1 / RATE:.0f} runs, what may be systematic added",
            explanation="of SGLD's bias only the part of the order of its step is taken off",
        ),
        Check.near(
            "hidden units with the most evidence, by minibatches",
            chosen(both[1]).size,
            chosen(both[0]).size,
            0,
            reason=f"those by full gradients, of {_listed(sizes)}",
            explanation="where the lead is within its margin, either may be the better one",
        ),
    ]


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def verdict(config: "Selection", tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"The comparison is not sound: {failed}.")
    parts = [
        *(_of_ranks(tables["rank"]) if "rank" in tables else ()),
        *(_of_control(config, tables["control"]) if "control" in tables else ()),
        *(_of_units(tables["units"]) if "units" in tables else ()),
        *(_of_held_out(tables["held"]) if "held" in tables else ()),
    ]
    return Verdict("measured here", " ".join(parts))


def _led(choice: Choice, name: str = "") -> str:
    """In what the choice leads, and whether that can be told from its errors."""
    if choice.rival == choice.size:
        return "the only one that was tried"
    words = f"by {choice.lead:.0f} ± {choice.margin:.0f} over {name}{choice.rival}"
    return words if choice.is_sure else f"{words}, which may be as good"


def _of_ranks(table: Table) -> list[str]:
    choice = chosen(table)
    least = table.rows()[int(np.argmin(table["rmse"]))]
    (row,) = table.where(size=choice.size).rows()
    answer = "cannot be told"
    if choice.is_sure:
        answer = "pays" if row["rmse"] - least["rmse"] <= GOOD else "does not pay"
    made = "" if ml.is_real(table) else " (synthetic ones)"
    most = ", the largest that was tried" if choice.is_most and len(table) > 1 else ""
    return [
        f"On ratings{made} it {answer}: the evidence is largest for rank {choice.size}{most}, "
        f"{_led(choice, 'rank ')}; its RMSE is {row['rmse']:.4f}, and the least, "
        f"{least['rmse']:.4f}, has rank {least['size']}."
    ]


def _of_control(config: "Selection", table: Table) -> list[str]:
    choice = chosen(table)
    return [
        f"Of pictures that a network of {config.control_truth} units made it chooses "
        f"{choice.size}, {_led(choice)}."
    ]


def _of_units(table: Table) -> list[str]:
    made = "" if ml.is_real(table) else " (synthetic ones)"
    words = "; ".join(f"by {way} {_of_way(part)}" for way, part in groups(table, "way"))
    return [f"The evidence of hidden units for small pictures{made}: {words}."]


def _of_way(part: Table) -> str:
    choice = chosen(part)
    answer = f"it is largest for {choice.size} units"
    if choice.is_most and len(part) > 1:
        answer = f"it still rises at {choice.size} units, the most that were tried"
    far = int(np.argmax(np.abs(part["from_mode"] - part["from_prior"])))
    apart = part["from_mode"][far] - part["from_prior"][far]
    return (
        f"{answer}, {_led(choice)}; between the starts are at most {apart:.1f} nats, at "
        f"{part['size'][far]} units"
    )


def _of_held_out(table: Table) -> list[str]:
    numbers = ", ".join(
        f"{row['size']} units {row['loglikelihood']:.1f}"
        + (f" ({row['behind']:.1f} ± {row['behind_error']:.1f} behind)" if row["behind"] else "")
        for row in table.rows()
    )
    count = int(table["seeds"][0])
    return [
        "For pictures of full size the evidence, an integral over all weights, is out of reach; "
        f"held-out pictures have the log-likelihoods {numbers}, of {count} training "
        f"{'seed' if count == 1 else 'seeds'}."
    ]
