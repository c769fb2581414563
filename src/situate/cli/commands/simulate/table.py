"""A simulation as a table for people: a line for each figure, a column for each configuration. Prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from situate.cli.commands.place.table import printable
from situate.cli.commands.simulate.values import Simulated
from situate.cli.output.console import canvas, drawn

if TYPE_CHECKING:
    from situate.core.changes import Millis
    from situate.sim.whatif.figures import Figures, Money, ResourceUsage, SpreadFigures

__all__ = ["count", "money_text", "quantity", "rows_of", "share", "span", "table"]

NONE: Final = "-"
_BYTES: Final = ("memory", "ephemeral-storage")

Row = tuple[str, list[str]]
"""What it is, and its value for each configuration; no values: a heading."""


def table(simulated: Sequence[Simulated], *, terminal_width: int | None, colour: bool = False) -> str:
    from rich.table import Table

    console, text = canvas(terminal_width, colour=colour)
    grid = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    grid.add_column("", overflow="fold")
    for one in simulated:
        grid.add_column(printable(one.name), justify="right", overflow="fold")
    for label, values in rows_of([one.figures for one in simulated]):
        if values:
            grid.add_row(f"  {label}", *values)
        else:
            grid.add_row(label, *("" for _ in simulated), style="bold")
    console.print(grid)
    for one in simulated:
        _pending(console.print, one, several=len(simulated) > 1)
    return drawn(text)


def _pending(say: Callable[..., None], one: Simulated, *, several: bool) -> None:
    if not one.figures.pending:
        return
    say(f"\nPending{f', {printable(one.name)}' if several else ''}", style="bold")
    for each in one.figures.pending:
        more = ", …" if each.pods > len(each.examples) else ""
        say(f"  {count(each.pods)}  {printable(each.reason)} ({printable(', '.join(each.examples))}{more})")


def rows_of(figures: Sequence[Figures]) -> Iterator[Row]:
    """All figures, in the order in which one reads them."""

    def each(say: Callable[[Figures], str]) -> list[str]:
        return [say(one) for one in figures]

    yield "Pods", []
    if any(one.counts.snapshot for one in figures):
        yield "in the snapshot", each(lambda one: count(one.counts.snapshot))
    yield "arrived", each(lambda one: count(one.counts.arrived))
    yield "placed", each(lambda one: count(one.counts.placed))
    yield "pending at the end", each(lambda one: count(one.counts.pending))
    yield "running at the end", each(lambda one: count(one.counts.running))
    yield "finished", each(lambda one: count(one.counts.finished))
    if any(one.counts.deleted for one in figures):
        yield "deleted", each(lambda one: count(one.counts.deleted))
    yield "evicted, and made again", each(lambda one: f"{count(one.counts.evicted)}, {count(one.counts.remade)}")
    yield "Wait for a node", []
    yield "p50", each(lambda one: span(one.wait.p50_ms))
    yield "p99", each(lambda one: span(one.wait.p99_ms))
    yield "longest", each(lambda one: span(one.wait.max_ms))
    yield "Nodes", []
    yield "used, mean", each(lambda one: f"{one.nodes.mean:,.1f} of {count(one.nodes.total)}")
    yield "used, most", each(lambda one: count(one.nodes.peak))
    yield from _resource_rows(figures)
    yield "Spread of a workload, when most pods run", []
    yield "zones: fullest ahead of emptiest", each(lambda one: _spread(one.zones))
    yield "hosts: most on one", each(lambda one: _spread(one.hosts))
    if any(one.money is not None for one in figures):
        yield "Money an hour, for nodes used", []
        yield "mean", each(lambda one: money_text(one.money, "mean"))
        yield "most", each(lambda one: money_text(one.money, "peak"))


def _resource_rows(figures: Sequence[Figures]) -> Iterator[Row]:
    names = dict.fromkeys(one.name for each in figures for one in each.resources if one.name != "pods")
    for name in names:
        found = [next((one for one in each.resources if one.name == name), None) for each in figures]
        whole = next(one.allocatable for one in found if one is not None)
        yield f"{name}, of {quantity(name, whole)}", []
        yield "utilisation, mean", [_of(one, lambda each: share(each.mean)) for one in found]
        yield "utilisation, most", [_of(one, lambda each: share(each.peak)) for one in found]
        yield "fragmentation, mean", [_of(one, lambda each: share(each.fragmentation)) for one in found]


def _of(one: ResourceUsage | None, say: Callable[[ResourceUsage], str]) -> str:
    return NONE if one is None else say(one)


# -- words for numbers -----------------------------------------------------------------------------------------------


def count(number: int) -> str:
    return f"{number:,}"


def share(value: float | None) -> str:
    return NONE if value is None else f"{value * 100:.1f} %"


def span(ms: Millis | None) -> str:
    """`0 s`, `1.5 s`, `3 m 20 s`, `2 h 5 m`."""
    if ms is None:
        return NONE
    if ms < 60_000:
        return f"{ms / 1_000:g} s" if ms < 10_000 else f"{ms / 1_000:.1f} s"
    seconds = round(ms / 1_000)
    if seconds < 3_600:
        return f"{seconds // 60} m {seconds % 60} s"
    if seconds < 86_400 * 2:
        return f"{seconds // 3_600} h {seconds % 3_600 // 60} m"
    return f"{seconds / 86_400:.1f} d"


def quantity(name: str, amount: int) -> str:
    if name == "cpu":
        return f"{amount / 1_000:,g} cores" if amount % 1_000 else f"{amount // 1_000:,} cores"
    if name not in _BYTES:
        return f"{amount:,}"
    value, unit = float(amount), "B"
    for following in ("Ki", "Mi", "Gi", "Ti", "Pi"):
        if value < 1_024:
            break
        value, unit = value / 1_024, following
    return f"{value:,.1f} {unit}".replace(".0 ", " ")


def money_text(one: Money | None, which: str) -> str:
    return NONE if one is None else f"{getattr(one, which):,.3f} {one.currency}"


def _spread(one: SpreadFigures) -> str:
    return NONE if not one.workloads else f"{one.mean:.1f}, at worst {one.worst}"
