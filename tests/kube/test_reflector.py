"""Keeping up with one kind: lists, watches, and all that can go wrong with them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from kube.fake_server import FakeServer
from kube.watched_store import Faulty, WatchedStore, bookmark, frame, status
from situate.core.changes import Change, NodeSeen, PodGone, PodSeen
from situate.kube import reflector as module
from situate.kube.client import Client
from situate.kube.errors import LOST, TIMEOUT, UNREACHABLE, ApiError
from situate.kube.kinds import CUSTOM_POD_GROUPS, NODES, POD_GROUPS, PODS, WatchedKind
from situate.kube.reflector import BACKOFF_MAX_S, BACKOFF_RESET_S, ListBackoff, Reflector
from situate.loop.logs import KEYS

Batch = list[bytes] | ApiError | float
"""What comes next, or how long nothing comes."""
ENDED: list[bytes] = []


def pod(name: str, version: int, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"uid of {name}", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"containers": [], **spec}}


def added(name: str, version: int, **spec: Any) -> bytes:
    return frame("ADDED", pod(name, version, **spec))


def page(*items: object, version: int = 10, more: str = "") -> bytes:
    return json.dumps({"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}).encode()


def expired(status: int = 410) -> ApiError:
    return ApiError(status, "Expired", "too old resource version")


def cut() -> ApiError:
    return ApiError(0, LOST, "the connection broke")


def silence() -> ApiError:
    return ApiError(0, TIMEOUT, "nothing came for too long")


class Script:
    """A client to which everything that will be answered was said beforehand. At the end of it, nothing comes."""

    def __init__(self, *answers: ApiError | bytes | list[Batch]) -> None:
        self.asked: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.done = asyncio.Event()
        self.now = 0.0
        self.rests: list[float] = []
        self._answers = list(answers)

    async def rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds

    async def _next(self, path: str, params: Mapping[str, str] | None) -> Any:
        self.paths.append(path)
        self.asked.append(dict(params or {}))
        if not self._answers:
            self.done.set()
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, timeout_s: float = 0
    ) -> bytes:
        found = await self._next(path, params)
        assert isinstance(found, bytes), f"a list was asked for, and the script has {found!r}"
        return found

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str] | None = None, idle_s: float
    ) -> AsyncIterator[ScriptedLines]:
        found = await self._next(path, params)
        assert isinstance(found, list), f"a watch was asked for, and the script has {found!r}"
        yield ScriptedLines(found, self)


class ScriptedLines:
    def __init__(self, batches: list[Batch], script: Script) -> None:
        self._batches, self._script = list(batches), script

    async def batch(self) -> list[bytes]:
        if not self._batches:
            if not self._script._answers:
                self._script.done.set()
            await asyncio.Event().wait()
        found = self._batches.pop(0)
        if isinstance(found, ApiError):
            raise found
        if isinstance(found, float):
            await asyncio.sleep(found)
            return await self.batch()
        return found


class Run:
    """What came of a script."""

    def __init__(self, script: Script, reflector: Reflector, batches: list[list[Change]]) -> None:
        self.asked, self.paths, self.rests = script.asked, script.paths, script.rests
        self.reflector = reflector
        self.batches = [told(batch) for batch in batches]
        self.told = [word for batch in self.batches for word in batch]
        self.versions = [asked.get("resourceVersion", "") for asked in script.asked]

    def kinds_of_request(self) -> list[str]:
        return [
            "list by watch" if "sendInitialEvents" in asked else "watch" if "watch" in asked else "list"
            for asked in self.asked
        ]


def told(changes: list[Change]) -> list[str]:
    words = []
    for change in changes:
        match change:
            case PodSeen(seen):
                words.append(f"+{seen.metadata.name}@{seen.metadata.resource_version}")
            case PodGone(ref):
                words.append(f"-{ref.name}")
            case _:
                words.append(str(change))
    return words


def played(*answers: ApiError | bytes | list[Batch], kind: WatchedKind = PODS) -> Run:
    return asyncio.run(_played(Script(*answers), kind))


async def _played(script: Script, kind: WatchedKind) -> Run:
    batches: list[list[Change]] = []
    reflector = Reflector(script, kind, batches.append, rest=script.rest, clock=lambda: script.now, dice=Random(1))
    await _until_done(script, reflector)
    return Run(script, reflector, batches)


async def _until_done(script: Script, reflector: Reflector) -> None:
    running = asyncio.create_task(reflector.run())
    done = asyncio.create_task(script.done.wait())
    await asyncio.wait((running, done), timeout=5, return_when=asyncio.FIRST_COMPLETED)
    assert done.done(), running.exception() if running.done() else f"asked for {script.asked}, and then nothing"
    running.cancel()


LISTED: list[Batch] = [[added("a", 3), added("b", 7), bookmark(10, listed=True)]]


# -- lists -----------------------------------------------------------------------------------------------------------


def test_a_list_comes_at_the_beginning_of_a_watch_which_goes_on() -> None:
    run = played([[added("a", 3)], [added("b", 7), bookmark(10, listed=True), added("c", 11)], [added("d", 12)]])
    assert run.batches == [["+a@3"], ["+b@7"], ["+c@11"], ["+d@12"]]
    assert run.reflector.synced.is_set()
    (asked,) = run.asked
    assert 300 <= int(asked.pop("timeoutSeconds")) <= 600
    assert asked == {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
    }


def test_the_first_list_is_told_as_it_comes() -> None:
    run = played([[added("a", 3)], [added("b", 7), bookmark(8)]])
    assert run.batches == [["+a@3"], ["+b@7"]]
    assert not run.reflector.synced.is_set()


def test_what_was_told_of_a_first_list_that_broke_off_is_not_told_again_but_what_went_since_is() -> None:
    run = played([[added("a", 3), added("b", 4)], cut()], [[added("a", 3), added("c", 12), bookmark(13, listed=True)]])
    assert run.batches == [["+a@3", "+b@4"], ["-b", "+c@12"]]


def test_of_a_later_list_nothing_is_told_before_it_is_complete() -> None:
    expires = frame("ERROR", status(410, "Expired"))
    run = played([*LISTED, [expires]], [[added("a", 12)], [added("b", 7), bookmark(13)]])
    assert run.told == ["+a@3", "+b@7"]


@pytest.mark.parametrize("code", [400, 422, 500, 503, 504])
def test_a_server_that_cannot_do_that_is_asked_for_pages(code: int) -> None:
    run = played(ApiError(code, "Invalid", "no"), page(pod("a", 3), more="t"), page(pod("b", 7)), [[added("c", 11)]])
    assert run.batches == [["+a@3"], ["+b@7"], ["+c@11"]]
    assert run.kinds_of_request() == ["list by watch", "list", "list", "watch"]
    assert [asked.get("continue") for asked in run.asked[1:3]] == [None, "t"]
    assert run.asked[1]["limit"] == "500"
    assert "status.phase" in run.asked[1]["fieldSelector"]
    assert run.versions == ["", "", "", "10"]
    assert run.rests == []


def test_pages_that_expire_are_begun_again_and_at_last_asked_for_whole() -> None:
    first = page(pod("a", 3), more="t")
    run = played(ApiError(422, "Invalid", "no"), first, expired(), first, expired(), page(pod("b", 7)), [])
    assert run.told == ["+a@3", "-a", "+b@7"]
    assert ["limit" in asked for asked in run.asked[1:6]] == [True, True, True, True, False]


def test_a_list_by_watch_that_breaks_off_thrice_is_asked_for_in_pages() -> None:
    broken: list[Batch] = [[added("a", 3)], cut()]
    run = played(broken, [[added("a", 3)], ENDED], broken, page(pod("a", 4)), [])
    assert run.kinds_of_request() == ["list by watch"] * 3 + ["list", "watch"]
    assert run.told == ["+a@3", "+a@4"]
    assert len(run.rests) == 2


def test_a_list_by_watch_that_takes_too_long_is_asked_for_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTING_S", 0.02)
    run = played([[added("a", 3)]], page(pod("a", 4)), [])
    assert run.kinds_of_request() == ["list by watch", "list", "watch"]


def test_after_it_is_listed_a_watch_lasts_as_long_as_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTING_S", 0.02)  # of the list alone
    run = played([*LISTED, 0.04, [added("c", 11)]])
    assert run.told == ["+a@3", "+b@7", "+c@11"]
    assert len(run.asked) == 1


@pytest.mark.parametrize("answer", [b"<html>", b'{"metadata":{},"items":[]}'])
def test_a_list_that_is_none_is_asked_for_again(answer: bytes) -> None:
    run = played(ApiError(422, "Invalid", "no"), answer, page(pod("a", 3)), [])
    assert run.told == ["+a@3"]
    assert len(run.rests) == 1


def test_a_list_that_is_older_than_what_was_told_is_not_used() -> None:
    run = played([*LISTED, [added("c", 20)], [frame("ERROR", status(410, "Expired"))]], LISTED, [])
    assert run.told == ["+a@3", "+b@7", "+c@20"]
    assert run.versions == ["", "20", ""]  # at last, of the store itself
    assert "older" in run.reflector.problem or not run.reflector.problem


def test_a_store_that_itself_went_back_was_restored_and_is_believed() -> None:
    restored: list[Batch] = [[added("a", 3), bookmark(10, listed=True)], [added("c", 11)]]
    ends: list[Batch] = [*LISTED, [added("d", 20)], [frame("ERROR", status(410, "Expired"))]]
    run = played(ends, restored, restored, restored)
    assert run.told[3:] == ["-b", "-d", "+a@3", "+c@11"]


# -- watches ---------------------------------------------------------------------------------------------------------


def test_all_frames_that_are_here_are_told_at_once() -> None:
    run = played([*LISTED, [added(name, 11 + number) for number, name in enumerate("cdefg")]])
    assert run.batches[1] == ["+c@11", "+d@12", "+e@13", "+f@14", "+g@15"]


@pytest.mark.parametrize("end", [ENDED, cut()], ids=["ended", "cut"])
def test_a_watch_that_ends_is_resumed_from_the_last_version_seen(end: Batch) -> None:
    run = played([*LISTED, [added("c", 11)], end], [[added("d", 15)], end], [[bookmark(40)], end], [[added("e", 41)]])
    assert run.told == ["+a@3", "+b@7", "+c@11", "+d@15", "+e@41"]
    assert run.kinds_of_request() == ["list by watch", "watch", "watch", "watch"]
    assert run.versions == ["", "11", "15", "40"]
    assert run.asked[1]["allowWatchBookmarks"] == "true"
    assert run.rests == []


@pytest.mark.parametrize("end", [ENDED, cut()], ids=["ended", "cut"])
def test_watches_that_end_at_once_and_say_nothing_are_begun_once_a_second(end: Batch) -> None:
    run = played([*LISTED, end], [end], [end], [])
    assert run.rests == [1.0, 1.0]
    assert run.reflector.problem == ""


def test_a_watch_that_is_refused_is_tried_again_from_the_same_version_later_and_later() -> None:
    refused = [ApiError(0, UNREACHABLE, "refused", sent=False) for _ in range(7)]
    run = played([*LISTED, ENDED], *refused, [[added("c", 11)]])
    assert run.kinds_of_request() == ["list by watch"] + ["watch"] * 8
    assert all(min(0.8 * 2**n, 30) <= wait <= min(1.6 * 2**n, 30) for n, wait in enumerate(run.rests))
    assert run.told[-1] == "+c@11"
    assert run.reflector.problem == ""


def test_the_server_may_ask_for_a_longer_wait() -> None:
    run = played([*LISTED, ENDED], ApiError(429, "TooManyRequests", "busy", retry_after_s=17.0), [])
    assert run.rests == [17.0]


@pytest.mark.parametrize("how", ["status", "event"])
def test_a_version_that_is_gone_leads_to_a_list_from_there(how: str) -> None:
    ends: list[ApiError | bytes | list[Batch]]
    if how == "status":
        ends = [[*LISTED, [added("c", 11)], ENDED], expired()]
    else:
        ends = [[*LISTED, [added("c", 11), frame("ERROR", status(410, "Expired"))]]]
    run = played(*ends, [[added("a", 3), added("c", 12), bookmark(20, listed=True)], [added("d", 21)]])
    assert run.told[3:] == ["-b", "+c@12", "+d@21"]
    assert run.kinds_of_request()[-1] == "list by watch"
    assert run.versions[-1] == "11"
    assert run.rests == []


def test_watches_that_expire_one_after_the_other_are_a_problem() -> None:
    gone = frame("ERROR", status(410, "Expired"))
    again: list[Batch] = [[added("a", 3), bookmark(11, listed=True)], [gone]]
    run = played([*LISTED, [gone]], again, again, [])
    assert run.kinds_of_request() == ["list by watch"] * 4
    assert len(run.rests) == 2


def test_a_version_that_is_gone_for_a_list_too_leads_to_a_list_of_the_store_itself() -> None:
    run = played([*LISTED, ENDED], expired(), expired(), LISTED)
    assert run.versions == ["", "10", "10", ""]
    assert run.rests == []


def test_an_error_event_ends_the_watch_but_not_what_was_told_before_it() -> None:
    run = played([*LISTED, [added("c", 11), frame("ERROR", status(500, "InternalError")), added("x", 12)]], [])
    assert run.told == ["+a@3", "+b@7", "+c@11"]
    assert run.versions == ["", "11"]
    assert len(run.rests) == 1


def test_an_error_event_may_say_how_long_to_wait() -> None:
    busy = {**status(429, "TooManyRequests"), "details": {"retryAfterSeconds": 9}}
    assert played([*LISTED, [frame("ERROR", busy)]], []).rests == [9.0]


def test_garbage_ends_the_watch_and_at_last_leads_to_a_list() -> None:
    garbage: list[Batch] = [[b"<html>502</html>"]]
    run = played([*LISTED, [added("c", 11), b"\xff"]], garbage, garbage, [[added("c", 12), bookmark(20, listed=True)]])
    assert run.kinds_of_request() == ["list by watch", "watch", "watch", "list by watch"]
    assert run.reflector.unreadable_frames == 3
    assert run.told == ["+a@3", "+b@7", "+c@11", "-a", "-b", "+c@12"]


def test_two_silent_watches_lead_to_a_list() -> None:
    run = played([*LISTED, silence()], [silence()], [silence()], [])
    assert run.kinds_of_request() == ["list by watch", "watch", "watch", "list by watch"]


def test_a_watch_that_outlasts_its_time_is_ended_and_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WATCH_S", (0, 0))
    monkeypatch.setattr(module, "GRACE_S", 0.02)
    run = played([*LISTED, ENDED], [[added("c", 11)]], [[added("d", 12)], ENDED], [])
    assert run.told == ["+a@3", "+b@7", "+c@11", "+d@12"]
    assert run.versions[:3] == ["", "10", "11"]


def test_an_object_that_does_not_decode_does_not_stop_the_watch_and_is_said_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = played([*LISTED, [added("c", 11), added("bad", 12, containers=7), added("d", 13)], ENDED], [])
    assert run.batches[1] == ["+c@11", "+d@13"]
    assert run.versions == ["", "13"]
    assert run.reflector.cache.unreadable == 1
    problem = "Pod default/bad: spec.containers: expected a list, got an integer"
    assert said(caplog) == [("Ignoring an object that cannot be decoded", {"kind": "pods", "err": problem})]


def test_the_same_object_is_said_to_be_unreadable_once(caplog: pytest.LogCaptureFixture) -> None:
    bad = [added("bad", 12 + number, containers=7) for number in range(3)]
    assert played([*LISTED, bad]).reflector.cache.unreadable == 3
    assert len(said(caplog)) == 1


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """The warnings, with their keys."""
    return [
        (record.getMessage(), getattr(record, KEYS)) for record in caplog.records if record.levelno == logging.WARNING
    ]


def test_an_event_of_a_type_that_nobody_knows_is_passed_over() -> None:
    assert played([*LISTED, [frame("SOLD", pod("c", 11)), added("d", 12)]]).told[2:] == ["+d@12"]


# -- what we may not see, and what is not there ----------------------------------------------------------------------


def test_a_forbidden_kind_is_said_in_one_line_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    refused = ApiError(403, "Forbidden", 'nodes is forbidden: User "u" cannot list resource "nodes"')
    run = played(refused, refused, kind=NODES)
    assert not run.reflector.synced.is_set()
    assert run.reflector.problem == (
        'cannot list nodes: nodes is forbidden: User "u" cannot list resource "nodes"; '
        'grant "list" and "watch" on nodes in API group ""'
    )
    # The same thing again is said to those who ask for more.
    keys = {"kind": "nodes", "err": run.reflector.problem, "seconds": round(run.rests[0], 1)}
    assert said(caplog) == [("Cannot list; trying again", keys)]
    assert len(run.rests) == 2


def test_a_required_kind_that_the_server_does_not_have_is_said(caplog: pytest.LogCaptureFixture) -> None:
    run = played(ApiError(404, "NotFound", "the server could not find the requested resource"), kind=NODES)
    assert not run.reflector.synced.is_set()
    assert "the API server does not have /api/v1/nodes" in said(caplog)[0][1]["err"]


def resources(*names: str) -> bytes:
    return json.dumps({"resources": [{"name": name, "verbs": ["get", "list", "watch"]} for name in names]}).encode()


NOT_FOUND = ApiError(404, "NotFound", "the server could not find the requested resource")


def test_an_optional_kind_is_watched_in_the_version_that_the_server_has() -> None:
    run = played(resources("priorityclasses"), resources("podgroups", "podgroups/status"), [], kind=POD_GROUPS)
    assert run.paths == [
        "/apis/scheduling.k8s.io/v1beta1",
        "/apis/scheduling.k8s.io/v1alpha2",
        "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    ]


def test_nothing_waits_for_an_optional_kind_that_is_absent_and_it_is_looked_for_again() -> None:
    run = played(NOT_FOUND, NOT_FOUND, resources("podgroups"), [], kind=CUSTOM_POD_GROUPS[0])
    assert run.reflector.synced.is_set()
    assert run.paths[-1] == "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
    assert len(run.rests) == 2
    assert all(60 <= wait <= 120 for wait in run.rests)
    assert run.reflector.problem == ""


def test_an_answer_about_what_the_server_has_that_is_none_is_asked_for_again() -> None:
    run = played(b"<html>", resources("podgroups"), [], kind=CUSTOM_POD_GROUPS[0])
    assert run.paths[-1] == "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
    assert len(run.rests) == 1


def test_an_optional_kind_that_the_server_has_no_more_has_no_objects() -> None:
    group = {"metadata": {"name": "g", "namespace": "default", "resourceVersion": "3"}, "spec": {"minMember": 2}}
    there: list[Batch] = [[frame("ADDED", group), bookmark(10, listed=True)], ENDED]
    run = played(resources("podgroups"), there, NOT_FOUND, NOT_FOUND, kind=CUSTOM_POD_GROUPS[0])
    assert [word.partition("(")[0] for word in run.told] == ["ObjectSeen", "ObjectGone"]


def test_nothing_waits_for_an_optional_kind_that_we_may_not_see_but_it_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused = ApiError(403, "Forbidden", "podgroups is forbidden")
    run = played(resources("podgroups"), refused, kind=CUSTOM_POD_GROUPS[0])
    assert run.reflector.synced.is_set()
    assert 'grant "list" and "watch" on podgroups in API group "scheduling.x-k8s.io"' in said(caplog)[0][1]["err"]
    assert run.rests == [60.0]


# -- backing off -----------------------------------------------------------------------------------------------------


def test_backoff_doubles_up_to_a_limit_and_starts_again_after_a_while() -> None:
    backoff, now = ListBackoff(Random(1)), 0.0
    waits = []
    for _ in range(12):
        waits.append(backoff.next_s(now))
        now += waits[-1]
    assert all(0.8 * 2**n <= wait < 1.6 * 2**n for n, wait in enumerate(waits[:4]))
    assert max(waits) <= BACKOFF_MAX_S
    assert backoff.next_s(now + BACKOFF_RESET_S + 1) < 1.6


# -- over HTTP -------------------------------------------------------------------------------------------------------


def test_it_keeps_up_with_a_server_over_http_through_cuts_compaction_and_refusals() -> None:
    asyncio.run(_over_http())


async def _over_http() -> None:
    told: list[Change] = []
    heard = asyncio.Event()

    def tell(changes: list[Change]) -> None:
        told.extend(changes)
        heard.set()

    async def until(count: int) -> None:
        while len(told) < count:
            heard.clear()
            await heard.wait()

    async def soon(_: float) -> None:
        await asyncio.sleep(0.001)

    path = "/api/v1/nodes"
    async with asyncio.timeout(10), FakeServer() as server, Client(server.access(), qps=-1) as client:
        reflector = Reflector(client, NODES, tell, rest=soon)
        server.put(path, {"metadata": {"name": "n0"}})
        running = asyncio.create_task(reflector.run())
        for number, trouble in enumerate((server.cut, lambda: server.cut(clean=True), server.compact), 1):
            await server.watching(path)
            server.put(path, {"metadata": {"name": f"n{number}"}})
            await until(number + 1)
            trouble()
        server.fault("GET", path, status=500, times=1)
        server.put(path, {"metadata": {"name": "n4"}})
        server.event(path, "ERROR", status(410, "Expired"))
        await until(5)
        running.cancel()
    assert [change.node.metadata.name for change in told if isinstance(change, NodeSeen)] == [f"n{n}" for n in range(5)]


# -- what Kubernetes promises of watches, kept through all of it -----------------------------------------------------


class Checker:
    """Folds what is told, and holds it against the store's history: in order, once, nothing made up."""

    def __init__(self, store: WatchedStore) -> None:
        self.store = store
        self.state: dict[str, tuple[str, int]] = {}
        self.words: list[str] = []
        """All that was told after the first batch that led to a version."""
        self.since: int | None = None
        """That version."""
        self.reached: Callable[[], str] = str
        self._last: dict[str, int] = {}

    def tell(self, changes: list[Change]) -> None:
        assert changes, "an empty batch was told"
        if self.since is None:
            self.since = int(self.reached() or 0) or None
        else:
            self.words += told(changes)
        for change in changes:
            match change:
                case PodSeen(seen):
                    self._seen(seen.metadata.name, seen.metadata.uid, int(seen.metadata.resource_version), seen)
                case PodGone(ref):
                    assert self.state.pop(ref.name)[0] == ref.uid, (
                        "another pod was told gone than the one that was told"
                    )
                case _:
                    raise AssertionError(change)

    def _seen(self, name: str, uid: str, version: int, seen: Any) -> None:
        assert version > self._last.get(name, 0), "told twice, or an older state after a younger"
        known = self.state.get(name)
        assert known is None or known[0] == uid, "another pod of the name was told without the first one's end"
        held = self.store.at(version)[name]
        assert (held["metadata"]["uid"], held["metadata"]["labels"]) == (uid, dict(seen.metadata.labels)), "made up"
        self._last[name] = version
        self.state[name] = (uid, version)


