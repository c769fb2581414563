"""What `situate top` draws: a model as lines of text, for a screen of a given size."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import click

from situate.cli.output.text import age, columns, printable
from situate.core.model.timestamp import TimestampError, epoch_ms
from situate.web.map_columns import CORDONED, NOT_READY, TAINTED
from situate.web.model import ClusterModel
from situate.web.streams import summary

VIEWS: Final = {"m": "map", "n": "nodes", "w": "waiting", "p": "placements"}
KEYS: Final = "m map   n nodes   w waiting   p placements   ↑ ↓ scroll   q quit"
STEPS: Final = ((0, "·", 244), (250, "░", 153), (500, "▒", 110), (750, "▓", 67), (900, "▓", 25), (999, "█", 18))
"""Up to which share in per mille: a character and a colour of 256. Characters alone tell the steps apart, too."""
FULL: Final = ("█", 208)
LOST: Final = ("x", 244)
PRINTED: Final = 10
"""Rows of each table where the output is not a terminal."""
BAR: Final = 20
GAP: Final = 3


@dataclass(frozen=True, slots=True)
class Screen:
    """How large it is, and what to show on it."""

    width: int
    height: int
    view: str = "map"
    offset: int = 0
    """Rows that are scrolled away."""
    colour: bool = True


def frame(model: ClusterModel, cluster: str, screen: Screen) -> list[str]:
    """As many lines as the screen has."""
    head = [_clipped(line, screen.width) for line in heading(model, cluster)]
    height = max(1, screen.height - len(head) - 3)
    if screen.view == "map":
        body = _map(model, screen.width, height, colour=screen.colour)
    else:
        lines = _TABLES[screen.view](model)
        at = min(screen.offset, most_offset(len(lines), height))
        body = [lines[0], *lines[1 + at :][: height - 1]] if lines else []
        body = [_clipped(line, screen.width) for line in body]
    foot = click.style(_clipped(KEYS, screen.width), reverse=True) if screen.colour else _clipped(KEYS, screen.width)
    return [*head, "", *body[:height], *[""] * (height - len(body)), "", foot][: screen.height]


def most_offset(lines: int, height: int) -> int:
    """How far a table with a heading can be scrolled."""
    return max(0, lines - height)


def printed(model: ClusterModel, cluster: str) -> list[str]:
    """Everything once, the worst first."""
    lines = heading(model, cluster)
    for title, table in (("nodes", _nodes), ("waiting", _waiting)):
        rows = table(model)
        if len(rows) > 1:
            lines += ["", *rows[: PRINTED + 1]]
            if len(rows) > PRINTED + 1:
                lines.append(f"... and {len(rows) - PRINTED - 1:,} more {'rows' if title == 'waiting' else title}")
    return lines


def heading(model: ClusterModel, cluster: str) -> list[str]:
    found = summary(model)
    state = "counting" if found["listing"] else "live"
    where = f", namespace {found['namespace']}" if found["namespace"] else ""
    lines = [f"{cluster}{where}   {time.strftime('%H:%M:%S')}   {state}"]
    pods = f"Pods    {found['bound']:,} placed, {found['waiting']:,} waiting"
    if found["whole"]:
        odd = [
            f"{found[key]:,} {word}"
            for key, word in (("notReady", "not ready"), ("cordoned", "cordoned"))
            if found[key]
        ]
        lines.append(f"Nodes   {found['nodes']:,}{' (' + ', '.join(odd) + ')' if odd else ''}")
        lines.append(pods)
        lines += [_total(name, found["totals"][name]) for name in ("cpu", "memory")]
    else:
        lines.append(pods)
    return [*map(printable, lines), *(f"note: {printable(text)}" for text in found["problems"])]


def _total(name: str, one: Mapping[str, Any]) -> str:
    filled = min(BAR, max(0, round(one["share"] * BAR / 1_000)))
    bar = "█" * filled + "░" * (BAR - filled)
    return f"{name.capitalize():7} {bar} {_percent(one['share'])}, {one['requested']} of {one['allocatable']} requested"


# ── the views ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Cell:
    name: str
    zone: str
    state: int
    shares: Sequence[int]

    @property
    def worst(self) -> int:
        """The share of its scarcest resource; a node that is lost comes before all."""
        return 10_000 if self.state & NOT_READY else max(self.shares, default=0)


def _cells(model: ClusterModel) -> tuple[list[str], list[_Cell]]:
    """The resources, and the nodes with the share of each."""
    found = model.columns.read(model.cluster, -1, -1)
    if not model.scope.whole or found is None:
        return [], []
    zones, shares = found["zones"], found["shares"]
    cells = [
        _Cell(name, zones[zone], state, [column[at] for column in shares])
        for at, (name, zone, state) in enumerate(zip(found["names"], found["zone"], found["state"], strict=True))
        if name
    ]
    return found["resources"], cells


def _map(model: ClusterModel, width: int, height: int, *, colour: bool) -> list[str]:
    _, cells = _cells(model)
    zones: dict[str, list[_Cell]] = {}
    for cell in cells:
        zones.setdefault(cell.zone, []).append(cell)
    together = 1
    while zones and together < len(cells) and _map_height(zones, together, width) > height:
        together += 1
    lines = []
    for zone in sorted(zones):
        found = sorted(zones[zone], key=lambda cell: cell.name)
        many = f", one cell for {together} nodes, the fullest of them" if together > 1 else ""
        lines.append(_clipped(f"{printable(zone) or 'no zone'}: {len(found):,} nodes{many}", width))
        groups = [found[at : at + together] for at in range(0, len(found), together)]
        shown = [_drawn(max(group, key=lambda cell: cell.worst), colour=colour) for group in groups]
        lines += ["".join(shown[at : at + width]) for at in range(0, len(shown), width)]
    return lines


def _map_height(zones: Mapping[str, Sequence[_Cell]], together: int, width: int) -> int:
    return sum(1 + ceil(ceil(len(cells) / together) / width) for cells in zones.values())


def _drawn(cell: _Cell, *, colour: bool) -> str:
    if cell.state & NOT_READY:
        sign, shade = LOST
    else:
        sign, shade = next(((sign, shade) for most, sign, shade in STEPS if cell.worst <= most), FULL)
    return f"\x1b[38;5;{shade}m{sign}\x1b[39m" if colour else sign


def _nodes(model: ClusterModel) -> list[str]:
    resources, cells = _cells(model)
    cells.sort(key=lambda cell: (-cell.worst, cell.name))
    rows = [[cell.name, cell.zone or "-", _state(cell.state), *map(_percent, cell.shares)] for cell in cells]
    return columns(["NODE", "ZONE", "STATE", *(name.upper() for name in resources)], rows, gap=GAP)


def _state(state: int) -> str:
    words = [(NOT_READY, "not ready"), (CORDONED, "cordoned"), (TAINTED, "tainted")]
    return ", ".join(word for bit, word in words if state & bit) or "ready"


def _waiting(model: ClusterModel) -> list[str]:
    found = model.waiting.read(model.tick, -1)
    rows = [
        [
            f"{one['namespace']}/{one['pods'][0] if one['count'] == 1 else one['owner']}",
            one["count"],
            _since(one["since"]),
            " ".join(f"{name}={amount}" for name, amount in one["requests"].items()) or "-",
            one["message"],
        ]
        for one in (found or {"rows": []})["rows"]
    ]
    return columns(["WAITING", "PODS", "FOR", "REQUESTS", "WHY"], rows, gap=GAP)


def _placements(model: ClusterModel) -> list[str]:
    found = reversed(model.placements.after(0))
    rows = [
        [str(one["time"])[11:19], one["event"], one["pod"], one["node"] or "-", one["message"] or one["reason"]]
        for one in found
    ]
    return columns(["TIME", "EVENT", "POD", "NODE", "MESSAGE"], rows, gap=GAP)


_TABLES: Final = {"nodes": _nodes, "waiting": _waiting, "placements": _placements}


def _since(text: str) -> str:
    try:
        return age(max(0, int(time.time() - epoch_ms(text) / 1_000)))
    except TimestampError:
        return "-"


def _percent(share: int) -> str:
    return "-" if share < 0 else f"{share / 10:.0f} %"


def _clipped(line: str, width: int) -> str:
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"
