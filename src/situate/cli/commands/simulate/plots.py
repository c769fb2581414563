"""Plots as SVG text: curves, stacked areas, bars and a map of nodes. Colours are classes of the page's style sheet.

Numbers are written with as few digits as can be seen. Nothing here knows what is plotted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Final

WIDTH: Final = 560
HEIGHT: Final = 230
LEFT: Final = 46
RIGHT: Final = 12
TOP: Final = 12
BOTTOM: Final = 26
LEVELS: Final = 12
"""How many shades a map has."""
TICKS_X: Final = 6
TICKS_Y: Final = 4
ROW_HEIGHT: Final = 12
MAP_WIDTH: Final = 1_140
MAP_LEFT: Final = 96
_SPANS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1_800),
    *(3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000),
)

Say = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line, with the class that colours it."""

    name: str
    colour: str
    values: Sequence[float]


def number(value: float) -> str:
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def clock(seconds: float) -> str:
    """`0`, `45 s`, `1:30 h`: as on an axis."""
    if seconds == 0:
        return "0"
    if seconds < 60:
        return f"{seconds:g} s"
    if seconds < 3_600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min" if not rest else f"{minutes}:{rest:02} min"
    if seconds < 172_800:
        hours, rest = divmod(round(seconds / 60), 60)
        return f"{hours} h" if not rest else f"{hours}:{rest:02} h"
    return f"{seconds / 86_400:.4g} d"


# -- axes ------------------------------------------------------------------------------------------------------------


