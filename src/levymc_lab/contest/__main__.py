"""``python -m levymc_lab.contest PROBLEM METHOD``: a line for each seed.

``python -m levymc_lab.contest tables RESULTS [PAGE]`` prints the tables of ``docs/contest.md`` as
the results in a folder have them, or puts them into the page.
"""

import argparse
import json
import sys
from pathlib import Path

import jax

from . import _page, metrics, peers, problems

COLUMNS = (
    ("TV", "total_variation"), ("KS", "kolmogorov"), ("quantile", "quantile_error"),
    ("bulk/k", "bulk"), ("tail/k", "tail"), ("rhat", "rhat"),
    ("z_w", "z_weights"), ("z_m", "z_marginals"), ("z_Z", "z_evidence"),
)  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m levymc_lab.contest",
        description="Run methods on problems of the contest; a line for each seed.",
        epilog="PROBLEM may be a name, development, final or all; without one they are listed. "
        "`tables RESULTS [PAGE]` prints the tables of the page, or puts them into it.",
    )
    parser.add_argument("problem", nargs="?", default="", metavar="PROBLEM")
    parser.add_argument("method", nargs="*", metavar="METHOD")
    parser.add_argument("--seeds", type=int, default=3, help="how many, 3 if not given")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=2e5, help="evaluations")
    parser.add_argument("--float32", action="store_true", help="compute in 32 bits")
    parser.add_argument("--verbose", action="store_true", help="print what the sampler warns of")
    parser.add_argument(
        "--long-run", action="store_true", help="print the quantiles of a run of dense NUTS instead"
    )
    given = parser.parse_args(arguments)
    if given.problem == "tables":
        _tables(*map(Path, given.method))
        return
    if given.long_run:
        _long_run(given.problem, int(given.budget))
        return
    if not given.method:
        _list()
        return
    chosen = _chosen(given.problem)
    for method in given.method:
        if reason := peers.missing(method):
            sys.exit(reason)
    with jax.enable_x64(not given.float32):
        _print("problem", "method", "seed", *(title for title, _ in COLUMNS), "flag", "evals", "s")
        for name in chosen:
            for method in given.method:
                for seed in range(given.first_seed, given.first_seed + given.seeds):
                    _report(name, method, seed, int(given.budget), verbose=given.verbose)


def _tables(folder: Path = Path("docs/results"), page: Path | None = None) -> None:
    """Print the parts of the page, or put them into it."""
    parts = _page.blocks(folder)
    if page is None:
        for name, part in parts.items():
            print(f"<!-- {name} -->\n{part}\n")
    else:
        page.write_text(_page.renewed(page.read_text("utf-8"), parts), "utf-8")


def _chosen(name: str) -> list[str]:
    groups = {"all": None, "development": "development", "final": "final"}
    return problems.names(groups[name]) if name in groups else [problems.get(name).name]


def _report(name: str, method: str, seed: int, budget: int, *, verbose: bool) -> None:
    problem = problems.get(name)
    outcome = peers.run(problem, method, jax.random.key(seed), budget)
    row = metrics.as_row(metrics.measure(problem, outcome, budget))
    numbers = [f"{row[key]:.4g}" for _, key in COLUMNS]
    flag = "flag" if outcome.is_flagged else "-"
    seconds = f"{outcome.seconds:.1f}+{outcome.compiling:.0f}"
    _print(name, method, str(seed), *numbers, flag, str(outcome.evaluations), seconds)
    for note in outcome.notes if verbose else ():
        print(f"  {note}")


def _long_run(name: str, budget: int) -> None:
    """What belongs into ``long_runs.json``, and how far the chains agree."""
    problem = problems.get(name)
    middle = problem.dimension // 2
    functions = {f"x{i}": problems.Coordinate(i) for i in (0, middle, problem.dimension - 1)}
    with jax.enable_x64(True):
        outcome = peers.run(problem, "nuts-dense", jax.random.key(12345), budget)
        print(f"R-hat {metrics.effective(outcome)[2]:.5f}, {outcome.notes}", file=sys.stderr)
        print(json.dumps({name: problems.quantiles_of(functions, outcome.positions)}, indent=1))


def _print(name: str, method: str, seed: str, *rest: str) -> None:
    print(f"{name:24s}{method:14s}{seed:>4s}", *(f"{one:>9s}" for one in rest), flush=True)


def _list() -> None:
    for name in problems.names():
        problem = problems.get(name)
        where = f"{problem.group}, {problem.kind}, {problem.dimension}-D"
        print(f"{name:26s}{where:30s}{problem.about}")
    print("Methods:", ", ".join(peers.METHODS))


if __name__ == "__main__":
    main()
