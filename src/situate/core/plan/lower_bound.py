"""A number of nodes, or an amount of money, below which a workload cannot be had, with a proof that is exact.

What pods ask for is weighed by prices of resources, one set of prices for each shape of node, such that no node of the
shape could hold more worth of pods than it costs. Then all pods together cost at least their worth. The best prices
come from a linear program; that they are prices is made sure of in fractions, so rounding can weaken the bound and
never break it. Each class also has a price for its place, where a node takes no more than so many of it.
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
"""How many pairs of a class and a shape the linear program may have; beyond, classes that are almost alike are counted
as the smaller of them."""

EXACT: Final = 64
"""As many bits as an amount has."""


@dataclass(frozen=True, slots=True)
class PodDemand:
    """Pods that are alike: how many, what each asks for by resource, and how many of them a node of each shape takes.

    A shape takes 0 of pods that may not be there.
    """

    count: int
    asks: tuple[int, ...]
    most: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LowerBound:
    """`worth` is the least cost of the nodes; `values` what each class adds to it, a pod."""

    worth: Fraction
    values: tuple[float, ...]

    @property
    def whole(self) -> int:
        return max(0, ceil(self.worth))


def lower_bound(
    wanted: Sequence[PodDemand],
    rooms: Sequence[Sequence[int]],
    costs: Sequence[Fraction],
    free: Sequence[int] | None = None,
) -> LowerBound:
    """The least cost of nodes that hold all pods. `rooms` and `costs` are by shape; `free` is what is there already."""
    groups = _few_enough(wanted, len(rooms))
    prices = _prices([one for one, _ in groups], rooms, costs, free)
    by_class = _values([one for one, _ in groups], rooms, costs, free, *prices)
    worth = sum((one.count * value for (one, _), value in zip(groups, by_class, strict=True)), Fraction(0))
    if free is not None:
        worth -= sum((amount * price for amount, price in zip(free, prices[2], strict=True)), Fraction(0))
    values = {at: float(value) for (_, members), value in zip(groups, by_class, strict=True) for at in members}
    return LowerBound(max(worth, Fraction(0)), tuple(values[at] for at in range(len(wanted))))


# -- fewer classes -----------------------------------------------------------------------------------------------------


def _few_enough(wanted: Sequence[PodDemand], shapes: int) -> list[tuple[PodDemand, list[int]]]:
    """Groups of classes, each as one that asks for no more than any of them, and who is in it."""
    groups = _alike(wanted, EXACT)
    for bits in (6, 5, 4, 3, 2, 1, 0):
        if len(groups) * shapes <= PAIRS:
            break
        groups = _alike(wanted, bits)
    return [(_together([wanted[at] for at in members]), members) for members in groups]


def _alike(wanted: Sequence[PodDemand], bits: int) -> list[list[int]]:
    """The places of those that may go to the same shapes and ask for about the same."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for at, one in enumerate(wanted):
        allowed = tuple(most > 0 for most in one.most)
        groups.setdefault((tuple(_rounded(amount, bits) for amount in one.asks), allowed), []).append(at)
    return list(groups.values())


def _rounded(amount: int, bits: int) -> int:
    """The first bits of a number."""
    spare = max(0, amount.bit_length() - bits)
    return amount >> spare << spare if bits else 0


def _together(those: Sequence[PodDemand]) -> PodDemand:
    asks = tuple(min(amounts) for amounts in zip(*(one.asks for one in those), strict=True))
    most = tuple(max(counts) for counts in zip(*(one.most for one in those), strict=True))
    return PodDemand(sum(one.count for one in those), asks, most)


# -- the best prices ---------------------------------------------------------------------------------------------------

Prices = tuple[list[list[Fraction]], dict[tuple[int, int], Fraction], list[Fraction]]
"""By shape and resource; by class and shape, of a place; by resource, of what is there already."""


def _prices(
    wanted: Sequence[PodDemand], rooms: Sequence[Sequence[int]], costs: Sequence[Fraction], free: Sequence[int] | None
) -> Prices:
    shapes, kinds = len(rooms), len(wanted)
    width = len(rooms[0]) if rooms else 0
    scale = np.array([max([1, *(room[at] for room in rooms)]) for at in range(width)], float)
    pairs = [(kind, shape) for kind in range(kinds) for shape in range(shapes) if wanted[kind].most[shape] > 0]
    offset = kinds + shapes * width
    spare = offset + len(pairs)
    columns = spare + (width if free is not None else 0)
    rows = shapes + len(pairs) + (kinds if free is not None else 0)
    limits, most, gain = np.zeros((rows, columns)), np.zeros(rows), np.zeros(columns)
    asks = np.array([one.asks for one in wanted], float).reshape(kinds, width) / scale
    gain[:kinds] = [one.count for one in wanted]
    most[:shapes] = [float(cost) for cost in costs]
    for shape, room in enumerate(rooms):
        limits[shape, kinds + shape * width : kinds + (shape + 1) * width] = np.array(room, float) / scale
    for at, (kind, shape) in enumerate(pairs):
        limits[shape, offset + at] = wanted[kind].most[shape]
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
    wanted: Sequence[PodDemand],
    rooms: Sequence[Sequence[int]],
    costs: Sequence[Fraction],
    free: Sequence[int] | None,
    by_shape: list[list[Fraction]],
    places: dict[tuple[int, int], Fraction],
    already: list[Fraction],
) -> list[Fraction]:
    """What a pod of each class is worth at least, wherever it is, once no node holds more worth than it costs."""
    lowered: list[Fraction] = []
    for shape, (room, cost) in enumerate(zip(rooms, costs, strict=True)):
        held = sum((amount * price for amount, price in zip(room, by_shape[shape], strict=True)), Fraction(0))
        held += sum(
            (wanted[kind].most[shape] * price for (kind, at), price in places.items() if at == shape), Fraction(0)
        )
        lowered.append(min(Fraction(1), cost / held) if held else Fraction(1))
    found = []
    for kind, one in enumerate(wanted):
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
