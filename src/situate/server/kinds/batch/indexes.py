"""Lists of indexes of an Indexed Job, as `0-2,4`: those that succeeded, failed, or must succeed."""

from situate.core.model.field_errors import quoted

INT32_DIGITS = 10


class IndexesError(ValueError):
    """The text is not a list of indexes. The message says why."""


def count_indexes(text: str, completions: int) -> int:
    """The number of indexes in the list. Indexes must be in order and below `completions`."""
    total, last = 0, -1
    for fragment in text.split(",") if text else ():
        low, high = _interval(fragment, completions)
        if last >= 0 and last >= low:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {low}")
        total, last = total + high - low + 1, high
    return total


def overlap(succeeded: str, failed: str, completions: int) -> int | None:
    """The first index in both lists. Text that is not an interval is ignored."""
    if not succeeded or not failed:
        return None
    theirs = _readable(failed, completions)
    for low, high in _readable(succeeded, completions):
        for other_low, other_high in theirs:
            if low <= other_high and other_low <= high:
                return max(low, other_low)
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for fragment in text.split(","):
        try:
            found.append(_interval(fragment, completions))
        except IndexesError:
            continue
    return found


def _interval(fragment: str, completions: int) -> tuple[int, int]:
    ends = fragment.split("-")
    if len(ends) > 2:
        raise IndexesError(
            f"the fragment {quoted(fragment)} violates the requirement that an index interval can have at most two "
            "parts separated by '-'"
        )
    low = _index(ends[0], completions)
    if len(ends) == 1:
        return low, low
    high = _index(ends[1], completions)
    if low >= high:
        raise IndexesError(f"non-increasing order, previous: {low}, current: {high}")
    return low, high


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 2 * INT32_DIGITS:
        raise IndexesError(f"cannot convert string to integer for index: {quoted(text)}")
    if int(text) >= completions:
        raise IndexesError(f"too large index: {quoted(text)}")
    return int(text)
