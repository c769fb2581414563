"""A simulation as a table for people: a line for each figure, a column for each configuration. Prints nothing."""

from collections.abc import Callable, Iterator, Sequence

from situate.cli.commands.simulate.values import Simulated
from situate.cli.output.console import canvas, drawn
from situate.cli.output.numbers import NONE, count, money_text, quantity, share, span
from situate.cli.output.text import printable
from situate.sim.whatif.figures import Figures, SpreadFigures

Row = tuple[str, list[str]]
"""A label and its value for each configuration; without values, a heading."""


def table(simulated: Sequence[Simulated]) -> list[str]:
    from rich.table import Table

    console, text = canvas()
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
    """All figures, in reading order."""

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
    yield "evicted, and created again", each(lambda one: f"{count(one.counts.evicted)}, {count(one.counts.remade)}")
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
        yield "utilisation, mean", [NONE if one is None else share(one.mean) for one in found]
        yield "utilisation, most", [NONE if one is None else share(one.peak) for one in found]
        yield "fragmentation, mean", [NONE if one is None else share(one.fragmentation) for one in found]


def _spread(one: SpreadFigures) -> str:
    return NONE if not one.workloads else f"{one.mean:.1f}, at worst {one.worst}"