def _ticks_x(end: float) -> list[float]:
    step = next((one for one in _SPANS if end / one <= TICKS_X), None)
    if step is None:
        step = ceil(end / TICKS_X / _SPANS[-1]) * _SPANS[-1]
    return [step * at for at in range(int(end // step) + 1)]


def nice(top: float, *, whole: bool = True) -> float:
    """The next number above whose quarters are round; `whole`: for things that are counted."""
    if top <= 0 or (whole and top <= TICKS_Y):
        return float(TICKS_Y)
    power = 10.0 ** floor(log10(top / TICKS_Y))
    rounds = (1, 2, 3, 4, 5, 6, 8, 10) if whole and power < 10 else (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next(TICKS_Y * power * one for one in rounds if TICKS_Y * power * one >= top * 0.999_999)


def _frame(end: float, top: float, say: Say, height: int) -> list[str]:
    """The grid, with its labels."""
    inner = height - TOP - BOTTOM
    parts = []
    for at in range(TICKS_Y + 1):
        y = number(TOP + inner * (1 - at / TICKS_Y))
        style = "axis" if at == 0 else "grid"
        parts.append(f'<line class="{style}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        text = escape(say(top * at / TICKS_Y))
        parts.append(f'<text class="tick" x="{LEFT - 7}" y="{y}" dy=".32em" text-anchor="end">{text}</text>')
    return parts + _time_axis(end, LEFT, WIDTH - LEFT - RIGHT, height)


def _time_axis(end: float, left: int, width: int, height: int) -> list[str]:
    parts = []
    for tick in _ticks_x(end):
        x = left + width * (tick / end if end else 0.0)
        anchor = "start" if tick == 0 else "middle" if x < left + width - 20 else "end"
        label = escape(clock(tick))
        parts.append(f'<text class="tick" x="{number(x)}" y="{height - 8}" text-anchor="{anchor}">{label}</text>')
    return parts


def _x(at: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (at / end if end else 0.0)


def _y(value: float, top: float, height: int) -> float:
    return TOP + (height - TOP - BOTTOM) * (1 - min(value / top, 1.0) if top else 1.0)


def _svg(parts: Sequence[str], width: int, height: int, what: str) -> str:
    inside = "".join(parts)
    label = escape(what, quote=True)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{inside}</svg>'


def _bands(times: Sequence[float], end: float, height: int, texts: Sequence[str]) -> list[str]:
    """A tooltip for each moment."""
    parts = []
    for at, text in enumerate(texts):
        before = (times[at] + times[at - 1]) / 2 if at else 0.0
        after = (times[at] + times[at + 1]) / 2 if at + 1 < len(times) else end
        x0, x1 = _x(before, end), _x(after, end)
        middle = number(_x(times[at], end))
        parts.append(
            f'<g class="band"><rect x="{number(x0)}" y="{TOP}" width="{number(max(x1 - x0, 0.1))}" '
            f'height="{height - TOP - BOTTOM}"/><line x1="{middle}" x2="{middle}" y1="{TOP}" y2="{height - BOTTOM}"/>'
            f"<title>{escape(text)}</title></g>"
        )
    return parts


# -- plots -----------------------------------------------------------------------------------------------------------


def curves(times: Sequence[float], lines: Sequence[Curve], say: Say, what: str, *, top: float | None = None) -> str:
    """Lines over time, each with a light area below."""
    end = times[-1]
    most = nice(max((max(line.values, default=0.0) for line in lines), default=0.0)) if top is None else top
    parts = _frame(end, most, say, HEIGHT)
    for line in lines:
        points = [(_x(at, end), _y(value, most, HEIGHT)) for at, value in zip(times, line.values, strict=True)]
        path = _stairs(points)
        base = number(HEIGHT - BOTTOM)
        if len(lines) <= 2:
            area = f"M{number(points[0][0])} {base}L{path[1:]}L{number(points[-1][0])} {base}Z"
            parts.append(f'<path class="area {line.colour}" d="{area}"/>')
        parts.append(f'<path class="line {line.colour}" d="{path}"/>')
    texts = [
        "\n".join([clock(at), *(f"{line.name}: {say(line.values[number_])}" for line in lines)])
        for number_, at in enumerate(times)
    ]
    return _svg([*parts, *_bands(times, end, HEIGHT, texts)], WIDTH, HEIGHT, what)


def _stairs(points: Sequence[tuple[float, float]]) -> str:
    """A path, without points on a level line."""
    kept = [
        point
        for at, point in enumerate(points)
        if at in (0, len(points) - 1) or not (points[at - 1][1] == point[1] == points[at + 1][1])
    ]
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in kept)


def stacked(times: Sequence[float], layers: Sequence[Curve], say: Say, what: str, *, top: float) -> str:
    """Areas on top of each other."""
    end = times[-1]
    parts = _frame(end, top, say, HEIGHT)
    base = [0.0] * len(times)
    for layer in layers:
        above = [low + value for low, value in zip(base, layer.values, strict=True)]
        upper = [(_x(at, end), _y(value, top, HEIGHT)) for at, value in zip(times, above, strict=True)]
        lower = [(_x(at, end), _y(value, top, HEIGHT)) for at, value in zip(times, base, strict=True)]
        path = _stairs(upper) + "L" + _stairs(lower[::-1])[1:] + "Z"
        parts.append(f'<path class="layer {layer.colour}" d="{path}"/>')
        base = above
    texts = [
        "\n".join(
            [clock(at), *(f"{say(one.values[number_])} {one.name}" for one in reversed(layers) if one.values[number_])]
        )
        for number_, at in enumerate(times)
    ]
    return _svg([*parts, *_bands(times, end, HEIGHT, texts)], WIDTH, HEIGHT, what)


def bars(values: Sequence[tuple[str, str, float, str]], what: str) -> str:
    """A bar each: (name, class, value, what is written beside it). All on one scale."""
    top = max((value for _, _, value, _ in values), default=0.0)
    width, height, line = 340, 26 * len(values), 26
    parts = []
    for at, (name, colour, value, text) in enumerate(values):
        y = at * line + 5
        long = max(190 * value / top if top > 0 else 0.0, 1.5)
        parts.append(
            f'<rect class="track" x="0" y="{y}" width="190" height="14" rx="3"/>'
            f'<rect class="bar {colour}" x="0" y="{y}" width="{number(long)}" height="14" rx="3">'
            f"<title>{escape(name)}: {escape(text)}</title></rect>"
            f'<text class="value" x="200" y="{y + 7}" dy=".34em">{escape(text)}</text>'
        )
    return _svg(parts, width, height, what)


def heat_map(times: Sequence[float], labels: Sequence[str], shares: Sequence[Sequence[float]], what: str) -> str:
    """A row each, a column for each moment; the darker, the fuller."""
    end, rows = times[-1], len(labels)
    tall = ROW_HEIGHT if rows > 24 else 18
    height = rows * tall + BOTTOM
    wide = (MAP_WIDTH - MAP_LEFT - 4) / max(len(times), 1)
    parts = []
    for row, (label, values) in enumerate(zip(labels, shares, strict=True)):
        y = row * tall
        cut = label if len(label) <= 15 else f"{label[:14]}…"
        parts.append(f'<text class="node" x="{MAP_LEFT - 8}" y="{y + tall / 2:g}" dy=".34em">{escape(cut)}</text>')
        cells = [f"<g><title>{escape(label)}: {_range(values)}</title>"]
        begin = 0
        for at in range(1, len(values) + 1):
            if at < len(values) and _level(values[at]) == _level(values[begin]):
                continue
            x = MAP_LEFT + begin * wide
            cells.append(
                f'<rect class="h{_level(values[begin])}" x="{number(x)}" y="{y + 0.5:g}" '
                f'width="{number((at - begin) * wide + 0.2)}" height="{tall - 1}"/>'
            )
            begin = at
        parts.append("".join(cells) + "</g>")
    parts += _time_axis(end, MAP_LEFT, MAP_WIDTH - MAP_LEFT - 4, height)
    return _svg(parts, MAP_WIDTH, height, what)


def _range(values: Sequence[float]) -> str:
    mean = sum(values) / max(len(values), 1)
    return f"{mean * 100:.0f} % in the mean, {max(values, default=0.0) * 100:.0f} % at most"


def _level(share: float) -> int:
    """0 is empty, LEVELS is full."""
    return 0 if share <= 0 else min(int(share * (LEVELS - 1)) + 1, LEVELS)


def ramp() -> str:
    """What the shades of a map mean."""
    cells = "".join(
        f'<rect class="h{at}" x="{44 + at * 18}" y="2" width="17" height="12"/>' for at in range(LEVELS + 1)
    )
    end = 44 + (LEVELS + 1) * 18 + 8
    words = (
        '<text class="tick" x="38" y="8" dy=".34em" text-anchor="end">empty</text>'
        f'<text class="tick" x="{end}" y="8" dy=".34em">full</text>'
    )
    return (
        f'<svg class="ramp" viewBox="0 0 {end + 30} 16" role="img" aria-label="shades from empty to full">'
        f"{cells}{words}</svg>"
    )