def truth(store: WatchedStore) -> dict[str, tuple[str, int]]:
    return {
        name: (one["metadata"]["uid"], int(one["metadata"]["resourceVersion"])) for name, one in store.objects.items()
    }


def events(store: WatchedStore, since: int) -> list[str]:
    """All that happened after this version, in the words of `told`."""
    return [
        f"-{one['metadata']['name']}" if kind == "DELETED" else f"+{one['metadata']['name']}@{when}"
        for when, kind, one in store.history
        if when > since
    ]


async def _through_faults(seed: int, *, streams_lists: bool, gentle: bool = False) -> tuple[Faulty, Reflector, Checker]:
    dice = Random(seed)
    store = WatchedStore()
    for _ in range(dice.randint(0, 12)):
        store.write(dice)
    faulty = Faulty(store, dice, writes=60, streams_lists=streams_lists, gentle=gentle)
    checker = Checker(store)
    now = [0.0]

    async def rest(seconds: float) -> None:
        now[0] += seconds
        await asyncio.sleep(0)

    reflector = Reflector(faulty, PODS, checker.tell, rest=rest, clock=lambda: now[0], dice=Random(seed))
    checker.reached = lambda: reflector.cache.version
    running = asyncio.create_task(reflector.run())
    for _ in range(20_000):
        await asyncio.sleep(0)
        assert not running.done(), running.exception()
        faulty.calm = faulty.writes == 0
        if faulty.calm and reflector.cache.version == str(store.version):
            break
    else:
        raise AssertionError(f"seed {seed}: at {reflector.cache.version} of {store.version}, and no further")
    running.cancel()
    return faulty, reflector, checker


by_both_ways = pytest.mark.parametrize("streams_lists", [True, False], ids=["lists by watch", "lists by pages"])


@by_both_ways
def test_through_any_faults_what_is_told_is_in_order_told_once_true_and_in_the_end_complete(
    streams_lists: bool,
) -> None:
    broken = relists = 0
    for seed in range(120):
        faulty, reflector, checker = asyncio.run(_through_faults(seed, streams_lists=streams_lists))
        assert checker.state == truth(faulty.store), f"seed {seed}"
        broken += faulty.broken
        relists += reflector.lists - 1
    assert broken > 1_000
    assert relists > 100


@by_both_ways
def test_through_cuts_and_refusals_every_event_after_the_one_list_is_told(streams_lists: bool) -> None:
    broken = 0
    for seed in range(60):
        faulty, reflector, checker = asyncio.run(_through_faults(seed, streams_lists=streams_lists, gentle=True))
        assert checker.state == truth(faulty.store), f"seed {seed}"
        assert reflector.lists == 1
        assert checker.words == events(faulty.store, checker.since or 0), f"seed {seed}"
        broken += faulty.broken
    assert broken > 500
