"""Events in every world: what they say, their series, and what becomes of those that cannot be written."""

import asyncio
from typing import Any

import pytest

from loop.scheduling.worlds import START_NS, WORLDS, Event, Opener, PortWorld, play
from situate.core.changes import PodRef
from situate.core.effects import Bind, Report
from situate.loop.scheduling import events as module
from situate.loop.scheduling.events import FINISH_S, REFRESH_S, EventSeriesRecorder
from situate.loop.scheduling.port import EventSeries, WriteOutcome

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
WEB = PodRef("default", "web", "uid-web")
in_both_worlds = pytest.mark.parametrize("opener", WORLDS)


class Recorder:
    """An EventSeriesRecorder before a port, with what it writes."""

    def __init__(self, world: PortWorld, retry_s: float = 0.001, **options: Any) -> None:
        self.world = world
        self.drops = 0
        self.writes: list[WriteOutcome] = []
        self.outcomes: list[WriteOutcome] = []
        """What writes come to, in place of what the port says; empty: what it says."""
        self.notes: list[str] = []
        self._write = world.port.write_event
        world.port.write_event = self.write
        self.events = EventSeriesRecorder(
            world.port, world.may_write, world.clock, dropped=self._drop, retry_s=retry_s, **options
        )

    async def write(self, event: EventSeries) -> WriteOutcome:
        self.notes.append(event.report.note)
        outcome = self.outcomes.pop(0) if self.outcomes else await self._write(event)
        self.writes.append(outcome)
        return outcome

    def _drop(self) -> None:
        self.drops += 1

    def say(self, note: str = "no room", reason: str = "FailedScheduling", pod: PodRef = WEB) -> None:
        self.events.record(Report(pod, "Warning", reason, "Scheduling", note), "default-scheduler")

    async def written(self) -> list[Event]:
        await self.world.until(lambda: not self.events.busy)
        return self.world.events()


def record(opener: Opener, scenario: Any, **options: Any) -> None:
    async def run(world: PortWorld) -> None:
        recorder = Recorder(world, **options)
        await scenario(recorder)
        await recorder.events.drain(0)

    play(opener, run)


