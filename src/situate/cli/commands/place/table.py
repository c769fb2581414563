"""A rehearsal as a table for people: where each pod went, and why there. Writes to nothing; the command prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from situate.cli.commands.place.rehearsal import Outcome, Placement, Rehearsed
from situate.cli.commands.place.summary import EXAMPLES, Finding, Ranked, Refused
from situate.cli.output.console import WIDTH, canvas, drawn
from situate.cli.output.money import before_and_after

if TYPE_CHECKING:
    from rich.console import JustifyMethod

WIDE_WIDTH: Final = 160
HEADINGS: Final = ("POD", "NODE", "SCORE", "WHY")
GAP: Final = 2
"""Blanks between two columns."""
NONE: Final = "-"
NOBODY_WAITS: Final = "no pod waits for a node"

_STYLES: Final = {
    Outcome.PLACED: "",
    Outcome.PREEMPTING: "yellow",
    Outcome.REFUSED: "red",
    Outcome.GATED: "dim",
    Outcome.LEAVING: "dim",
    Outcome.FOREIGN: "dim",
}


def table(rehearsed: Rehearsed, *, wide: bool, terminal_width: int | None, colour: bool = False) -> str:
    """Columns of text, a line of sums at the end. `terminal_width` is None where there is no terminal."""
    from rich.table import Table

    console, text = canvas(terminal_width, colour=colour, width=WIDE_WIDTH if wide else WIDTH)
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
    console.print(sums(rehearsed))
    if rehearsed.money is not None:
        console.print(printable(before_and_after(*rehearsed.money)))
    return drawn(text)


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Each column as wide as its widest cell, but none may crowd out the last, which gets what is left."""
    most = max(width // 3, 1)
    columns = list(zip(HEADINGS, *rows, strict=True))
    taken = [min(max(len(cell) for cell in column), most) for column in columns[:-1]]
    return [*taken, max(width - sum(taken) - GAP * len(HEADINGS), 1)]


def _cells(placement: Placement, wide: bool) -> tuple[str, ...]:
    lines = [why(placement, whole=True), *details(placement)] if wide else [why(placement)]
    ranked = placement.finding.chosen if placement.finding is not None else None
    score = NONE if ranked is None else str(ranked.total)
    return placement.key, placement.node or NONE, score, "\n".join(printable(line) for line in lines)


def printable(text: str) -> str:
    """The text with nothing in it that a terminal would obey: plugins of others say what they like."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def why(placement: Placement, *, whole: bool = False) -> str:
    """The reason in one line; `whole` is with what preemption had to say."""
    finding = placement.finding
    if finding is None:
        return placement.message
    told = finding.message if whole else finding.message.removesuffix(finding.remedy).rstrip()
    match placement.outcome:
        case Outcome.PLACED:
            return _why_best(placement, finding) + _written(placement)
        case Outcome.PREEMPTING:
            return f"{_evicting(placement)}{_written(placement)}; before that, {told}"
        case Outcome.REFUSED | Outcome.GATED | Outcome.LEAVING | Outcome.FOREIGN:
            return told
        case _:
            assert_never(placement.outcome)


def _why_best(placement: Placement, finding: Finding) -> str:
    chosen, runner_up = finding.chosen, finding.runner_up
    if chosen is None or runner_up is None:
        return f"the only one of {_nodes(finding.node_count)} that fits"
    fit = f"{finding.feasible} of {_nodes(finding.node_count)} fit"
    if placement.pod.status.nominated_node_name == placement.node:
        return f"{fit}; this one is nominated for it"
    return f"{fit}; {_compared(chosen, runner_up)}"


def _written(placement: Placement) -> str:
    """What plugins chose beside the node."""
    return "".join(f"; {key.rpartition('/')[2]}: {value}" for key, value in placement.annotations)


def _compared(chosen: Ranked, runner_up: Ranked) -> str:
    ahead = chosen.total - runner_up.total
    return f"{ahead} ahead of {runner_up.node}" if ahead else f"tied with {runner_up.node}, the first wins"


def _evicting(placement: Placement) -> str:
    """Room is made also by pods that are being deleted already, and then there may be nobody to evict."""
    return f"evicts {', '.join(placement.evicted)}" if placement.evicted else "takes the room of pods that are leaving"


def details(placement: Placement) -> list[str]:
    """What `wide` adds: the scores of the node, and which nodes were refused for what."""
    finding = placement.finding
    if finding is None:
        return []
    lines = []
    if finding.chosen is not None:
        scores = (f"{plugin} {score}" for plugin, score in finding.chosen.scores.items())
        lines.append(f"scores: {', '.join(scores) or 'none'}")
    by_reason: dict[str, list[Refused]] = {}
    for one in finding.refused:
        by_reason.setdefault(one.reason, []).append(one)
    return lines + [f"refused: {_refused(reason, those)}" for reason, those in by_reason.items()]


def _refused(reason: str, those: Sequence[Refused]) -> str:
    """One reason may stand twice: where evicting pods could help, and where not."""
    count = sum(one.count for one in those)
    named = [name for one in those for name in one.examples][:EXAMPLES]
    more = f" and {count - len(named)} more" if count > len(named) else ""
    return f"{count} {reason}: {', '.join(named)}{more}"


def sums(rehearsed: Rehearsed) -> str:
    """`13 pods on 9 nodes: 8 placed, 1 placed by evicting 1, 3 fit nowhere, 1 not looked at`."""
    if not rehearsed.placements:
        return NOBODY_WAITS
    of = {outcome: [one for one in rehearsed.placements if one.outcome is outcome] for outcome in Outcome}
    evicted = sum(len(one.evicted) for one in of[Outcome.PREEMPTING])
    parts = [
        (len(of[Outcome.PLACED]), "placed"),
        (len(of[Outcome.PREEMPTING]), f"placed by evicting {evicted}"),
        (len(of[Outcome.REFUSED]), "fit nowhere"),
        (len(of[Outcome.GATED]), "gated"),
        (len(of[Outcome.LEAVING]), "being deleted"),
        (len(of[Outcome.FOREIGN]), "of other schedulers"),
    ]
    told = ", ".join(f"{count} {what}" for count, what in parts if count)
    return f"{_counted(len(rehearsed.placements), 'pod')}, {_nodes(rehearsed.node_count)}: {told}"


def _nodes(count: int) -> str:
    return _counted(count, "node")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
