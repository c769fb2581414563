"""Server-sent events: each view reads the model at its own pace, so nothing is buffered for a slow reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec
import numpy as np

from situate.core.explain.formatting import roughly
from situate.core.state.classes import CPU, MEMORY, PODS
from situate.web.map_columns import NONE, NOT_READY
from situate.web.model import ClusterModel
from situate.web.throttled import ThrottledRows

COMMENT: Final = b":\n\n"
_encode = msgspec.json.Encoder().encode


def event(name: str, value: object) -> bytes:
    """One event. JSON has no line breaks, so its data is one line."""
    return b"event: " + name.encode() + b"\ndata: " + _encode(value) + b"\n\n"


class Reading(Protocol):
    """One reader of a view: what it has not seen yet, as bytes to send."""

    def next(self) -> bytes: ...

    @property
    def late(self) -> bool:
        """Whether there is more to send, in a second at the latest."""


class SummaryReading:
    """What every page shows at its top; only when it differs from what was sent."""

    late = False

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._sent: dict[str, Any] | None = None

    def next(self) -> bytes:
        now = summary(self._model)
        if now == self._sent:
            return b""
        self._sent = now
        return event("summary", now)


class MapReading:
    late = False

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._tick = self._layout = -1

    def next(self) -> bytes:
        model = self._model
        if not model.scope.whole:
            return b""
        found = model.columns.read(model.cluster, self._tick, self._layout)
        self._tick, self._layout = model.tick, model.columns.layout
        return event("map", found) if found is not None else b""


class RowsReading:
    """Of rows that are made for all readers together."""

    def __init__(self, name: str, rows: ThrottledRows, model: ClusterModel) -> None:
        self._name = name
        self._rows = rows
        self._model = model
        self._tick = -1

    def next(self) -> bytes:
        found = self._rows.read(self._model.tick, self._tick)
        if found is None:
            return b""
        self._tick = self._model.tick
        return event(self._name, found)

    @property
    def late(self) -> bool:
        return self._rows.late


class PlacementReading:
    late = False

    def __init__(self, model: ClusterModel) -> None:
        self._log = model.placements
        self._sent: tuple[int, str] | None = None

    def next(self) -> bytes:
        log, before = self._log, self._sent
        if before == (log.last, log.problem):
            return b""
        self._sent = (log.last, log.problem)
        found = log.after(before[0] if before is not None else 0)
        return event("placements", {"all": before is None, "placements": found, "problem": log.problem})


class NothingMore:
    """A page that needs the summary alone."""

    late = False

    def __init__(self, model: ClusterModel) -> None:
        del model

    def next(self) -> bytes:
        return b""


VIEWS: Final[Mapping[str, Callable[[ClusterModel], Reading]]] = {
    "map": MapReading,
    "waiting": lambda model: RowsReading("waiting", model.waiting, model),
    "gangs": lambda model: RowsReading("gangs", model.gang_rows, model),
    "preemptions": lambda model: RowsReading("preemptions", model.preemption_rows, model),
    "placements": PlacementReading,
    "summary": NothingMore,
}


def summary(model: ClusterModel) -> dict[str, Any]:
    """Counts and sums of the whole cluster."""
    nodes = model.cluster.nodes
    found: dict[str, Any] = {
        "whole": model.scope.whole,
        "namespace": model.scope.namespace,
        "problems": model.problems(),
        "listing": model.listing,
        "waiting": len(model.pending),
        "bound": len(model.cluster.pods.rows) + sum(map(len, model.cluster.orphans.values())),
    }
    if model.scope.whole:
        size, present = nodes.size, nodes.present[: nodes.size]
        found["nodes"] = int(np.count_nonzero(present))
        found["notReady"] = model.columns.count(NOT_READY)
        found["cordoned"] = int(np.count_nonzero(nodes.unschedulable[:size] & present))
        totals = {}
        for name, at in (("cpu", CPU), ("memory", MEMORY)):
            # In floats: the bytes of many nodes may not fit an integer.
            room, asked = (
                int(table[at, :size].sum(dtype=np.float64)) for table in (nodes.allocatable, nodes.requested)
            )
            used = sum(amounts[at == MEMORY] for amounts in model.usage.values())
            share = _share(used, room) if model.usage else NONE
            totals[name] = _total(_short(name, asked), _short(name, room), _share(asked, room), share)
        room, asked = int(nodes.allocatable[PODS, :size].sum()), len(model.cluster.pods.rows)
        totals["pods"] = _total(str(asked), str(room), _share(asked, room))
        found["totals"] = totals
    return found


def _total(requested: str, allocatable: str, share: int, used: int = NONE) -> dict[str, Any]:
    return {"requested": requested, "allocatable": allocatable, "share": share, "used": used}


def _short(resource: str, amount: int) -> str:
    """For a heading: cores without thousandths."""
    return f"{amount / 1000:,.1f}".removesuffix(".0") if resource == "cpu" else roughly(resource, amount)


def _share(asked: int, room: int) -> int:
    return -1 if room <= 0 else round(1000 * asked / room)