@in_both_worlds
def test_an_event_says_who_reports_what_about_whom(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod(schedulerName="other")
        world.performer.perform([Report(ref, "Normal", "Queued", "Scheduling", "waits")])
        await world.quiet()
        assert world.events() == [
            Event(f"web.{START_NS:x}", "web", "", "Queued", "waits", "other", "other-host-1", count=1)
        ]

    play(opener, scenario)


@in_both_worlds
def test_a_bind_is_reported_once(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        world.performer.perform([Bind(ref, "n1", 1)])
        await world.answers()
        note = "Successfully assigned default/web to n1"
        world.performer.perform([Report(ref, "Normal", "Scheduled", "Binding", note)])
        await world.quiet()
        [event] = world.events()
        assert (event.reason, event.note, event.instance) == ("Scheduled", note, "default-scheduler-host-1")

    play(opener, scenario)


@in_both_worlds
def test_a_bind_that_failed_is_not_reported_as_done(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        await world.remove("Pod", "web")
        world.performer.perform([Bind(ref, "n1", 1)])
        await world.answers()
        assert world.events() == []

    play(opener, scenario)


@in_both_worlds
def test_the_preemptors_scheduler_reports_what_becomes_of_a_victim(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        victim, preemptor = await world.add_pod("low"), await world.add_pod("high", schedulerName="other")
        world.performer.perform([Report(victim, "Normal", "Preempted", "Preempting", "gone", related=preemptor)])
        await world.quiet()
        [event] = world.events()
        assert (event.about, event.related, event.controller) == ("low", "high", "other")

    play(opener, scenario)


@in_both_worlds
def test_two_events_of_one_moment_have_two_names(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say("a")
        one.say("b")
        assert len({event.name for event in await one.written()}) == 2

    record(opener, scenario)


@in_both_worlds
def test_very_long_names_of_pods_and_schedulers_make_names_that_the_server_takes(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        pod = PodRef("default", "x" * 253, "u")
        one.events.record(Report(pod, "Normal", "Queued", "Scheduling", "x"), f"{'s' * 60}.{'s' * 60}.com/scheduler")
        [event] = await one.written()
        assert (len(event.name), len(event.instance)) == (36, 128)

    record(opener, scenario)


@in_both_worlds
def test_the_second_time_makes_a_series_at_once_and_later_ones_are_counted(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        assert [event.count for event in await one.written()] == [1]
        one.world.now_ns += MINUTE_NS
        one.say()
        assert [event.count for event in await one.written()] == [2]
        for _ in range(5):
            one.say()
        await one.written()
        assert len(one.writes) == 2
        one.world.now_ns += FINISH_S * SECOND_NS
        one.events.sweep()
        assert [event.count for event in await one.written()] == [7]

    record(opener, scenario)


@in_both_worlds
def test_an_event_that_comes_again_after_a_long_time_is_a_new_one(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        one.world.now_ns += FINISH_S * SECOND_NS
        one.say()
        assert len(await one.written()) == 2

    record(opener, scenario)


@in_both_worlds
def test_a_finished_event_that_came_once_is_forgotten_without_a_write(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        await one.written()
        one.world.now_ns += FINISH_S * SECOND_NS
        one.events.sweep()
        await one.written()
        assert len(one.writes) == 1

    record(opener, scenario)


@in_both_worlds
def test_a_series_that_goes_on_is_refreshed(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        await one.written()
        for _ in range(REFRESH_S // 60):
            one.world.now_ns += MINUTE_NS
            one.say()
            one.events.sweep()
            await one.written()
        assert [event.count for event in await one.written()] == [REFRESH_S // 60 + 1]
        assert len(one.writes) == 3, "the event, its second occurrence, and one refresh"

    record(opener, scenario)


@in_both_worlds
def test_another_text_is_another_event(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say("0/3 nodes are available")
        one.say("0/4 nodes are available")
        assert len(await one.written()) == 2

    record(opener, scenario)


@in_both_worlds
def test_a_series_whose_event_has_expired_is_created_again(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        [event] = await one.written()
        await one.world.remove("Event", event.name)
        one.say()
        assert [event.count for event in await one.written()] == [2]
        assert one.drops == 0

    record(opener, scenario)


@in_both_worlds
def test_an_event_that_is_there_already_is_counted_and_not_dropped(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        await one.written()
        [known] = one.events._known.values()
        known.written = 0  # its answer was lost
        one.say()
        assert [event.count for event in await one.written()] == [2]
        assert one.writes == [WriteOutcome.DONE, WriteOutcome.EXISTS, WriteOutcome.DONE]
        assert one.drops == 0

    record(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize(
    "outcome, tries", [(WriteOutcome.UNREACHABLE, 12), (WriteOutcome.BUSY, 3), (WriteOutcome.REFUSED, 1)]
)
def test_an_event_that_cannot_be_written_is_dropped_after_a_while(
    opener: Opener, outcome: WriteOutcome, tries: int
) -> None:
    async def scenario(one: Recorder) -> None:
        one.outcomes = [outcome] * 99
        one.say()
        await one.written()
        assert len(one.writes) == tries
        assert one.drops == 1

    record(opener, scenario)


@in_both_worlds
def test_an_event_in_a_namespace_that_is_not_there_is_dropped(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.outcomes = [WriteOutcome.REFUSED]
        one.say(pod=PodRef("absent", "web", "u"))
        assert await one.written() == []
        assert one.drops == 1

    record(opener, scenario)


@in_both_worlds
def test_events_that_there_is_no_room_for_are_dropped_and_counted(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        for at in range(10):
            one.say(f"note {at}")
        assert one.drops == 6
        assert len(await one.written()) == 4

    record(opener, scenario, waiting=4)


@in_both_worlds
def test_dropped_events_are_in_the_metrics(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: PortWorld) -> None:
        async def refused(_event: EventSeries) -> WriteOutcome:
            return WriteOutcome.REFUSED

        world.port.write_event = refused
        world.performer.perform([Report(WEB, "Warning", "FailedScheduling", "Scheduling", "x")])
        await world.quiet()
        assert world.counted.drops == ["event"]

    monkeypatch.setattr(module, "RETRY_S", 0.001)
    play(opener, scenario)


@in_both_worlds
def test_events_about_one_pod_are_written_in_order(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        for at in range(20):
            one.say(f"{at}")
        await one.written()
        assert one.notes == [f"{at}" for at in range(20)]

    record(opener, scenario)


@in_both_worlds
def test_draining_writes_what_waits_and_takes_no_more(opener: Opener) -> None:
    async def scenario(one: Recorder) -> None:
        one.say("first")
        assert await one.events.drain(5)
        one.say("second")
        assert [event.note for event in await one.written()] == ["first"]

    record(opener, scenario)


@in_both_worlds
def test_a_recorder_that_stops_does_not_wait_for_the_next_try(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        recorder = Recorder(world, retry_s=3_600)
        recorder.outcomes = [WriteOutcome.BUSY]
        recorder.say()
        await world.until(lambda: recorder.writes)
        async with asyncio.timeout(5):
            await recorder.events.drain(60)
        assert not recorder.events.busy

    play(opener, scenario)
