"""The order in which Go's sort.Slice leaves elements that compare equal.

Kubernetes sorts victims with it, and it is not stable: which of two equally important pods stays depends on the steps
of the algorithm (pattern-defeating quicksort, with the parameters below). So this follows those steps, comparison by
comparison. Up to twelve elements it is an insertion sort, and stable; without equal elements any sort would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

SHORT: Final = 12
"""Up to this length, insertion sort."""
MEDIUM: Final = 50
"""From this length on the pivot is the median of three medians, and a nearly sorted slice is repaired."""
MENDED: Final = 5
"""How many out-of-order neighbours are repaired before giving up."""
MOST_SWAPS: Final = 12
"""With this many swaps the median of medians was found in a slice that is sorted backwards."""
WORD: Final = (1 << 64) - 1

Item: TypeAlias = tuple[int, bool, int]
"""(rank, whether an equal one compares as greater, index)."""
Items: TypeAlias = list[Item]


def order_of(keys: Sequence[Any], fickle: Sequence[bool] = ()) -> list[int]:
    """The indices of the keys in the order of sort.Slice, smallest key first.

    `fickle`: keys that compare as less than any equal one, whichever of the two comes first.
    """
    stable = sorted(range(len(keys)), key=keys.__getitem__)
    tied = any(keys[one] == keys[other] for one, other in pairwise(stable))
    if not tied or (len(keys) <= SHORT and not any(fickle)):
        return stable
    ranks = [0] * len(keys)
    for one, other in pairwise(stable):
        ranks[other] = ranks[one] + (keys[one] != keys[other])
    items = list(zip(ranks, fickle or [False] * len(keys), range(len(keys)), strict=True))
    _sort(items, 0, len(items), len(items).bit_length())
    return [index for _, _, index in items]


def _less(one: Item, other: Item) -> bool:
    return one[0] < other[0] or (one[0] == other[0] and one[1])


def _sort(items: Items, low: int, high: int, bad_pivots: int) -> None:
    balanced = partitioned = True
    while True:
        length = high - low
        if length <= SHORT:
            _insertion_sort(items, low, high)
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
        if low > 0 and not _less(items[low - 1], items[pivot]):
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


def _insertion_sort(items: Items, low: int, high: int) -> None:
    for end in range(low + 1, high):
        at = end
        while at > low and _less(items[at], items[at - 1]):
            _swap(items, at, at - 1)
            at -= 1


def _swap(items: Items, one: int, other: int) -> None:
    items[one], items[other] = items[other], items[one]


def _pivot(items: Items, low: int, length: int) -> tuple[int, int]:
    """The index of the pivot, and how many swaps it took to find it."""
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
    if _less(items[second], items[first]):
        first, second = second, first
        swaps += 1
    if _less(items[third], items[second]):
        second = third
        swaps += 1
    if _less(items[second], items[first]):
        second = first
        swaps += 1
    return second, swaps


def _split(items: Items, low: int, high: int, pivot: int) -> tuple[int, bool]:
    """Move smaller elements before the pivot. Returns the index of the pivot, and whether they were there already."""
    _swap(items, low, pivot)
    bound = items[low]
    left, right = low + 1, high - 1
    already = True
    while True:
        while left <= right and _less(items[left], bound):
            left += 1
        while left <= right and not _less(items[right], bound):
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
    """Move elements equal to the pivot first, where none is smaller. Returns where the greater ones begin."""
    _swap(items, low, pivot)
    bound = items[low]
    left, right = low + 1, high - 1
    while True:
        while left <= right and not _less(bound, items[left]):
            left += 1
        while left <= right and _less(bound, items[right]):
            right -= 1
        if left > right:
            return left
        _swap(items, left, right)
        left += 1
        right -= 1


def _mend(items: Items, low: int, high: int) -> bool:
    """Repair a few out-of-order neighbours; whether everything is in order then."""
    at = low + 1
    for _ in range(MENDED):
        while at < high and not _less(items[at], items[at - 1]):
            at += 1
        if at == high:
            return True
        if high - low < MEDIUM:
            return False
        _swap(items, at, at - 1)
        if at - low >= 2:
            back = at - 1
            while back >= 1 and _less(items[back], items[back - 1]):
                _swap(items, back, back - 1)
                back -= 1
        if high - at >= 2:
            ahead = at + 1
            while ahead < high and _less(items[ahead], items[ahead - 1]):
                _swap(items, ahead, ahead - 1)
                ahead += 1
    return False


def _scatter(items: Items, low: int, length: int) -> None:
    """Swap three elements in the middle with others, chosen by a xorshift that is seeded with the length."""
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
        if child + 1 < length and _less(items[low + child], items[low + child + 1]):
            child += 1
        if not _less(items[low + root], items[low + child]):
            return
        _swap(items, low + root, low + child)
        root = child
