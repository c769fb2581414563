"""Events as client-go's recorder writes them: their shape, their series, and what becomes of those that fail."""

import asyncio
from typing import Any

import pytest

from kube.fake_server import FakeServer, Object
from kube.performing import EVENTS, START_NS, Seen, World, play
from situate.core.changes import PodRef
from situate.core.effects import Report
from situate.kube.client import Client
from situate.kube.port import KubePort
from situate.loop.scheduling.events import FINISH_S, REFRESH_S, EventRecorder

MINUTE_NS = 60_000_000_000
WEB = PodRef("default", "web", "uid-web")


class Recorder:
    """Events before a fake server."""

    def __init__(self, server: FakeServer, client: Client, **options: Any) -> None:
        self.server = server
        self.now_ns = START_NS
        self.leads = True
        self.drops = 0
        port = KubePort(client, client, Seen(), host="host-1", may_write=lambda: self.leads)
        self.events = EventRecorder(
            port, lambda: self.leads, lambda: self.now_ns, dropped=self._drop, retry_s=0.001, **options
        )

    def _drop(self) -> None:
        self.drops += 1

    def say(self, note: str = "no room", reason: str = "FailedScheduling", pod: PodRef = WEB) -> None:
        self.events.record(Report(pod, "Warning", reason, "Scheduling", note), "default-scheduler")

    async def written(self) -> list[Object]:
        async with asyncio.timeout(5):
            while self.events.busy:
                await asyncio.sleep(0.001)
        return self.server.all(EVENTS)


def record(scenario: Any, **options: Any) -> None:
    async def run() -> None:
        async with FakeServer() as server, Client(server.access(), qps=-1) as client:
            recorder = Recorder(server, client, **options)
            await scenario(recorder)
            await recorder.events.drain(0)

    asyncio.run(run())


def test_an_event_has_the_shape_of_client_gos() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod(schedulerName="other")
        version = world.get_pod()["metadata"]["resourceVersion"]
        note = "Successfully assigned default/web to n1"
        world.performer.perform([Report(ref, "Normal", "Scheduled", "Binding", note)])
        await world.quiet()
        [asked] = world.server.asked("POST")
        assert asked.path == "/apis/events.k8s.io/v1/namespaces/default/events"
        assert asked.body == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"web.{START_NS:x}", "namespace": "default"},
            "eventTime": "2026-01-01T00:00:00.123456Z",
            "reportingController": "other",
            "reportingInstance": "other-host-1",
            "type": "Normal",
            "reason": "Scheduled",
            "action": "Binding",
            "note": note,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "default",
                "name": "web",
                "uid": ref.uid,
                "resourceVersion": version,
            },
        }

    play(scenario)


def test_what_is_said_of_a_victim_is_said_by_the_preemptors_scheduler_and_names_it() -> None:
    async def scenario(world: World) -> None:
        victim, preemptor = world.add_pod("low"), world.add_pod("high", schedulerName="other")
        world.performer.perform([Report(victim, "Normal", "Preempted", "Preempting", "gone", related=preemptor)])
        await world.quiet()
        [event] = world.server.all(EVENTS)
        assert event["reportingController"] == "other"
        assert event["regarding"]["name"] == "low"
        assert event["related"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "high",
            "uid": preemptor.uid,
        }

    play(scenario)


def test_two_events_of_one_moment_have_two_names() -> None:
    async def scenario(one: Recorder) -> None:
        one.say("a")
        one.say("b")
        names = {event["metadata"]["name"] for event in await one.written()}
        assert len(names) == 2

    record(scenario)


def test_an_event_of_a_pod_with_a_very_long_name_has_a_name_that_the_server_takes() -> None:
    async def scenario(one: Recorder) -> None:
        one.say(pod=PodRef("default", "x" * 253, "u"))
        [event] = await one.written()
        assert len(event["metadata"]["name"]) == 36

    record(scenario)


def test_a_scheduler_with_a_very_long_name_can_report_all_the_same() -> None:
    async def scenario(one: Recorder) -> None:
        one.events.record(Report(WEB, "Normal", "Scheduled", "Binding", "x"), "s" * 200)
        [event] = await one.written()
        assert len(event["reportingInstance"]) == 128

    record(scenario)


