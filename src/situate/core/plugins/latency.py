"""Latency: keep pods near a place that they name.

A table has the latency of each node, zone or region to each place, in milliseconds. An annotation of the pod names the
place; another sets a limit, beyond which the plugin refuses nodes. It prefers nearer nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar, Final

import msgspec
import numpy as np

from situate.core.contract import MAX_SCORE, Codes, Reason, Refusal, Scores, Wake
from situate.core.model.annotations import LATENCY_LIMIT_MS, LATENCY_PREFERENCE, LATENCY_TO
from situate.core.model.base import EMPTY
from situate.core.model.field_errors import child, invalid, required
from situate.core.model.latency import PlaceLatencies
from situate.core.model.node import Node
from situate.core.plugins.support.arguments import ArgModel, PluginArgs
from situate.core.plugins.support.normalize import highest, scaled
from situate.core.state.classes import PodClass
from situate.core.state.columns import IntColumn
from situate.core.state.view import View

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
TOO_FAR: Final = 1
NOT_KNOWN: Final = 2
UNKNOWN: Final = -1
MAX_MS: Final = 1_000_000_000
"""So that a sum of microseconds fits a column."""
MICROS: Final = 1_000
"""The table is in milliseconds, columns are in microseconds."""

_DECIMAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_DIGITS: Final = re.compile(r"[0-9]{1,3}", re.ASCII)


class LatencyFile(ArgModel, frozen=True, kw_only=True):
    """A latency table in a file of its own."""

    places: Mapping[str, PlaceLatencies] = EMPTY


class LatencyArgs(PluginArgs, frozen=True, kw_only=True):
    """`table_file`: the file with the table, which is read again when it changes. `places`: the table itself."""

    table_file: str = ""
    places: Mapping[str, PlaceLatencies] = EMPTY

    omit_empty = ("table_file", "places")

    def validate(self, path: str) -> list[str]:
        if not self.table_file and not self.places:
            return [required(child(path, "tableFile"), "or places: without either nothing is known of any place")]
        return latency_problems(child(path, "places"), self.places)


def latency_problems(path: str, places: Mapping[str, PlaceLatencies]) -> list[str]:
    """The problems of a latency table, in the arguments or in a file of its own."""
    return [
        invalid(f"{path}[{place}].{by}[{name}]", ms, f"not in valid range [0, {MAX_MS}]")
        for place, latencies in places.items()
        for by, table in (("nodes", latencies.nodes), ("zones", latencies.zones), ("regions", latencies.regions))
        for name, ms in table.items()
        if not (isfinite(ms) and 0 <= ms <= MAX_MS)
    ]


@dataclass(frozen=True, slots=True)
class LatencyRequest:
    """A pod's latency annotations, parsed."""

    place: str
    limit: int | None
    """In microseconds; None: no limit."""
    preference: int
    """The weight of a low latency, 0 to 100."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Ignores pods that name no place."""

    table: str = ""
    """The name of the table that changes arrive for; empty: none."""
    places: Mapping[str, PlaceLatencies] = field(default_factory=lambda: EMPTY)
    """The table until the first change arrives."""
    _key: bytes = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "Latency"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) exceeded the pod's latency limit", eviction_helps=False),
        Reason("node(s) had no known latency to the pod's place", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED, Wake.NODE_LABEL, Wake.LATENCY_CHANGED})

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", msgspec.json.encode((self.table, self.places)))

    @classmethod
    def from_args(cls, args: LatencyArgs, points: frozenset[str]) -> Latency:
        return cls(args.table_file, args.places)

    def check(self, pod: PodClass, view: View) -> Codes | Refusal | None:
        if not pod.annotations:
            return None
        request = latency_request(pod)
        if isinstance(request, Refusal):
            return request
        if request is None or request.limit is None:
            return None
        if request.place not in self.known(view):
            return Refusal(f'no latency is known to the place "{request.place}"')
        micros = self.micros(request.place, view)
        codes = (micros > request.limit).view(np.uint8)
        codes[micros == UNKNOWN] = NOT_KNOWN
        return codes

    def score(self, pod: PodClass, view: View) -> Scores | None:
        if not pod.annotations:
            return None
        request = latency_request(pod)
        if (
            request is None
            or isinstance(request, Refusal)
            or not request.preference
            or request.place not in self.known(view)
        ):
            return None
        micros = self.micros(request.place, view)
        unknown = micros == UNKNOWN
        top = highest(np.where(unknown, 0, micros), view.feasible)
        scores = scaled(np.where(unknown, top, micros), top, reverse=True)
        return scores if request.preference == MAX_SCORE else scores * request.preference // MAX_SCORE

    def known(self, view: View) -> Mapping[str, PlaceLatencies]:
        """The table as it is now, by place."""
        current = view.latencies(self.table) if self.table else None
        return self.places if current is None else current

    def micros(self, place: str, view: View) -> IntColumn:
        """The latency of every node of the view to a place, in microseconds; UNKNOWN where the table has none."""

        def compute(whole: View) -> IntColumn:
            latencies = self.known(whole)[place]
            nodes = (whole.node(row) for row in range(whole.size))
            return np.array([UNKNOWN if node is None else _micros(latencies, node) for node in nodes], np.int64)

        return view.memo((self.name, self._key, place), compute)[view.rows]


def latency_request(pod: PodClass) -> LatencyRequest | Refusal | None:
    """None without such annotations; a Refusal if they cannot be parsed."""
    notes = pod.annotations
    place, limit, preference = (notes.get(key) for key in (LATENCY_TO, LATENCY_LIMIT_MS, LATENCY_PREFERENCE))
    if not place:
        if limit is None and preference is None:
            return None
        return Refusal(
            f"annotation {LATENCY_LIMIT_MS if preference is None else LATENCY_PREFERENCE}: "
            f"needs {LATENCY_TO}, the place that it is about"
        )
    micros = None if limit is None else _limit(limit)
    if micros == UNKNOWN:
        return Refusal(f'annotation {LATENCY_LIMIT_MS}: "{limit}" is no number of milliseconds')
    counts = MAX_SCORE if preference is None else _percent(preference)
    if counts == UNKNOWN:
        return Refusal(f'annotation {LATENCY_PREFERENCE}: "{preference}" is no whole number from 0 to {MAX_SCORE}')
    return LatencyRequest(place, micros, counts)


def _limit(text: str) -> int:
    """Parse milliseconds into microseconds; UNKNOWN if the text is not a number."""
    if not _DECIMAL.fullmatch(text):
        return UNKNOWN
    whole, _, part = text.partition(".")
    return int(whole) * MICROS + int(part[:3].ljust(3, "0"))


def _percent(text: str) -> int:
    return int(text) if _DIGITS.fullmatch(text) and int(text) <= MAX_SCORE else UNKNOWN


def _micros(latencies: PlaceLatencies, node: Node) -> int:
    """The node's entry wins over its zone's, and that over its region's."""
    labels = node.metadata.labels
    for table, name in (
        (latencies.nodes, node.metadata.name),
        (latencies.zones, labels.get(ZONE, "")),
        (latencies.regions, labels.get(REGION, "")),
    ):
        if name in table:
            return round(table[name] * MICROS)
    return UNKNOWN
