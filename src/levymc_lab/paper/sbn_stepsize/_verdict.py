"""What the experiment `sbn_stepsize` says of those runs that there are."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from levymc_lab.framework import Check, Table, Tables, Verdict

from ._checks import FALL
from ._tables import NAMES

NOTABLE = 20.0  # nats, twice what runs at large steps wander by


def verdict(config: Any, tables: Tables, checks: Sequence[Check]) -> Verdict:
    words = " ".join(_sentences(config, tables)) or "No run is there yet."
    falls = [check for check in checks if check.name.startswith(FALL)]
    if config.source == "made" or len(falls) < len(config.main_alphas):
        return Verdict("measured here", words)
    if all(check.holds for check in falls):
        return Verdict("reproduced", f"A smaller α stands larger steps. {words}")
    return Verdict("not reproduced", f"No α stands larger steps than SGLD does. {words}")


def _sentences(config: Any, tables: Tables) -> Iterator[str]:
    if config.source == "made":
        yield "On made pictures."
    if "grid" in tables:
        yield from _of_grid(config, tables["grid"])
    if "runs" in tables:
        yield from _of_parts(config, tables["runs"])
        yield from _of_sweeps(config, tables["runs"])
        yield from _of_schedules(config, tables["runs"])
    if "annealing" in tables:
        yield _of_annealing(tables["annealing"])


def _of_grid(config: Any, grid: Table) -> Iterator[str]:
    """Both ends of each α's line."""
    for alpha in config.main_alphas:
        part = grid.where(alpha=alpha)
        if len(part) < 2:
            continue
        small, large = np.argmin(part["step"]), np.argmax(part["step"])
        beside = f" (published: {part['published'][small]:.1f} and {part['published'][large]:.1f})"
        yield (
            f"At α = {alpha:g} the log-likelihood goes from {part['loglikelihood'][small]:.1f} at "
            f"η = {part['step'][small]:.2g} to {part['loglikelihood'][large]:.1f} at "
            f"{part['step'][large]:.2g}{beside if config.source == 'mnist' else ''}."
        )


def _of_parts(config: Any, runs: Table) -> Iterator[str]:
    alpha, step = config.ablated_alpha, max(config.ablation_steps)
    at = runs.where(step=step, alpha=alpha, sweeps=config.sweeps, iterations=config.num_iterations)
    kinds = ("sgfla", "normal", "sgd", "sgld")
    parts = _listed((NAMES[kind], at.where(sampler=NAMES[kind])) for kind in kinds)
    if parts:
        yield f"The parts of its step at α = {alpha:g}, η = {step:.2g}: {parts}."


def _of_sweeps(config: Any, runs: Table) -> Iterator[str]:
    for step in sorted(config.sweep_steps):
        at = runs.where(step=step, alpha=2.0)
        plain = at.where(sampler=NAMES["sgfla"])
        counts = sorted({*config.other_sweeps, config.sweeps})
        found = _listed(
            [
                *((f"{count}", plain.where(sweeps=count)) for count in counts),
                (f"{config.sweeps} from where they last ended", at.where(sampler=NAMES["warm"])),
                (
                    f"{config.polya_sweeps} by Pólya–Gamma, {config.polya_iterations} iterations",
                    at.where(sampler=NAMES["polya"]),
                ),
            ]
        )
        if found:
            yield f"SGLD at η = {step:.2g} by the number of Gibbs sweeps: {found}."
    largest = runs.where(step=max(config.sweep_steps), alpha=2.0, sweeps=config.sweeps)
    cold, warm = (largest.where(sampler=NAMES[kind]) for kind in ("sgfla", "warm"))
    if len(cold) and len(warm) and _mean(warm) - _mean(cold) > NOTABLE:
        yield "So it is hidden units drawn from a cold start that make large steps fail."


def _of_schedules(config: Any, runs: Table) -> Iterator[str]:
    at = runs.where(sampler=NAMES["best"])
    found = _listed((f"α = {alpha:g}", at.where(alpha=alpha)) for alpha in config.best_alphas)
    if found:
        yield f"With decreasing steps and a warm start: {found}."


def _of_annealing(table: Table) -> str:
    few, many = table.rows()[0], table.rows()[-1]
    return (
        f"Annealing with {few['temperatures']} temperatures gives {few['first']:.1f} with the "
        f"weight first and {few['last']:.1f} with the weight last; with {many['temperatures']}, "
        f"{many['first']:.1f} and {many['last']:.1f}."
    )


def _listed(parts: Any) -> str:
    """Names and the means of their runs, where there are runs."""
    return "; ".join(f"{name} {_mean(table):.1f}" for name, table in parts if len(table))


def _mean(table: Table) -> float:
    return float(table["loglikelihood"].mean())
