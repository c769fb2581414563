"""A simulation as one page of HTML: plots side by side, in light and dark, with nothing to be fetched from anywhere."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from situate.cli.commands.simulate.plots import Curve, bars, curves, heat_map, nice, ramp, stacked
from situate.cli.commands.simulate.style import STYLE
from situate.cli.commands.simulate.table import rows_of
from situate.cli.commands.simulate.values import Simulated
from situate.cli.output.numbers import count, money_text, share, span
from situate.sim.whatif.figures import Figures, PendingPods

COLOURS: Final = 6
"""How many configurations have a colour of their own."""
REASONS: Final = 7
"""How many reasons have a colour of their own; the others are one."""
OTHERS: Final = "other reasons"
_RESOURCE_NAMES: Final = {"cpu": "CPU", "memory": "Memory", "ephemeral-storage": "Ephemeral storage"}


def page(simulated: Sequence[Simulated], *, seed: int, notes: Sequence[str]) -> str:
    """The whole page. The same figures give the same bytes."""
    first = simulated[0].figures
    title = f"{count(first.counts.arrived)} pods on {count(first.nodes.total)} nodes"
    parts = [
        _head(title, simulated, seed),
        _section("Side by side", _tiles(simulated), "The shorter bar is the better one, except where pods are placed."),
        _section(
            "Utilisation over time", _utilisation(simulated), "What running pods ask for, of what nodes can give."
        ),
        _section("Nodes and pods over time", _counts(simulated)),
        _section("Pending pods, by reason", _pending(simulated), _PENDING_NOTE),
        _section("Nodes", _maps(simulated), _MAP_NOTE),
        _section("All figures", _figures(simulated)),
    ]
    if notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in notes)
        parts.append(_section("What could not be judged", f'<ul class="notes">{items}</ul>'))
    parts.append("<footer>Made by situate simulate. Time is virtual, and the same input gives the same page.</footer>")
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} · situate simulate</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


_PENDING_NOTE: Final = "A pod that is refused for several reasons at once is counted under all of them together."
_MAP_NOTE: Final = (
    "A row is a node, or several in the order of their names; a column is a moment. Of each node, the resource that is "
    "scarcest on it counts."
)


def _head(title: str, simulated: Sequence[Simulated], seed: int) -> str:
    long = max(one.figures.end_ms for one in simulated)
    kinds = "1 configuration" if len(simulated) == 1 else f"{len(simulated)} configurations"
    return (
        f'<header><p class="eyebrow">situate simulate</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(span(long))} of virtual time · {kinds} · seed {seed}</p>{_legend(simulated)}</header>'
    )


def _colour(at: int) -> str:
    return f"c{at % COLOURS}"


def _legend(simulated: Sequence[Simulated]) -> str:
    items = "".join(
        f'<li><span class="swatch {_colour(at)}"></span>{escape(one.name)}</li>' for at, one in enumerate(simulated)
    )
    return f'<ul class="legend">{items}</ul>'


def _section(title: str, inside: str, note: str = "") -> str:
    lead = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{lead}{inside}</section>"


def _figure(title: str, plot: str, extra: str = "") -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{plot}{extra}</figure>"


def _side_by_side(plots: Sequence[str]) -> str:
    three = " three" if len(plots) % 3 == 0 else ""
    return f'<div class="plots{three}">{"".join(plots)}</div>'


# -- side by side ----------------------------------------------------------------------------------------------------


def _tiles(simulated: Sequence[Simulated]) -> str:
    def each(say: Callable[[Figures], str], value: Callable[[Figures], float]) -> list[tuple[str, str, float, str]]:
        return [(one.name, _colour(at), value(one.figures), say(one.figures)) for at, one in enumerate(simulated)]

    tiles = [
        ("Placed", each(lambda one: count(one.counts.placed), lambda one: one.counts.placed)),
        ("Pending at the end", each(lambda one: count(one.counts.pending), lambda one: one.counts.pending)),
        ("Nodes used, mean", each(lambda one: f"{one.nodes.mean:,.1f}", lambda one: one.nodes.mean)),
        ("Wait for a node, p50", each(lambda one: span(one.wait.p50_ms), lambda one: one.wait.p50_ms or 0)),
        ("Wait for a node, p99", each(lambda one: span(one.wait.p99_ms), lambda one: one.wait.p99_ms or 0)),
        ("Evicted", each(lambda one: count(one.counts.evicted), lambda one: one.counts.evicted)),
    ]
    for at, name in enumerate(_resources(simulated)):
        if at < MOST_TILES:
            broken = each(
                lambda one, name=name: share(_broken(one, name)),  # type: ignore[misc]
                lambda one, name=name: _broken(one, name) or 0.0,  # type: ignore[misc]
            )
            tiles.append((f"{_named(name)} fragmentation, mean", broken))
    tiles.append(("Zone skew of a workload", each(lambda one: f"{one.zones.mean:.1f}", lambda one: one.zones.mean)))
    tiles.append(
        ("Most of a workload on one host", each(lambda one: f"{one.hosts.mean:.1f}", lambda one: one.hosts.mean))
    )
    if any(one.figures.money is not None for one in simulated):
        tiles.append(
            (
                "Money an hour, mean",
                each(lambda one: money_text(one.money, "mean"), lambda one: one.money.mean if one.money else 0.0),
            )
        )
    made = "".join(f'<div class="tile"><h3>{escape(name)}</h3>{bars(values, name)}</div>' for name, values in tiles)
    return f'<div class="tiles">{made}</div>'


MOST_TILES: Final = 4
"""How many resources have a tile."""


def _resources(simulated: Sequence[Simulated]) -> list[str]:
    return list(dict.fromkeys(each.name for one in simulated for each in one.figures.resources if each.name != "pods"))


def _broken(figures: Figures, name: str) -> float | None:
    return next((one.fragmentation for one in figures.resources if one.name == name), None)


def _named(resource: str) -> str:
    return _RESOURCE_NAMES.get(resource, resource)


# -- over time -------------------------------------------------------------------------------------------------------


def _times(simulated: Sequence[Simulated]) -> list[float]:
    """In seconds; all runs have the same moments."""
    return [ms / 1_000 for ms in simulated[0].figures.series.moments.tolist()]


def _lines(simulated: Sequence[Simulated], values: Callable[[Figures], Sequence[float] | None]) -> list[Curve]:
    found = [(at, one, values(one.figures)) for at, one in enumerate(simulated)]
    return [Curve(one.name, _colour(at), held) for at, one, held in found if held is not None]


def _utilisation(simulated: Sequence[Simulated]) -> str:
    plots = []
    for name in _resources(simulated):
        lines = _lines(simulated, lambda one, name=name: _curve(one, name))  # type: ignore[misc]
        plots.append(
            _figure(_named(name), curves(_times(simulated), lines, _percent, f"utilisation of {name}", top=1.0))
        )
    return _side_by_side(plots)


def _curve(figures: Figures, name: str) -> list[float] | None:
    found = figures.series.utilisation.get(name)
    return None if found is None else [float(value) for value in found.tolist()]


def _percent(value: float) -> str:
    return f"{value * 100:.0f} %"


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _counts(simulated: Sequence[Simulated]) -> str:
    total = simulated[0].figures.nodes.total
    times = _times(simulated)
    used = _lines(simulated, lambda one: one.series.nodes_used.tolist())
    running = _lines(simulated, lambda one: one.series.running.tolist())
    plots = [
        _figure(f"Nodes used, of {count(total)}", curves(times, used, _whole, "nodes used", top=nice(total))),
        _figure("Running pods", curves(times, running, _whole, "running pods")),
    ]
    if any(one.figures.series.money is not None for one in simulated):
        spent = _lines(simulated, lambda one: None if one.series.money is None else one.series.money.tolist())
        top = nice(max(max(line.values) for line in spent), whole=False)
        plot = curves(times, spent, lambda value: f"{value:,.2f}", "money an hour", top=top)
        plots.append(_figure("Money an hour", plot))
    return _side_by_side(plots)


def _pending(simulated: Sequence[Simulated]) -> str:
    weights: dict[str, int] = {}
    for one in simulated:
        for reason, curve in one.figures.series.pending.items():
            weights[reason] = weights.get(reason, 0) + int(curve.sum())
    if not weights:
        return '<p class="nothing">No pod had to wait.</p>'
    ranked = sorted(weights, key=lambda reason: (-weights[reason], reason))
    shown = ranked[:REASONS]
    layers = [_layers(one, shown, more=len(ranked) > REASONS) for one in simulated]
    top = nice(max(max(sum(values) for values in zip(*(one.values for one in each), strict=True)) for each in layers))
    times = _times(simulated)
    plots = [
        _figure(one.name, stacked(times, each, _whole, f"pending pods, {one.name}", top=top))
        for one, each in zip(simulated, layers, strict=True)
    ]
    names = [*shown, *([OTHERS] if len(ranked) > REASONS else [])]
    items = "".join(f'<li><span class="swatch r{at}"></span>{escape(name)}</li>' for at, name in enumerate(names))
    return f'{_side_by_side(plots)}<ul class="legend reasons">{items}</ul>'


def _layers(one: Simulated, shown: Sequence[str], *, more: bool) -> list[Curve]:
    series = one.figures.series
    nothing = [0.0] * len(series.moments)
    found = [
        Curve(reason, f"r{at}", series.pending[reason].tolist() if reason in series.pending else nothing)
        for at, reason in enumerate(shown)
    ]
    if more:
        rest = [curve.tolist() for reason, curve in series.pending.items() if reason not in shown]
        sums = [float(sum(values)) for values in zip(*rest, strict=True)] if rest else nothing
        found.append(Curve(OTHERS, f"r{len(shown)}", sums))
    return found


def _maps(simulated: Sequence[Simulated]) -> str:
    plots = []
    for at, one in enumerate(simulated):
        held = one.figures.map
        plot = heat_map(_times(simulated), held.labels, held.shares.tolist(), f"how full nodes are, {one.name}")
        name = f'<span class="swatch {_colour(at)}"></span>{escape(one.name)}'
        plots.append(f'<figure class="wide"><figcaption>{name}</figcaption><div class="scroll">{plot}</div></figure>')
    return ramp() + "".join(plots)


# -- words -----------------------------------------------------------------------------------------------------------


def _figures(simulated: Sequence[Simulated]) -> str:
    heads = "".join(f'<th scope="col">{escape(one.name)}</th>' for one in simulated)
    lines = []
    for label, values in rows_of([one.figures for one in simulated]):
        if values:
            cells = "".join(f"<td>{escape(value)}</td>" for value in values)
            lines.append(f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>')
        else:
            lines.append(f'<tr class="group"><th colspan="{len(simulated) + 1}">{escape(label)}</th></tr>')
    head, body = f"<thead><tr><th></th>{heads}</tr></thead>", f"<tbody>{''.join(lines)}</tbody>"
    table = f'<div class="scroll"><table>{head}{body}</table></div>'
    return table + "".join(_waiting(one) for one in simulated if one.figures.pending)


def _waiting(one: Simulated) -> str:
    lines = "".join(
        f"<tr><td>{count(each.pods)}</td><td>{escape(each.reason)}</td>"
        f'<td class="names">{escape(", ".join(each.examples))}{_more(each)}</td></tr>'
        for each in one.figures.pending
    )
    return (
        f"<h3>Pending at the end: {escape(one.name)}</h3>"
        f'<div class="scroll"><table class="left"><thead><tr><th>Pods</th><th>Reason</th><th>Such as</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _more(each: PendingPods) -> str:
    return ", …" if each.pods > len(each.examples) else ""
