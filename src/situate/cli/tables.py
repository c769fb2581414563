"""A rehearsal as a table for people: where each pod went, and why there. Writes to nothing; the command prints it."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Final, assert_never

from situate.cli.findings import Finding, Ranked, Refused
from situate.cli.rehearsal import Outcome, Placement, Rehearsed

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.text import Text

WIDTH: Final = 100
"""In characters, where the output is not a terminal, which has a width of its own."""
WIDE_WIDTH: Final = 160
HEADINGS: Final = ("POD", "NODE", "SCORE", "WHY")
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
    from rich.console import Console
    from rich.table import Table

    width = terminal_width or (WIDE_WIDTH if wide else WIDTH)
    text = StringIO()
    console = Console(
        file=text,
        width=width,
        height=100,  # or it asks the environment for both
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    if rehearsed.placements:
        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in HEADINGS[:-1]:
            grid.add_column(heading, overflow="fold", max_width=width // 3, justify=_justified(heading))
        grid.add_column(HEADINGS[-1], overflow="fold", min_width=width // 4)
        for placement in rehearsed.placements:
            grid.add_row(*_cells(placement, wide))
        console.print(grid)
        console.print()
    console.print(sums(rehearsed))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def _justified(heading: str) -> JustifyMethod:
    return "right" if heading == "SCORE" else "left"


def _cells(placement: Placement, wide: bool) -> Sequence[Text]:
    from rich.text import Text

    lines = [why(placement)]
    if wide:
        lines += details(placement)
    ranked = placement.finding.chosen if placement.finding is not None else None
    score = NONE if ranked is None else str(ranked.total)
    cells = (placement.key, placement.node or NONE, score, "\n".join(printable(line) for line in lines))
    return [Text(cell, style=_STYLES[placement.outcome]) for cell in cells]


def printable(text: str) -> str:
    """The text with nothing in it that a terminal would obey: plugins of others say what they like."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def why(placement: Placement) -> str:
    """The reason in one line."""
    finding = placement.finding
    if finding is None:
        return placement.message
    match placement.outcome:
        case Outcome.PLACED:
            return _why_best(placement, finding)
        case Outcome.PREEMPTING:
            return f"{_evicting(placement)}; before: {finding.told}"
        case Outcome.REFUSED | Outcome.GATED | Outcome.LEAVING | Outcome.FOREIGN:
            return finding.told
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


def _compared(chosen: Ranked, runner_up: Ranked) -> str:
    ahead = chosen.total - runner_up.total
    return f"{ahead} ahead of {runner_up.node}" if ahead else f"level with {runner_up.node}, and before it in order"


def _evicting(placement: Placement) -> str:
    """Room is made also by pods that are being deleted already, and then there may be nobody to evict."""
    return f"evicts {', '.join(placement.evicted)}" if placement.evicted else "takes the room of pods that are leaving"


def details(placement: Placement) -> list[str]:
    """What `wide` adds: the scores of the node, who was refused, and the whole message."""
    finding = placement.finding
    if finding is None:
        return []
    lines = []
    if finding.chosen is not None:
        scores = ", ".join(f"{plugin} {score}" for plugin, score in finding.chosen.scores.items())
        lines.append(f"scores: {scores}" if scores else "scores: none")
    if finding.refused:
        lines.append(f"refused: {'; '.join(_refused(one) for one in finding.refused)}")
    if placement.message:
        lines.append(f"message: {placement.message}")
    return lines


def _refused(refused: Refused) -> str:
    more = refused.count - len(refused.examples)
    named = ", ".join((*refused.examples, *((f"{more} more",) if more else ())))
    return f"{refused.count} {refused.reason} ({named})"


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
