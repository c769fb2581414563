"""kube-apiserver's messages for wrong cron schedules. core.reconcile.cron decides which schedules are valid."""

from collections.abc import Mapping
from typing import Final

from situate.core.model.field_errors import quoted

FIELDS: Final = 5
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY_NAMES: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS: Final = {name: at + 1 for at, name in enumerate(_MONTH_NAMES)}
_WEEKDAYS: Final = {name: at for at, name in enumerate(_WEEKDAY_NAMES)}
_BOUNDS: Final[tuple[tuple[int, int, Mapping[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _WEEKDAYS),
)
_DESCRIPTORS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY: Final = "@every "


class _BadNumberError(ValueError):
    """A number in it is none."""


def schedule_problem(text: str) -> str:
    """Empty if we have no message for the problem."""
    if text.startswith("@"):
        return _descriptor(text)
    parts = text.split()
    if len(parts) != FIELDS:
        return f"expected exactly {FIELDS} fields, found {len(parts)}: [{' '.join(parts)}]"
    for part, (low, high, names) in zip(parts, _BOUNDS, strict=True):
        for one in part.split(","):
            try:
                problem = _span(one, low, high, names) if one else ""
            except _BadNumberError as error:
                problem = str(error)
            if problem:
                return problem
    return ""


def _descriptor(text: str) -> str:
    if text in _DESCRIPTORS:
        return ""
    if not text.startswith(_EVERY):
        return f"unrecognized descriptor: {text}"
    return f"failed to parse duration {text}: time: invalid duration {quoted(text.removeprefix(_EVERY))}"


def _span(text: str, low: int, high: int, names: Mapping[str, int]) -> str:
    span, *steps = text.split("/")
    first_text, *rest = span.split("-")
    if first_text in ("*", "?"):
        first, last = low, high
    else:
        first = _number(first_text, names)
        if len(rest) > 1:
            return f"too many hyphens: {text}"
        last = _number(rest[0], names) if rest else first
    if len(steps) > 1:
        return f"too many slashes: {text}"
    step = _number(steps[0], {}) if steps else 1
    if steps and not rest:
        last = high
    if first < low:
        return f"beginning of range ({first}) below minimum ({low}): {text}"
    if last > high:
        return f"end of range ({last}) above maximum ({high}): {text}"
    if first > last:
        return f"beginning of range ({first}) beyond end of range ({last}): {text}"
    return "" if step else f"step of range should be a positive number: {text}"


def _number(text: str, names: Mapping[str, int]) -> int:
    found = names.get(text.lower())
    if found is not None:
        return found
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdecimal()):
        raise _BadNumberError(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    if len(digits) > 18:
        raise _BadNumberError(
            f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: value out of range"
        )
    return int(text)
