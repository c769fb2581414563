"""The figures of a trace as a table and as plain values. Prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from situate.cli.output.text import columns, printable
from situate.sim.openb.figures import PolicyFigures

if TYPE_CHECKING:
    from situate.cli.commands.trace import OpenbTrace

NONE: Final = "-"
DEVIATION: Final = "±"
"""The column of the largest standard deviation of a line."""
GAP: Final = 3
DIGITS: Final = 4


def as_table(read: OpenbTrace, seeds: range, found: Sequence[PolicyFigures]) -> str:
    """A line for each policy."""
    gpus = sum(node.gpus for node in read.nodes)
    head = (
        f"openb {printable(read.workload)}: {len(read.nodes):,} nodes with {gpus:,} GPUs, {len(read.pods):,} pods; "
        f"{_seeds(seeds)}; percent of GPUs allocated when so much is requested"
        f"{'; ±: the largest deviation' if len(seeds) > 1 else ''}\n\n"
    )
    marks = [figure.mark for figure in found[0].marks]
    theirs = [at for at in range(len(marks)) if any(one.marks[at].published is not None for one in found)]
    header = ["POLICY", *(f"{mark} %" for mark in marks), *([DEVIATION] if len(seeds) > 1 else [])]
    header += [*(f"PUBLISHED {marks[at]} %" for at in theirs), "PLACED"]
    rows = [
        [
            printable(one.policy),
            *(_percent(figure.mean) for figure in one.marks),
            *([_percent(one.deviation)] if len(seeds) > 1 else []),
            *(_percent(one.marks[at].published) for at in theirs),
            f"{round(sum(run.placed for run in one.runs) / len(one.runs)):,}",
        ]
        for one in found
    ]
    lines = columns(header, rows, gap=GAP, numbers=True)
    return head + "".join(f"{line}\n" for line in lines)


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _seeds(seeds: range) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def as_values(read: OpenbTrace, seeds: range, found: Sequence[PolicyFigures]) -> dict[str, Any]:
    return {
        "trace": "openb",
        "pods": {"name": read.workload, "count": len(read.pods)},
        "nodes": len(read.nodes),
        "gpus": sum(node.gpus for node in read.nodes),
        "seeds": list(seeds),
        "policies": [_policy(one) for one in found],
    }


def _policy(one: PolicyFigures) -> dict[str, Any]:
    return {
        "policy": one.policy,
        "allocatedPercent": [
            {
                "atPercent": figure.mark,
                "mean": round(figure.mean, DIGITS),
                "deviation": None if figure.deviation is None else round(figure.deviation, DIGITS),
                "published": figure.published,
                "bySeed": [round(value, DIGITS) for value in figure.by_seed],
            }
            for figure in one.marks
        ],
        "arrivedBySeed": [run.pods for run in one.runs],
        "placedBySeed": [run.placed for run in one.runs],
    }
