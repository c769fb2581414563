"""A simulation as plain values for programs. docs/guides/simulate.md lists the keys."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from situate.core.changes import Millis
from situate.core.plugins.support.prices import format_price
from situate.sim.whatif.figures import Figures, Money, ResourceUsage, SpreadFigures

DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Simulated:
    """One configuration, and how it went."""

    name: str
    figures: Figures


def as_values(simulated: Sequence[Simulated], *, seed: int) -> dict[str, Any]:
    """Every key is always there; what is unknown is null."""
    return {"seed": seed, "configurations": [_values(one) for one in simulated]}


def _values(one: Simulated) -> dict[str, Any]:
    figures = one.figures
    return {
        "name": one.name,
        "seconds": _seconds(figures.end_ms),
        "pods": asdict(figures.counts),
        "pending": [
            {"reason": each.reason, "pods": each.pods, "examples": list(each.examples)} for each in figures.pending
        ],
        "wait": {
            "p50": _seconds(figures.wait.p50_ms),
            "p99": _seconds(figures.wait.p99_ms),
            "max": _seconds(figures.wait.max_ms),
        },
        "resources": {each.name: _resource(each) for each in figures.resources},
        "nodes": {
            "total": figures.nodes.total,
            "used": {"mean": _rounded(figures.nodes.mean), "peak": figures.nodes.peak, "end": figures.nodes.end},
        },
        "spread": {
            "at": _seconds(figures.busiest_ms),
            "zones": _spread(figures.zones),
            "hosts": _spread(figures.hosts),
        },
        "evictions": figures.evictions,
        "money": None if figures.money is None else _money(figures.money),
        "series": _series(figures),
    }


def _seconds(ms: Millis | None) -> float | None:
    return None if ms is None else ms / 1_000


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _resource(one: ResourceUsage) -> dict[str, Any]:
    return {
        "allocatable": one.allocatable,
        "utilisation": {"mean": _rounded(one.mean), "peak": _rounded(one.peak), "end": _rounded(one.end)},
        "fragmentation": {"mean": _rounded(one.fragmentation), "end": _rounded(one.fragmentation_end)},
    }


def _spread(one: SpreadFigures) -> dict[str, Any]:
    return {
        "domains": one.domains,
        "workloads": one.workloads,
        "mean": _rounded(one.mean) if one.workloads else None,
        "worst": one.worst if one.workloads else None,
        "worstWorkload": one.worst_workload or None,
    }


def _money(one: Money) -> dict[str, Any]:
    """Money is text, so that no float rounds it."""
    return {
        "currency": one.currency,
        "anHour": {"mean": _amount(one.mean), "peak": _amount(one.peak), "end": _amount(one.end)},
        "allNodes": _amount(one.all_nodes),
        "unpriced": one.unpriced,
    }


def _amount(value: float) -> str:
    return format_price(round(value * 1_000_000))


def _series(figures: Figures) -> dict[str, Any]:
    series = figures.series
    return {
        "time": [ms / 1_000 for ms in series.moments.tolist()],
        "utilisation": {
            name: [_rounded(value) for value in curve.tolist()] for name, curve in series.utilisation.items()
        },
        "pending": {reason: curve.tolist() for reason, curve in series.pending.items()},
        "running": series.running.tolist(),
        "nodesUsed": series.nodes_used.tolist(),
        "moneyAnHour": None if series.money is None else [_rounded(value) for value in series.money.tolist()],
    }
