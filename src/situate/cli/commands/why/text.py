"""The explanation of a pod as text and tables for people, the summary first. Prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from situate.cli.commands.why.waiting import Waiting
from situate.cli.output.console import canvas, drawn
from situate.cli.output.text import plural, printable
from situate.core.explain.explanation import (
    WAITING_STATES,
    Explanation,
    NodeExplanation,
    NodeScores,
    SchedulingState,
    Verdict,
)

if TYPE_CHECKING:
    from rich.console import Console

_STYLES: Final = {
    SchedulingState.UNSCHEDULABLE: "bold red",
    SchedulingState.SCHEDULABLE: "bold green",
    SchedulingState.BOUND: "bold green",
    SchedulingState.GATED: "bold yellow",
    SchedulingState.LEAVING: "dim",
    SchedulingState.FINISHED: "dim",
}
HEADING: Final = "bold"
NO_WAY: Final = "no small change was found that would make it fit"


def text(explanation: Explanation, waiting: Waiting, unserved: str = "", *, searched: bool = True) -> list[str]:
    """`unserved`: that no scheduler serves the pod, if so. `searched`: whether changes that help were searched for."""
    console, written = canvas()
    _summary(console, explanation, waiting, unserved)
    if explanation.one is not None:
        _one_node(console, explanation.one)
    else:
        _verdicts(console, explanation.verdicts, explanation.node_count)
        _score_table(console, explanation.scores, explanation)
    _what_next(console, explanation, searched)
    return drawn(written)


def _say(console: Console, line: str, style: str = "", *, indent: int = 0, first: str = "") -> None:
    """One paragraph, indented below `first`, which stands before it."""
    from rich.padding import Padding
    from rich.table import Table

    if not first:
        console.print(Padding(printable(line), (0, 0, 0, indent)), style=style)
        return
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(printable(first), printable(line))
    console.print(Padding(grid, (0, 0, 0, indent)), style=style)


def _summary(console: Console, explanation: Explanation, waiting: Waiting, unserved: str) -> None:
    meta = explanation.pod.metadata
    _say(console, f"{meta.namespace}/{meta.name}: {explanation.state.value}", _STYLES[explanation.state])
    message, lines = explanation.message, _waiting(explanation, waiting)
    if unserved and explanation.state in WAITING_STATES:
        message = f"{unserved}: nobody is going to place it"
        lines.append(f"{explanation.profile} would say: {explanation.message}")
    console.print(printable(message), soft_wrap=True)  # one line, so that it can be searched for
    for line in explanation.waiting_claims:
        _say(console, line)
    if not unserved and explanation.profile != explanation.pod.spec.scheduler_name:
        lines.append(
            f"scheduler {explanation.pod.spec.scheduler_name} places it, whose configuration is unknown here: "
            f"this is what {explanation.profile} would decide"
        )
    if (
        waiting.recorded
        and explanation.state is SchedulingState.UNSCHEDULABLE
        and waiting.recorded != explanation.message
    ):
        lines.append(f"its scheduler recorded earlier: {waiting.recorded}")
    for line in lines:
        _say(console, line, "dim")


def _waiting(explanation: Explanation, waiting: Waiting) -> list[str]:
    if explanation.state not in WAITING_STATES:
        return []
    parts = [f"has been waiting since {waiting.since}"] if waiting.since else []
    if waiting.reason:
        parts.append(f"{waiting.reason} since {waiting.refused_since}" if waiting.refused_since else waiting.reason)
    if waiting.attempts:
        least = "at least " if waiting.attempts_from == "events" else ""
        parts.append(f"tried {least}{plural(waiting.attempts, 'time')}")
    if waiting.last_try:
        parts.append(f"last {waiting.last_try}")
    if explanation.pod.status.nominated_node_name:
        parts.append(f"nominated for {explanation.pod.status.nominated_node_name}")
    return ["; ".join(parts)] if parts else []


def _verdicts(console: Console, verdicts: Sequence[Verdict], nodes: int) -> None:
    if not verdicts:
        return
    console.print()
    _say(console, "What rules out nodes, plugin by plugin", HEADING)
    for verdict in verdicts:
        where = "the pod itself" if verdict.of_pod else f"{verdict.count} of {plural(nodes, 'node')}"
        _say(console, f"{where}: {verdict.text}", first=f"{verdict.plugin}", indent=2)
        for detail in verdict.details:
            names = ", ".join(detail.nodes) + (", …" if detail.count > len(detail.nodes) else "")
            shown = names not in detail.text and not any(name in detail.text for name in detail.nodes)
            line = f"{detail.text} [{plural(detail.count, 'node')}: {names}]" if shown else detail.text
            _say(console, line, "dim", first="-", indent=4)


def _one_node(console: Console, one: NodeExplanation) -> None:
    console.print()
    _say(console, f"Node {one.node} {'accepts it' if not one.verdicts else 'refuses it'}", HEADING)
    for verdict in one.verdicts:
        _say(console, verdict.text, first=verdict.plugin, indent=2)
        for detail in verdict.details:
            _say(console, detail.text, "dim", first="-", indent=4)
            for line in (*_kept_devices(detail.values), *_holders(detail.values)):
                _say(console, line, "dim", indent=8)
    _say(console, f"accepted by: {', '.join(one.silent)}", "dim", indent=2)
    if one.scores is not None:
        parts = ", ".join(f"{plugin} {score}" for plugin, score in one.scores.plugins.items())
        _say(console, f"score {one.scores.total}: {parts}", indent=2)


def _holders(values: object) -> list[str]:
    """The pods that hold some of what is short, the largest first."""
    closest = values.get("closest") if isinstance(values, dict) else None
    if not isinstance(closest, list):
        return []
    return [f"{holder['pod']} holds {holder['amount']}" for one in closest for holder in one["holders"]]


def _kept_devices(values: object) -> list[str]:
    """The devices that a request cannot have, by reason."""
    closest = values.get("closest") if isinstance(values, dict) else None
    if not isinstance(closest, list):
        return []
    return [f"{', '.join(kept['devices'])}: {kept['text']}" for one in closest for kept in one.get("kept", ())]


def _score_table(console: Console, scores: Sequence[NodeScores], explanation: Explanation) -> None:
    if not scores:
        return
    from rich.table import Table

    console.print()
    more = f", the best {len(scores)} of {explanation.feasible}" if explanation.feasible > len(scores) else ""
    _say(console, f"Nodes that fit{more}", HEADING)
    plugins = [plugin for plugin in scores[0].plugins if any(one.plugins.get(plugin) for one in scores)]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("NODE", overflow="fold")
    grid.add_column("SCORE", justify="right")
    for plugin in plugins:
        grid.add_column(_heading(plugin), justify="right", overflow="fold")
    for one in scores:
        cells = [str(one.plugins.get(plugin, 0)) for plugin in plugins]
        grid.add_row(printable(one.node), str(one.total), *cells, style="bold" if one.node == explanation.node else "")
    console.print(grid)


def _heading(plugin: str) -> str:
    """Short enough for a column: `NodeResourcesFit` is `Fit`."""
    return plugin.removeprefix("NodeResources").removeprefix("Pod").removesuffix("Toleration")


def _what_next(console: Console, explanation: Explanation, searched: bool) -> None:
    if explanation.preemption is not None:
        console.print()
        victims = ", ".join(explanation.preemption.victims) or "pods that are already being deleted"
        _say(console, f"The scheduler would evict {victims}, and place it on {explanation.preemption.node}", HEADING)
    if explanation.wakes:
        console.print()
        _say(console, "The scheduler tries it again when", HEADING)
        for change, plugins in explanation.wakes:
            _say(console, f"{change} ({', '.join(plugins)})", first="-", indent=2)
    if explanation.suggestions:
        console.print()
        _say(console, "It would fit with one of these changes (each was tried)", HEADING)
        for number, way in enumerate(explanation.suggestions, 1):
            where = ", ".join(way.fits) + (", …" if way.fit_count > len(way.fits) else "")
            line = f"{way.text} → {plural(way.fit_count, 'node')}: {where}"
            _say(console, line, first=f"{number}.", indent=2)
    elif searched and explanation.state is SchedulingState.UNSCHEDULABLE:
        console.print()
        _say(console, NO_WAY, HEADING)
