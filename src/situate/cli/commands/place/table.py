"""A rehearsal as a table for people: where each pod went, and why there. Prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from situate.cli.commands.place.rehearsal import Placement, PlacementOutcome, Rehearsed
from situate.cli.commands.place.summary import EXAMPLES, PodSummary, RefusalSummary
from situate.cli.commands.place.values import device_values
from situate.cli.output.console import WIDTH, canvas, drawn
from situate.cli.output.money import before_and_after
from situate.cli.output.text import plural, printable

if TYPE_CHECKING:
    from rich.console import JustifyMethod

WIDE_WIDTH: Final = 160
HEADINGS: Final = ("POD", "NODE", "SCORE", "WHY")
GAP: Final = 2
"""Blanks between two columns."""
NONE: Final = "-"
NOTHING_PENDING: Final = "no pod is pending"

_STYLES: Final = {
    PlacementOutcome.PLACED: "",
    PlacementOutcome.PREEMPTING: "yellow",
    PlacementOutcome.REFUSED: "red",
    PlacementOutcome.GATED: "dim",
    PlacementOutcome.LEAVING: "dim",
    PlacementOutcome.FOREIGN: "dim",
}


def table(rehearsed: Rehearsed, *, wide: bool) -> list[str]:
    """Columns, and a line of totals at the end."""
    from rich.table import Table

    console, text = canvas(WIDE_WIDTH if wide else WIDTH)
    if rehearsed.placements:
        rows = [_cells(placement, wide) for placement in rehearsed.placements]
        grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        for heading, column_width in zip(HEADINGS, _widths(rows, console.width), strict=True):
            justified: JustifyMethod = "right" if heading == "SCORE" else "left"
            grid.add_column(heading, width=column_width, overflow="fold", justify=justified)
        for placement, cells in zip(rehearsed.placements, rows, strict=True):
            grid.add_row(*cells, style=_STYLES[placement.outcome])
        console.print(grid)
        console.print()
    console.print(_totals(rehearsed))
    if rehearsed.money is not None:
        console.print(printable(before_and_after(*rehearsed.money)))
    return drawn(text)


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Each column as wide as its widest cell, a third of the width at most; the last gets the rest."""
    most = max(width // 3, 1)
    columns = list(zip(HEADINGS, *rows, strict=True))
    taken = [min(max(len(cell) for cell in column), most) for column in columns[:-1]]
    return [*taken, max(width - sum(taken) - GAP * len(HEADINGS), 1)]


def _cells(placement: Placement, wide: bool) -> tuple[str, ...]:
    lines = [why(placement, whole=True), *details(placement)] if wide else [why(placement)]
    ranked = placement.summary.chosen if placement.summary is not None else None
    score = NONE if ranked is None else str(ranked.total)
    return placement.key, placement.node or NONE, score, "\n".join(printable(line) for line in lines)


def why(placement: Placement, *, whole: bool = False) -> str:
    """The reason in one line; `whole` adds what preemption found."""
    summary = placement.summary
    if summary is None:
        return placement.message
    message = summary.message if whole else summary.message.removesuffix(summary.remedy).rstrip()
    match placement.outcome:
        case PlacementOutcome.PLACED:
            return _why_best(placement, summary) + _written(placement)
        case PlacementOutcome.PREEMPTING:
            return f"{_evicting(placement)}{_written(placement)}; before that, {message}"
        case PlacementOutcome.REFUSED | PlacementOutcome.GATED | PlacementOutcome.LEAVING | PlacementOutcome.FOREIGN:
            return message
        case _:
            assert_never(placement.outcome)


def _why_best(placement: Placement, summary: PodSummary) -> str:
    chosen, runner_up = summary.chosen, summary.runner_up
    if chosen is None or runner_up is None:
        return f"the only one of {plural(summary.node_count, 'node')} that fits"
    fit = f"{summary.feasible} of {plural(summary.node_count, 'node')} fit"
    if placement.pod.status.nominated_node_name == placement.node:
        return f"{fit}; this one is nominated for it"
    ahead = chosen.total - runner_up.total
    return (
        f"{fit}; {ahead} ahead of {runner_up.node}" if ahead else f"{fit}; tied with {runner_up.node}, the first wins"
    )


def _written(placement: Placement) -> str:
    """What plugins chose besides the node."""
    chosen = "".join(f"; {key.rpartition('/')[2]}: {value}" for key, value in placement.annotations)
    devices = ", ".join(f"{one['pool']}/{one['device']}" for one in device_values(placement.devices))
    return f"{chosen}; gets {devices}" if devices else chosen


def _evicting(placement: Placement) -> str:
    """Pods that are already being deleted make room, too: then there may be nothing to evict."""
    return (
        f"evicts {', '.join(placement.evicted)}"
        if placement.evicted
        else "takes the room of pods that are being deleted"
    )


def details(placement: Placement) -> list[str]:
    """What `wide` adds: the scores of the node, and why other nodes were refused."""
    summary = placement.summary
    if summary is None:
        return []
    lines = []
    if summary.chosen is not None:
        scores = (f"{plugin} {score}" for plugin, score in summary.chosen.plugins.items())
        lines.append(f"scores: {', '.join(scores) or 'none'}")
    by_reason: dict[str, list[RefusalSummary]] = {}
    for one in summary.refused:
        by_reason.setdefault(one.reason, []).append(one)
    return lines + [f"refused: {_refused(reason, those)}" for reason, those in by_reason.items()]


def _refused(reason: str, those: Sequence[RefusalSummary]) -> str:
    """A reason may occur twice: where evicting pods could help, and where not."""
    count = sum(one.count for one in those)
    named = [name for one in those for name in one.examples][:EXAMPLES]
    more = f" and {count - len(named)} more" if count > len(named) else ""
    return f"{count} {reason}: {', '.join(named)}{more}"


def _totals(rehearsed: Rehearsed) -> str:
    """`13 pods, 9 nodes: 8 placed, 1 placed by evicting 1, 3 fit nowhere, 1 gated`."""
    if not rehearsed.placements:
        return NOTHING_PENDING
    of = {outcome: [one for one in rehearsed.placements if one.outcome is outcome] for outcome in PlacementOutcome}
    evicted = sum(len(one.evicted) for one in of[PlacementOutcome.PREEMPTING])
    parts = [
        (len(of[PlacementOutcome.PLACED]), "placed"),
        (len(of[PlacementOutcome.PREEMPTING]), f"placed by evicting {evicted}"),
        (len(of[PlacementOutcome.REFUSED]), "fit nowhere"),
        (len(of[PlacementOutcome.GATED]), "gated"),
        (len(of[PlacementOutcome.LEAVING]), "being deleted"),
        (len(of[PlacementOutcome.FOREIGN]), "of other schedulers"),
    ]
    counts = ", ".join(f"{count} {what}" for count, what in parts if count)
    return f"{plural(len(rehearsed.placements), 'pod')}, {plural(rehearsed.node_count, 'node')}: {counts}"
