"""An exact lower bound of the number, or the cost, of the nodes that a workload needs.

Each shape of node has dual prices for its resources, such that no node can hold pods of more value than its cost. Then
the nodes for all pods cost at least the pods' total value. The best prices come from a linear program; exact fractions
verify them, so rounding can weaken the bound but never break it. A class also has a price per pod where a node takes
only so many of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np

from situate.core.plan.simplex import Floats, maximise

PAIRS: Final = 400
"""How many pairs of class and shape the linear program may have; beyond that, similar classes are merged into the
smaller one."""

EXACT: Final = 64
"""All bits of an amount."""


@dataclass(frozen=True, slots=True)
class ClassDemand:
    """A class of pods: how many, the requests of each, and how many fit a node of each shape; 0 if none may."""

    count: int
    asks: tuple[int, ...]
    most: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LowerBound:
    """`worth` is the lower bound of the cost; `values` is what one pod of each class adds to it."""

    worth: Fraction
    values: tuple[float, ...]

    @property
    def whole(self) -> int:
        return max(0, ceil(self.worth))


def lower_bound(
    demands: Sequence[ClassDemand],
    rooms: Sequence[Sequence[int]],
    costs: Sequence[Fraction],
    free: Sequence[int] | None = None,
) -> LowerBound:
    """The lower bound for all pods. `rooms` and `costs` are by shape; `free` is the capacity that exists already."""
    groups = _few_enough(demands, len(rooms))
    prices = _prices([one for one, _ in groups], rooms, costs, free)
    by_class = _values([one for one, _ in groups], rooms, costs, free, *prices)
    worth = sum((one.count * value for (one, _), value in zip(groups, by_class, strict=True)), Fraction(0))
    if free is not None:
        worth -= sum((amount * price for amount, price in zip(free, prices[2], strict=True)), Fraction(0))
    values = {at: float(value) for (_, members), value in zip(groups, by_class, strict=True) for at in members}
    return LowerBound(max(worth, Fraction(0)), tuple(values[at] for at in range(len(demands))))


# -- fewer classes -----------------------------------------------------------------------------------------------------


def _few_enough(demands: Sequence[ClassDemand], shapes: int) -> list[tuple[ClassDemand, list[int]]]:
    """Groups of classes, each with the minimum requests of its members, and the members."""
    groups = _alike(demands, EXACT)
    for bits in (6, 5, 4, 3, 2, 1, 0):
        if len(groups) * shapes <= PAIRS:
            break
        groups = _alike(demands, bits)
    return [(_together([demands[at] for at in members]), members) for members in groups]


def _alike(demands: Sequence[ClassDemand], bits: int) -> list[list[int]]:
    """The indexes of classes with the same shapes and about the same requests."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for at, one in enumerate(demands):
        allowed = tuple(most > 0 for most in one.most)
        groups.setdefault((tuple(_rounded(amount, bits) for amount in one.asks), allowed), []).append(at)
    return list(groups.values())


def _rounded(amount: int, bits: int) -> int:
    """The leading bits of a number."""
    spare = max(0, amount.bit_length() - bits)
    return amount >> spare << spare if bits else 0


def _together(those: Sequence[ClassDemand]) -> ClassDemand:
    asks = tuple(min(amounts) for amounts in zip(*(one.asks for one in those), strict=True))
    most = tuple(max(counts) for counts in zip(*(one.most for one in those), strict=True))
    return ClassDemand(sum(one.count for one in those), asks, most)


# -- the best prices ---------------------------------------------------------------------------------------------------

Prices = tuple[list[list[Fraction]], dict[tuple[int, int], Fraction], list[Fraction]]
"""By shape and resource; per pod by class and shape; by resource, of the existing capacity."""


def _prices(
    demands: Sequence[ClassDemand],
    rooms: Sequence[Sequence[int]],
    costs: Sequence[Fraction],
    free: Sequence[int] | None,
) -> Prices:
    shapes, kinds = len(rooms), len(demands)
    width = len(rooms[0]) if rooms else 0
    scale = np.array([max([1, *(room[at] for room in rooms)]) for at in range(width)], float)
    pairs = [(kind, shape) for kind in range(kinds) for shape in range(shapes) if demands[kind].most[shape] > 0]
    offset = kinds + shapes * width
    spare = offset + len(pairs)
    columns = spare + (width if free is not None else 0)
    rows = shapes + len(pairs) + (kinds if free is not None else 0)
    limits, most, gain = np.zeros((rows, columns)), np.zeros(rows), np.zeros(columns)
    asks = np.array([one.asks for one in demands], float).reshape(kinds, width) / scale
    gain[:kinds] = [one.count for one in demands]
    most[:shapes] = [float(cost) for cost in costs]
    for shape, room in enumerate(rooms):
        limits[shape, kinds + shape * width : kinds + (shape + 1) * width] = np.array(room, float) / scale
    for at, (kind, shape) in enumerate(pairs):
        limits[shape, offset + at] = demands[kind].most[shape]
        row = limits[shapes + at]
        row[kind], row[offset + at] = 1.0, -1.0
        row[kinds + shape * width : kinds + (shape + 1) * width] = -asks[kind]
    if free is not None:
        gain[spare:] = -np.array(free, float) / scale
        limits[shapes + len(pairs) :, :kinds] = np.eye(kinds)
        limits[shapes + len(pairs) :, spare:] = -asks
    found = maximise(gain, limits, most)
    return _exact(found, kinds, shapes, width, pairs, scale, spare)


def _exact(
    found: Floats, kinds: int, shapes: int, width: int, pairs: Sequence[tuple[int, int]], scale: Floats, spare: int
) -> Prices:
    def price(at: int, resource: int) -> Fraction:
        return Fraction(float(found[at])) / Fraction(float(scale[resource]))

    by_shape = [[price(kinds + shape * width + at, at) for at in range(width)] for shape in range(shapes)]
    places = {pair: Fraction(float(found[kinds + shapes * width + at])) for at, pair in enumerate(pairs)}
    already = [price(spare + at, at) for at in range(len(found) - spare)]
    return by_shape, places, already


def _values(
    demands: Sequence[ClassDemand],
    rooms: Sequence[Sequence[int]],
    costs: Sequence[Fraction],
    free: Sequence[int] | None,
    by_shape: list[list[Fraction]],
    places: dict[tuple[int, int], Fraction],
    already: list[Fraction],
) -> list[Fraction]:
    """The minimum value of a pod of each class, with prices scaled down until no node holds more than its cost."""
    lowered: list[Fraction] = []
    for shape, (room, cost) in enumerate(zip(rooms, costs, strict=True)):
        held = sum((amount * price for amount, price in zip(room, by_shape[shape], strict=True)), Fraction(0))
        held += sum(
            (demands[kind].most[shape] * price for (kind, at), price in places.items() if at == shape), Fraction(0)
        )
        lowered.append(min(Fraction(1), cost / held) if held else Fraction(1))
    found = []
    for kind, one in enumerate(demands):
        worths = [
            lowered[shape] * (_weighed(one.asks, by_shape[shape]) + places[kind, shape])
            for shape in range(len(rooms))
            if one.most[shape] > 0
        ]
        if free is not None:
            worths.append(_weighed(one.asks, already))
        found.append(min(worths, default=Fraction(0)))
    return found


def _weighed(asks: Sequence[int], prices: Sequence[Fraction]) -> Fraction:
    return sum((amount * price for amount, price in zip(asks, prices, strict=True) if amount), Fraction(0))
