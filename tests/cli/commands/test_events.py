"""`situate events`: lines for people and for programs, and a clear no where there is nothing to be told any more."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner

from kube.fake_server import FakeServer, Object
from situate.cli import main
from situate.cli.commands.events import EventOptions, NotKeptError, PlacementEventStream, _Table, _writer
from situate.kube.client import Client
from situate.kube.errors import ApiError

EVENTS = "/apis/situate.dev/v1alpha1/placementevents"


def event(revision: int, **fields: Any) -> Object:
    meta = {"name": f"web-0.{revision}", "namespace": "default", "resourceVersion": str(revision)}
    found = {"event": "bound", "phase": "bound", "pod": {"name": "web-0", "uid": "u1"}, "node": "n1", **fields}
    return {"kind": "PlacementEvent", "metadata": meta, "bindingVersion": 1, **found}


def bookmark(revision: int) -> Object:
    annotations = {"k8s.io/initial-events-end": "true"}
    return {"metadata": {"resourceVersion": str(revision), "annotations": annotations}}


class Scripted:
    """A client whose streams are written beforehand: each a list of events, or what it fails with."""

    def __init__(self, *streams: list[tuple[str, Object]] | Exception) -> None:
        self._streams = list(streams)
        self.asked: list[str] = []

    def stream(self, path: str, *, params: Any, idle_s: float) -> "Scripted":
        self.asked.append(f"{path}?{params.get('resourceVersion', '')}")
        return self

    async def __aenter__(self) -> "Scripted":
        found = self._streams.pop(0)
        if isinstance(found, Exception):
            raise found
        self._lines = [json.dumps({"type": kind, "object": obj}).encode() for kind, obj in found]
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def batch(self) -> list[bytes]:
        lines, self._lines = self._lines, []
        return lines


def tell(client: Any, capsys: pytest.CaptureFixture[str], **asked: Any) -> tuple[int, list[Object], str]:
    wanted = EventOptions(**{"follow": False, "since": "oldest", "namespace": "", "gaps": False, **asked})
    code, failure = 0, ""
    try:
        asyncio.run(PlacementEventStream(client, wanted, _writer("json")).run())
    except NotKeptError as error:
        code, failure = 3, f"error: {error}\n"
    said = capsys.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines()], said.err + failure


def test_what_is_there_is_told_and_then_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    client = Scripted([("ADDED", event(5)), ("ADDED", event(7)), ("BOOKMARK", bookmark(9))])
    code, lines, _ = tell(client, capsys)
    assert (code, [line["revision"] for line in lines]) == (0, [5, 7])
    assert client.asked == [f"{EVENTS}?0"]
    assert lines[0]["pod"] == "web-0"
    assert list(lines[0])[:3] == ["revision", "time", "event"]


def test_a_broken_connection_is_resumed_from_the_last_revision_heard_of(capsys: pytest.CaptureFixture[str]) -> None:
    lost = ApiError(0, "Lost", "the connection broke")
    gone = [("ERROR", {"code": 410, "message": "too old"})]
    client = Scripted([("ADDED", event(5))], lost, [("BOOKMARK", bookmark(9)), ("ADDED", event(11))], gone)
    code, lines, said = tell(client, capsys, follow=True, since="3", namespace="default")
    path = EVENTS.replace("/placementevents", "/namespaces/default/placementevents")
    assert client.asked == [f"{path}?{at}" for at in ("3", "5", "5", "11")]
    assert [line["revision"] for line in lines] == [5, 11]
    assert code == 3
    assert "the server does not answer; trying again: the connection broke" in said


def test_what_is_not_kept_any_more_is_exit_code_3_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, said = tell(Scripted([("ERROR", {"code": 410, "message": "begins at 9"})]), capsys, since="4")
    assert (code, lines) == (3, [])
    assert said.count("\n") == 1
    assert "what happened after revision 4 is no longer kept" in said


def test_with_gaps_a_line_says_that_something_is_missing_and_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    gone = [("ERROR", {"code": 410, "message": "begins at 9"})]
    client = Scripted(gone, [("ADDED", event(11)), ("BOOKMARK", bookmark(12))])
    code, lines, _ = tell(client, capsys, since="4", gaps=True)
    assert code == 0
    assert lines[0] == {"event": "gap", "since": "4"}
    assert lines[1]["revision"] == 11
    assert client.asked == [f"{EVENTS}?4", f"{EVENTS}?0"]


def test_a_revision_of_another_history_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    client = Scripted(ApiError(504, "Timeout", "Too large resource version: 99, current: 12"))
    code, _, said = tell(client, capsys, since="99", follow=True)
    assert code == 3
    assert "--since 99 is of another history" in said


def test_a_server_that_has_no_such_thing_is_one_line() -> None:
    async def run() -> None:
        async with FakeServer() as server, Client(server.access(), qps=-1) as client:
            server.absent.add("/apis/situate.dev/v1alpha1")
            with pytest.raises(ApiError):
                await PlacementEventStream(client, EventOptions(True, "now", "", False), _writer("json")).run()

    asyncio.run(run())


def test_for_people_there_are_columns() -> None:
    table = _Table()
    plain = {"revision": 5, "time": "", "namespace": "default", "pod": "web-0", "scheduler": "", "phase": "", "was": ""}

    def line(**fields: Any) -> Sequence[str]:
        return table({**plain, "node": "n1", "bindingVersion": 2, "reason": "", "message": "", **fields}).splitlines()

    headings, first = line(event="repaired")
    assert headings.split() == ["REVISION", "TIME", "EVENT", "POD", "WHERE", "AND", "WHY"]
    assert first.split() == ["5", "repaired", "default/web-0", "n1", "(binding", "2)"]
    (second,) = line(event="waiting", node="", reason="Unschedulable", message="full\nup")
    assert second.endswith("Unschedulable: full up")


def test_a_since_that_is_no_revision_is_bad_input() -> None:
    result = CliRunner().invoke(main, ["events", "--since", "yesterday"])
    assert result.exit_code == 2
    assert "'yesterday' is not a revision" in result.output
