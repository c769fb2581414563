"""Who is in a fleet: members that were heard of, each alive for as long as its lease says after the last word of it.

Time is the listener's own, and comes as an argument: a member's clock may be another, so what counts is when its lease
was last seen to change, not what is written in it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FleetMember", "Roster"]


@dataclass(frozen=True, slots=True, order=True)
class FleetMember:
    """One scheduler of a fleet."""

    name: str
    schedulers: tuple[str, ...] = ()
    """Of which schedulerName it decides on pods; none: of any."""

    def decides(self, scheduler: str) -> bool:
        return not self.schedulers or scheduler in self.schedulers


@dataclass(frozen=True, slots=True)
class _Sighting:
    member: FleetMember
    word: str
    """What its lease said. The same again is no sign of life."""
    since: float
    lease_s: float

    @property
    def until(self) -> float:
        return self.since + self.lease_s


class Roster:
    """All members that one of them knows of. It is always there itself."""

    def __init__(self, me: FleetMember) -> None:
        self._me = me
        self._seen: dict[str, _Sighting] = {}

    def be(self, me: FleetMember) -> None:
        """What we say of ourselves is another now."""
        self._me = me

    def seen(self, member: FleetMember, word: str, lease_s: float, now: float) -> None:
        """The lease of a member was read: this is what it says."""
        known = self._seen.get(member.name)
        since = known.since if known is not None and known.word == word else now
        self._seen[member.name] = _Sighting(member, word, since, lease_s)

    def gone(self, name: str) -> None:
        """A member took its leave."""
        self._seen.pop(name, None)

    def only(self, names: frozenset[str]) -> None:
        """These are all that there are: whoever is not among them took its leave unseen."""
        self._seen = {name: one for name, one in self._seen.items() if name in names}

    def live(self, now: float) -> tuple[FleetMember, ...]:
        """By name."""
        others = (one.member for one in self._seen.values() if now < one.until and one.member.name != self._me.name)
        return tuple(sorted((self._me, *others)))

    def next_end(self, now: float) -> float | None:
        """When the next lease runs out, if nothing is heard until then."""
        return min((one.until for one in self._seen.values() if now < one.until), default=None)

    def long_dead(self, now: float, times: float) -> list[str]:
        """Members that were not heard of for so many times their lease."""
        return sorted(
            name for name, one in self._seen.items() if name != self._me.name and now >= one.since + one.lease_s * times
        )
