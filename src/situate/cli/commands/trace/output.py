"""The figures of a trace as a table and as JSON. Prints nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from situate.cli.output.text import columns, printable
from situate.sim.openb.figures import AllocationFigure, PolicyFigures

if TYPE_CHECKING:
    from situate.cli.commands.trace import OpenbTrace

NONE: Final = "-"
GAP: Final = 3
DIGITS: Final = 4


def as_table(read: OpenbTrace, seeds: range, found: Sequence[PolicyFigures]) -> str:
    """A line for each policy."""
    gpus = sum(node.gpus for node in read.nodes)
    head = (
        f"openb {printable(read.workload)}: {len(read.nodes):,} nodes with {gpus:,} GPUs, {len(read.pods):,} pods; "
        f"{_seeds(seeds)}; percent of GPUs allocated when so much is requested\n\n"
    )
    rows = [["POLICY"], *([printable(one.policy)] for one in found)]
    has_published = any(figure.published is not None for one in found for figure in one.marks)
    for at, mark in enumerate(figure.mark for figure in found[0].marks):
        rows[0] += [f"AT {mark} %", *(["PUBLISHED"] if has_published else [])]
        for row, one in zip(rows[1:], found, strict=True):
            row += [_mean(one.marks[at]), *([_published(one.marks[at])] if has_published else [])]
    rows[0] += ["PLACED"]
    for row, one in zip(rows[1:], found, strict=True):
        row += [f"{round(sum(run.placed for run in one.runs) / len(one.runs)):,}"]
    lines = columns(rows[0], rows[1:], gap=GAP, numbers=True)
    return head + "".join(f"{line}\n" for line in lines)


def _mean(figure: AllocationFigure) -> str:
    deviation = figure.deviation
    return f"{figure.mean:.2f}" if deviation is None else f"{figure.mean:.2f} ± {deviation:.2f}"


def _published(figure: AllocationFigure) -> str:
    return NONE if figure.published is None else f"{figure.published:.2f}"


def _seeds(seeds: range) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def as_json(read: OpenbTrace, seeds: range, found: Sequence[PolicyFigures]) -> str:
    document = {
        "trace": "openb",
        "pods": {"name": read.workload, "count": len(read.pods)},
        "nodes": len(read.nodes),
        "gpus": sum(node.gpus for node in read.nodes),
        "seeds": list(seeds),
        "policies": [_policy(one) for one in found],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


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
