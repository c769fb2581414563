"""Events as client-go's recorder writes them: their shape, their series, and what becomes of those that fail."""

import asyncio
from typing import Any

import pytest

from kube.fake_server import FakeServer, Object
from kube.performing import EVENTS, START_NS, Seen, World, play
from situate.core.changes import PodRef
from situate.core.effects import Report
from situate.kube.client import Client
from situate.kube.port import KubeSchedulingPort
from situate.loop.scheduling.events import FINISH_S, EventSeriesRecorder

MINUTE_NS = 60_000_000_000
WEB = PodRef("default", "web", "uid-web")


class Recorder:
    """Events before a fake server."""

    def __init__(self, server: FakeServer, client: Client, **options: Any) -> None:
        self.server = server
        self.now_ns = START_NS
        self.leads = True
        self.drops = 0
        port = KubeSchedulingPort(client, client, Seen(), host="host-1", may_write=lambda: self.leads)
        self.events = EventSeriesRecorder(
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
