"""Tables on the terminal."""

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from levymc_lab.framework import Results

MARKS = {
    "pass": "[green]✓ pass[/]",
    "explained": "[yellow]≈ explained[/]",
    "fail": "[red]✗ FAIL[/]",
}


def show_results(results: "Results") -> None:
    """Checks, the reasons of those that do not hold, the verdict, and where the rest is."""
    console = Console()
    manifest = results.manifest
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    table.title = f"{manifest['name']} ({manifest['paper_item']}, {manifest['profile']})"
    table.add_column("check", overflow="fold")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("expected", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for check in results.checks:
        mark = MARKS[check.outcome]
        table.add_row(escape(check.name), f"{check.measured:.4g}", check.expected, mark)
    console.print(table)
    for check in results.checks:
        if not check.holds:
            console.print(f"{escape(check.name)}: {escape(check.explanation or check.reason)}")
    console.print(f"[bold]{results.verdict.kind.capitalize()}.[/] {escape(results.verdict.words)}")
    seconds = manifest["wall_seconds"]
    console.print(f"{results.folder}  ({seconds:,.1f} s)", style="dim", markup=False)


def show_list() -> None:
    """The experiments."""
    from levymc_lab import framework as experiments

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("paper", no_wrap=True)
    table.add_column("question")
    table.add_column("profiles")
    for name in experiments.names():
        one = experiments.get(name)
        table.add_row(name, one.paper_item, escape(one.question), ", ".join(one.profiles))
    Console().print(table)


def show_versions() -> None:
    """All that a report of a fault should say."""
    import jax

    from levymc_lab.framework import versions

    devices = ", ".join(str(device) for device in jax.devices())
    settings = {"devices": devices, "64-bit types": str(jax.config.jax_enable_x64)}  # type: ignore[attr-defined]
    for name, value in {**versions(), **settings}.items():
        print(f"{name:<12} {value}")
