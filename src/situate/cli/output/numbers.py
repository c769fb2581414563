"""Numbers as people read them: counts, shares, spans of time, quantities and money."""

from typing import Final

from situate.core.changes import Millis
from situate.sim.whatif.figures import Money

NONE: Final = "-"
_BYTES: Final = ("memory", "ephemeral-storage")


def count(number: int) -> str:
    return f"{number:,}"


def share(value: float | None) -> str:
    return NONE if value is None else f"{value * 100:.1f} %"


def span(ms: Millis | None) -> str:
    """`0 s`, `1.5 s`, `3 m 20 s`, `2 h 5 m`."""
    if ms is None:
        return NONE
    if ms < 60_000:
        return f"{ms / 1_000:g} s" if ms < 10_000 else f"{ms / 1_000:.1f} s"
    seconds = round(ms / 1_000)
    if seconds < 3_600:
        return f"{seconds // 60} m {seconds % 60} s"
    if seconds < 86_400 * 2:
        return f"{seconds // 3_600} h {seconds % 3_600 // 60} m"
    return f"{seconds / 86_400:.1f} d"


def quantity(name: str, amount: int) -> str:
    if name == "cpu":
        return f"{amount / 1_000:,g} cores" if amount % 1_000 else f"{amount // 1_000:,} cores"
    if name not in _BYTES:
        return f"{amount:,}"
    value, unit = float(amount), "B"
    for following in ("Ki", "Mi", "Gi", "Ti", "Pi"):
        if value < 1_024:
            break
        value, unit = value / 1_024, following
    return f"{value:,.1f} {unit}".replace(".0 ", " ")


def money_text(one: Money | None, which: str) -> str:
    return NONE if one is None else f"{getattr(one, which):,.3f} {one.currency}"
