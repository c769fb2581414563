"""The order in which Go's sort.Slice leaves things that compare equal.

Kubernetes sorts victims with it, and it is not stable: which of two equally important pods stays depends on the steps
of the algorithm (pattern-defeating quicksort, with the parameters below), so those steps are followed here. Up to
twelve things it is an insertion sort, and stable; and without equals any sort will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

SHORT: Final = 12
"""Up to this length, insertion sort."""
MEDIUM: Final = 50
"""From this length on the pivot is the median of three medians, and a nearly sorted stretch is mended."""
MENDED: Final = 5
"""How many out-of-order neighbours are mended before giving up."""
MOST_SWAPS: Final = 12
"""With so many swaps the median of medians was found in a stretch that runs backwards."""
WORD: Final = (1 << 64) - 1

Items: TypeAlias = list[tuple[int, int]]
"""(rank, index): compared by rank alone."""


def order_of(keys: Sequence[Any]) -> list[int]:
    """The indices of the keys, as sort.Slice would arrange what they belong to, smallest key first."""
    stable = sorted(range(len(keys)), key=keys.__getitem__)
    if len(keys) <= SHORT or all(keys[one] != keys[next_one] for one, next_one in pairwise(stable)):
        return stable
    ranks = [0] * len(keys)
    for one, next_one in pairwise(stable):
        ranks[next_one] = ranks[one] + (keys[one] != keys[next_one])
    items = list(zip(ranks, range(len(keys)), strict=True))
    _sort(items, 0, len(items), len(items).bit_length())
    return [index for _, index in items]


def _sort(items: Items, low: int, high: int, bad_pivots: int) -> None:
    balanced = partitioned = True
    while True:
        length = high - low
        if length <= SHORT:
            items[low:high] = sorted(items[low:high], key=_rank)
            return
        if bad_pivots == 0:
            _heap_sort(items, low, high)
            return
        if not balanced:
            _scatter(items, low, length)
            bad_pivots -= 1
        pivot, swaps = _pivot(items, low, length)
        backwards = swaps == MOST_SWAPS
        if backwards:
            items[low:high] = items[low:high][::-1]
            pivot = high - 1 - (pivot - low)
        if balanced and partitioned and (backwards or swaps == 0) and _mend(items, low, high):
            return
        if low > 0 and items[low - 1][0] >= items[pivot][0]:
            low = _split_off_equals(items, low, high, pivot)
            continue
        middle, partitioned = _split(items, low, high, pivot)
        left, right = middle - low, high - middle
        balanced = min(left, right) >= length // 8
        if left < right:
            _sort(items, low, middle, bad_pivots)
            low = middle + 1
        else:
            _sort(items, middle + 1, high, bad_pivots)
            high = middle


def _rank(item: tuple[int, int]) -> int:
    return item[0]


def _swap(items: Items, one: int, other: int) -> None:
    items[one], items[other] = items[other], items[one]


def _pivot(items: Items, low: int, length: int) -> tuple[int, int]:
    """Where the pivot is, and how many swaps it took to find it."""
    quarters = [low + length // 4 * times for times in (1, 2, 3)]
    swaps = 0
    if length >= MEDIUM:
        for which, at in enumerate(quarters):
            quarters[which], more = _median(items, at - 1, at, at + 1)
            swaps += more
    pivot, more = _median(items, *quarters)
    return pivot, swaps + more


def _median(items: Items, first: int, second: int, third: int) -> tuple[int, int]:
    swaps = 0
    if items[second][0] < items[first][0]:
        first, second = second, first
        swaps += 1
    if items[third][0] < items[second][0]:
        second = third
        swaps += 1
    if items[second][0] < items[first][0]:
        second = first
        swaps += 1
    return second, swaps


def _split(items: Items, low: int, high: int, pivot: int) -> tuple[int, bool]:
    """Smaller things before the pivot, others behind it: where it comes to stand, and whether they were so already."""
    _swap(items, low, pivot)
    bound = items[low][0]
    left, right = low + 1, high - 1
    already = True
    while True:
        while left <= right and items[left][0] < bound:
            left += 1
        while left <= right and items[right][0] >= bound:
            right -= 1
        if left > right:
            break
        already = False
        _swap(items, left, right)
        left += 1
        right -= 1
    _swap(items, right, low)
    return right, already


def _split_off_equals(items: Items, low: int, high: int, pivot: int) -> int:
    """Things equal to the pivot first, where none is smaller; where the greater ones begin."""
    _swap(items, low, pivot)
    bound = items[low][0]
    left, right = low + 1, high - 1
    while True:
        while left <= right and items[left][0] <= bound:
            left += 1
        while left <= right and items[right][0] > bound:
            right -= 1
        if left > right:
            return left
        _swap(items, left, right)
        left += 1
        right -= 1


def _mend(items: Items, low: int, high: int) -> bool:
    """Put a few out-of-order neighbours right; whether all is in order then."""
    at = low + 1
    for _ in range(MENDED):
        while at < high and items[at][0] >= items[at - 1][0]:
            at += 1
        if at == high:
            return True
        if high - low < MEDIUM:
            return False
        _swap(items, at, at - 1)
        if at - low >= 2:
            back = at - 1
            while back >= 1 and items[back][0] < items[back - 1][0]:
                _swap(items, back, back - 1)
                back -= 1
        if high - at >= 2:
            ahead = at + 1
            while ahead < high and items[ahead][0] < items[ahead - 1][0]:
                _swap(items, ahead, ahead - 1)
                ahead += 1
    return False


def _scatter(items: Items, low: int, length: int) -> None:
    """Swap three things in the middle with others, picked by a xorshift that starts from the length."""
    random = length
    mask = (1 << length.bit_length()) - 1
    middle = low + length // 4 * 2
    for at in (middle - 1, middle, middle + 1):
        random ^= random << 13 & WORD
        random ^= random >> 7
        random ^= random << 17 & WORD
        other = random & mask
        _swap(items, at, low + (other - length if other >= length else other))


def _heap_sort(items: Items, low: int, high: int) -> None:
    length = high - low
    for root in range((length - 1) // 2, -1, -1):
        _sift_down(items, low, root, length)
    for end in range(length - 1, -1, -1):
        _swap(items, low, low + end)
        _sift_down(items, low, 0, end)


def _sift_down(items: Items, low: int, root: int, length: int) -> None:
    while (child := 2 * root + 1) < length:
        if child + 1 < length and items[low + child][0] < items[low + child + 1][0]:
            child += 1
        if items[low + root][0] >= items[low + child][0]:
            return
        _swap(items, low + root, low + child)
        root = child
