"""What clients did and saw, and whether one order of events explains all of it.

The order is that of the watches: every watch has to have seen the same events, each once, its own part of them if it
asked for less. Then every acknowledged write has to be one of them, at the revision it was told, and on top of what it
expected; and every read has to be what those events made at its revision. Nothing here speaks to a server.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    revision: int
    key: str
    token: str
    """What the write that made this version put into it; no two writes have the same."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write that was sent. `revision` is that of the answer; 0: a delete, which is not told one."""

    client: int
    kind: str
    """create, update or delete."""
    key: str
    token: str
    """Of what it writes; of a delete, of what it deletes."""
    expected: int
    """The revision that the object had to have; 0: it had to be absent."""
    sent: float
    answered: float
    revision: int = 0
    outcome: str = "acknowledged"
    """acknowledged, refused, or unknown: the connection broke."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was there at a revision, or at the least one: key to revision and token."""

    revision: int
    found: dict[str, tuple[int, str]]


@dataclass(slots=True)
class Watched:
    """One watch, over all its connections."""

    sees: Callable[[str], bool]
    events: list[Event] = field(default_factory=list)
    resumed: int = 0
    expired: int = 0


def problems(watches: Sequence[Watched], writes: Sequence[Write], reads: Sequence[Read]) -> list[str]:
    """Everything that is wrong, in words; nothing is right."""
    whole = max(watches, key=lambda one: len(one.events)).events
    return [
        *_order(watches),
        *_agreement(watches, whole),
        *_lives(whole),
        *_acknowledged(writes, whole),
        *_real_time(writes),
        *_reads(reads, whole),
    ]


def _order(watches: Sequence[Watched]) -> Iterable[str]:
    for number, watch in enumerate(watches):
        if watch.expired:
            yield f"watch {number} was told {watch.expired} times that its revision is too old"
        for before, after in zip(watch.events, watch.events[1:], strict=False):
            if after.revision <= before.revision:
                yield f"watch {number} saw revision {after.revision} after {before.revision}"


def _agreement(watches: Sequence[Watched], whole: list[Event]) -> Iterable[str]:
    for number, watch in enumerate(watches):
        due = [event for event in whole if watch.sees(event.key)]
        missed, seen_alone = _missing(due, watch.events), _missing(watch.events, due)
        if missed:
            yield f"watch {number} missed {len(missed)} events, the first {missed[0]}"
        if seen_alone:
            yield f"watch {number} saw {len(seen_alone)} events that others did not, the first {seen_alone[0]}"
        if not missed and not seen_alone and len(due) != len(watch.events):
            yield f"watch {number} saw {len(watch.events)} events, and {len(due)} happened"


def _missing(wanted: list[Event], among: list[Event]) -> list[Event]:
    there = set(among)
    return [event for event in wanted if event not in there]


def _lives(whole: list[Event]) -> Iterable[str]:
    """Each object is added, changed any number of times and deleted, in turn; no write happened twice."""
    present: dict[str, str] = {}
    wrote: dict[str, Event] = {}
    for event in whole:
        if (event.type == "ADDED") == (event.key in present):
            yield f"{event} of an object that was {'there' if event.key in present else 'not there'}"
        if event.type == "DELETED":
            present.pop(event.key, None)
            continue
        if event.token in wrote:
            yield f"one write happened twice: {wrote[event.token]} and {event}"
        wrote[event.token] = event
        present[event.key] = event.token


def _acknowledged(writes: Sequence[Write], whole: list[Event]) -> Iterable[str]:
    by_token = {event.token: event for event in whole if event.type != "DELETED"}
    deleted = {(event.key, event.token) for event in whole if event.type == "DELETED"}
    before = _previous(whole)
    given: dict[int, Write] = {}
    for write in writes:
        event = by_token.get(write.token)
        if write.outcome == "refused":
            if write.kind != "delete" and event is not None:
                yield f"{write} was refused, and happened: {event}"
            continue
        if write.outcome == "acknowledged" and write.kind == "delete":
            if (write.key, write.token) not in deleted:
                yield f"lost: {write}"
            continue
        if write.kind == "delete":
            continue
        if event is not None and before[event.revision] != write.expected:
            yield f"{write} was to follow {write.expected}, and followed {before[event.revision]}"
        if write.outcome != "acknowledged":
            continue
        if write.revision in given:
            yield f"revision {write.revision} was given twice: {given[write.revision]} and {write}"
        given[write.revision] = write
        if event is None:
            yield f"lost: {write}"
        elif event.revision != write.revision:
            yield f"{write} is at {event.revision}"


def _previous(whole: list[Event]) -> dict[int, int]:
    """By revision: at which one the same object was before; 0: it was not there."""
    last: dict[str, int] = defaultdict(int)
    found = {}
    for event in whole:
        found[event.revision] = last[event.key]
        last[event.key] = 0 if event.type == "DELETED" else event.revision
    return found


def _real_time(writes: Sequence[Write]) -> Iterable[str]:
    """A write that was sent after another was answered has a higher revision."""
    told = [write for write in writes if write.outcome == "acknowledged" and write.revision]
    by_answer = sorted(told, key=lambda write: write.answered)
    newest, done = 0, 0
    for write in sorted(told, key=lambda write: write.sent):
        while done < len(by_answer) and by_answer[done].answered < write.sent:
            newest = max(newest, by_answer[done].revision)
            done += 1
        if write.revision <= newest:
            yield f"revision {newest} had been answered before {write} was sent"


def _reads(reads: Sequence[Read], whole: list[Event]) -> Iterable[str]:
    """A read of everything is the sum of the events up to its revision."""
    state: dict[str, tuple[int, str]] = {}
    at = 0
    for read in sorted(reads, key=lambda read: read.revision):
        while at < len(whole) and whole[at].revision <= read.revision:
            event = whole[at]
            at += 1
            if event.type == "DELETED":
                state.pop(event.key, None)
            else:
                state[event.key] = (event.revision, event.token)
        if state != read.found:
            odd = dict(set(state.items()) ^ set(read.found.items()))
            yield f"a list at revision {read.revision} is not what happened: {odd}"