def test_the_second_time_makes_a_series_at_once_and_later_ones_are_counted() -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        [event] = await one.written()
        assert "series" not in event
        one.now_ns += MINUTE_NS
        one.say()
        [event] = await one.written()
        assert event["series"] == {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.123456Z"}
        for _ in range(5):
            one.say()
        await one.written()
        assert len(one.server.requests) == 2
        one.now_ns += FINISH_S * 1_000_000_000
        one.events.sweep()
        [event] = await one.written()
        assert event["series"]["count"] == 7
        assert one.server.requests[-1].headers["Content-Type"] == "application/strategic-merge-patch+json"

    record(scenario)


def test_an_event_that_comes_again_after_a_long_time_is_a_new_one() -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        one.now_ns += FINISH_S * 1_000_000_000
        one.say()
        assert len(await one.written()) == 2

    record(scenario)


def test_a_finished_event_that_came_once_is_forgotten_without_a_word() -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        await one.written()
        one.now_ns += FINISH_S * 1_000_000_000
        one.events.sweep()
        await one.written()
        assert len(one.server.requests) == 1

    record(scenario)


def test_a_series_that_goes_on_is_refreshed() -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        await one.written()
        for _ in range(REFRESH_S // 60):
            one.now_ns += MINUTE_NS
            one.say()
            one.events.sweep()
            await one.written()
        [event] = await one.written()
        assert event["series"]["count"] == REFRESH_S // 60 + 1
        assert len(one.server.asked("PATCH")) == 2

    record(scenario)


def test_another_text_is_another_event() -> None:
    async def scenario(one: Recorder) -> None:
        one.say("0/3 nodes are available")
        one.say("0/4 nodes are available")
        assert len(await one.written()) == 2

    record(scenario)


def test_a_series_whose_event_was_forgotten_by_the_server_is_created_again() -> None:
    async def scenario(one: Recorder) -> None:
        one.say()
        [event] = await one.written()
        one.server.remove(EVENTS, event["metadata"]["name"], "default")
        one.say()
        [event] = await one.written()
        assert event["series"]["count"] == 2

    record(scenario)


def test_an_event_that_was_written_and_whose_answer_was_lost_is_there_once() -> None:
    async def scenario(one: Recorder) -> None:
        one.server.fault("POST", "/events", drop="after")
        one.say()
        assert len(await one.written()) == 1
        one.say()
        [event] = await one.written()
        assert event["series"]["count"] == 2
        assert one.drops == 0

    record(scenario)


@pytest.mark.parametrize(
    "fault, tries",
    [
        pytest.param({"drop": "before"}, 12, id="the server is out of reach"),
        pytest.param({"status": 500}, 3, id="500"),
        pytest.param({"status": 429, "reason": "TooManyRequests"}, 3, id="429"),
        pytest.param({"status": 403, "reason": "Forbidden"}, 1, id="its namespace is being deleted"),
        pytest.param({"status": 422, "reason": "Invalid"}, 1, id="422"),
        pytest.param({"status": 404, "reason": "NotFound"}, 1, id="404"),
    ],
)
def test_an_event_that_cannot_be_written_is_dropped_after_a_while(fault: dict[str, Any], tries: int) -> None:
    async def scenario(one: Recorder) -> None:
        one.server.fault("POST", "/events", times=99, **fault)
        one.say()
        await one.written()
        assert len(one.server.asked("POST")) == tries
        assert one.drops == 1

    record(scenario)


def test_events_that_nobody_has_room_for_are_dropped_and_counted() -> None:
    async def scenario(one: Recorder) -> None:
        for at in range(10):
            one.say(f"note {at}")
        assert one.drops == 6
        assert len(await one.written()) == 4

    record(scenario, waiting=4)


def test_events_of_one_pod_are_written_in_order() -> None:
    async def scenario(one: Recorder) -> None:
        for at in range(20):
            one.say(f"{at}")
        await one.written()
        assert [asked.body["note"] for asked in one.server.asked("POST")] == [f"{at}" for at in range(20)]

    record(scenario)


def test_who_does_not_lead_reports_nothing() -> None:
    async def scenario(one: Recorder) -> None:
        one.leads = False
        one.say()
        await one.written()
        assert not one.server.requests

    record(scenario)


def test_draining_waits_for_what_is_there_and_takes_no_more() -> None:
    async def scenario(one: Recorder) -> None:
        one.say("first")
        assert await one.events.drain(5)
        one.say("second")
        assert [event["note"] for event in one.server.all(EVENTS)] == ["first"]

    record(scenario)
