"""The members of a fleet: each is alive for the duration of its lease after the lease last changed.

Time is the observer's own, and comes as an argument. Members' clocks may differ, so what counts is when a lease was
last seen to change, not the time that it states.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class FleetMember:
    name: str
    schedulers: tuple[str, ...] = ()
    """The schedulerNames that it decides for; none: all."""

    def decides(self, scheduler: str) -> bool:
        return not self.schedulers or scheduler in self.schedulers


@dataclass(frozen=True, slots=True)
class _Sighting:
    member: FleetMember
    word: str
    """The content of its lease. The same again is no sign of life."""
    since: float
    lease_s: float

    @property
    def until(self) -> float:
        return self.since + self.lease_s


class Roster:
    """The members that one of them knows, itself included."""

    def __init__(self, me: FleetMember) -> None:
        self._me = me
        self._seen: dict[str, _Sighting] = {}

    def be(self, me: FleetMember) -> None:
        """Change our own entry."""
        self._me = me

    def seen(self, member: FleetMember, word: str, lease_s: float, now: float) -> None:
        known = self._seen.get(member.name)
        since = known.since if known is not None and known.word == word else now
        self._seen[member.name] = _Sighting(member, word, since, lease_s)

    def gone(self, name: str) -> None:
        self._seen.pop(name, None)

    def only(self, names: frozenset[str]) -> None:
        """These are all members: others left unnoticed."""
        self._seen = {name: one for name, one in self._seen.items() if name in names}

    def live(self, now: float) -> tuple[FleetMember, ...]:
        others = (one.member for one in self._seen.values() if now < one.until and one.member.name != self._me.name)
        return tuple(sorted((self._me, *others)))

    def next_end(self, now: float) -> float | None:
        """When the next lease expires, if nothing changes until then."""
        return min((one.until for one in self._seen.values() if now < one.until), default=None)

    def long_dead(self, now: float, times: float) -> list[str]:
        """The members whose lease expired this many lease durations ago."""
        return sorted(
            name for name, one in self._seen.items() if name != self._me.name and now >= one.since + one.lease_s * times
        )
