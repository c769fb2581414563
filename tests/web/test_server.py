"""The page's server, with a control plane behind it: logins, rights, streams, questions; and who gets nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from situate.server.identity.secret_files import STAT_INTERVAL_S
from situate.server.identity.users import UserDirectory
from situate.web import models
from situate.web import usage as usage_module
from web.serving import WITHIN_S, PageWorld, first, page_world

Test = Callable[[PageWorld], Awaitable[None]]


def run(directory: Path, test: Test, **settings: Any) -> None:
    async def work() -> None:
        async with page_world(directory / "c", **settings) as world:
            await test(world)

    asyncio.run(work())


def pod(name: str, cpu: str = "100m", namespace: str = "default", **meta: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **meta},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]},
    }


async def create(world: PageWorld, body: dict[str, Any]) -> None:
    namespace = body["metadata"]["namespace"]
    code, found = await world.api.send("POST", f"/api/v1/namespaces/{namespace}/pods", body)
    assert code == 201, found


async def allow(world: PageWorld, user: str, namespace: str) -> None:
    """Let a user view one namespace."""
    code, found = await world.api.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    assert code == 201, found
    binding = {
        "metadata": {"name": "viewer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    code, found = await world.api.send("POST", path, binding)
    assert code == 201, found


# ── logins ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_link_logs_in_once_and_the_cookie_is_for_this_page_alone(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        link = world.grants.create()
        async with world.visitor() as one:
            assert (await one.get("/api/me"))[0] == 401
            async with one.session.post(
                f"{world.url}/api/login", json={"link": link}, headers={"Origin": world.url}
            ) as response:
                assert (response.status, (await response.json())["user"]) == (200, "situate-admin")
                (cookie,) = response.headers.getall("Set-Cookie")
            assert cookie.startswith("__Host-situate-")
            assert {"HttpOnly", "Path=/", "SameSite=Strict", "Secure"} <= set(cookie.split("; "))
            assert (await one.get("/api/me"))[1]["user"] == "situate-admin"
            code, found = await one.post("/api/login", {"link": link})
            assert (code, "used already" in found["error"]) == (403, True)
            assert (await one.post("/api/logout", {}))[0] == 200
            assert (await one.get("/api/me"))[0] == 401

    run(tmp_path, test, nodes=0)


def test_an_expired_login_reads_nothing_and_its_stream_ends(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        async with world.person() as one, asyncio.timeout(WITHIN_S), aclosing(one.events("map")) as events:
            told = [name async for name, _ in events]
            assert told[-1] == "expired"
            for path in ("/api/me", "/stream/map", "/api/nodes/node-1", "/api/why/default/p"):
                code, found = await one.get(path)
                assert (code, "expired" in found["error"]) == (401, True)

    run(tmp_path, test, login_s=1.5)


def test_a_users_own_token_logs_in_with_the_users_rights(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        await allow(world, "carol", "shop")
        token = UserDirectory(world.settings.directory).add_token("carol", (), timedelta(hours=1), datetime.now(UTC))
        async with world.visitor() as one:
            code, found = await one.post("/api/login", {"token": "nonsense"})
            assert code == 403
            await asyncio.sleep(2 * STAT_INTERVAL_S)  # the server looks at the file this often
            code, found = await one.post("/api/login", {"token": token, "namespace": "shop"})
            assert (code, found["user"]) == (200, "carol")
            summary = await first(one, "summary", "summary")
            assert (summary["whole"], summary["namespace"]) == (False, "shop")

    run(tmp_path, test)


# ── who gets nothing ────────────────────────────────────────────────────────────────────────────────────────────────


def test_another_site_gets_nothing(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        async with world.person() as one:
            for origin in ("https://evil.example", "null", "", world.url.replace("https", "http")):
                one.origin = origin
                assert (await one.post("/api/logout", {}))[0] == 403
            one.origin = world.url
            assert (await one.get("/api/me", **{"Sec-Fetch-Site": "cross-site"}))[0] == 403
            assert (await one.get("/stream/map", **{"Sec-Fetch-Site": "same-site"}))[0] == 403
            assert (await one.get("/api/me", Host="evil.example"))[0] == 403
            assert (await one.get("/", Host="evil.example:443"))[0] == 403
            async with one.session.post(
                f"{world.url}/api/logout", data=b"{}", headers={"Origin": world.url, "Content-Type": "text/plain"}
            ) as response:
                assert response.status == 415
            assert (await one.get("/api/me"))[0] == 200

    run(tmp_path, test, nodes=0)


def test_every_response_forbids_foreign_scripts_frames_and_caches(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        async with world.person() as one:
            for path in ("/", "/map", "/assets/app.js", "/api/me", "/api/nothing", "/assets/nothing"):
                async with one.session.get(world.url + path) as response:
                    policy = response.headers["Content-Security-Policy"]
                    assert "unsafe" not in policy
                    assert policy.startswith("default-src 'none'; script-src 'self';")
                    assert "frame-ancestors 'none'" in policy
                    assert response.headers["X-Content-Type-Options"] == "nosniff"
                    assert response.headers["Referrer-Policy"] == "no-referrer"
                    assert "Server" not in response.headers

    run(tmp_path, test, nodes=0)


def test_too_many_open_pages_of_one_login_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.web.server.MAX_STREAMS_PER_LOGIN", 1)

    async def test(world: PageWorld) -> None:
        async with world.person() as one, aclosing(one.events("map")) as events:
            await anext(aiter(events))
            code, found = await one.get("/stream/map")
            assert (code, found["error"]) == (429, "too many pages are open")

    run(tmp_path, test)


def test_there_is_room_for_so_many_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "MAX_MODELS", 1)

    async def test(world: PageWorld) -> None:
        async with world.person() as admin, aclosing(admin.events("map")) as events:
            await anext(aiter(events))
            async with world.person("dave") as other:
                assert "people look at this page" in (await first(other, "map", "ended"))["why"]

    run(tmp_path, test)


# ── rights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_viewer_of_one_namespace_sees_that_one_and_is_told_why_not_more(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        await allow(world, "alice", "shop")
        await create(world, pod("mine", "99", "shop"))
        await create(world, pod("secret", "99"))
        async with world.person("alice", "shop") as alice:
            found = await first(alice, "waiting", "waiting", lambda now: now["rows"] and now["rows"][0]["reason"])
            assert [row["owner"] for row in found["rows"]] == ["Pod/mine"]
            summary = await first(alice, "summary", "summary")
            assert (summary["namespace"], summary["waiting"], summary.get("nodes")) == ("shop", 1, None)
            assert any('cannot list resource "nodes"' in text for text in summary["problems"])
            assert any(
                'cannot list resource "pods" in API group "" at the cluster scope' in text
                for text in summary["problems"]
            )
            code, found = await alice.get("/api/why/shop/mine")
            assert (code, found["standing"]) == (200, "waiting")
            assert "Insufficient cpu" in found["message"]
            assert "you do not see all nodes" in found["notes"][0]
            code, found = await alice.get("/api/why/default/secret")
            assert (code, "forbidden" in found["error"]) == (403, True)
            assert (await alice.get("/api/nodes/node-1"))[0] == 404

    run(tmp_path, test)


def test_somebody_without_any_right_sees_nothing_and_reads_why(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        await create(world, pod("secret"))
        async with world.person("nobody") as one:
            ended = await first(one, "waiting", "ended")
            assert "pods is forbidden" in ended["why"]
            assert "nobody" in ended["why"]

    run(tmp_path, test)


def test_rights_that_are_taken_away_end_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.web.model.RECHECK_S", 0.1)

    async def test(world: PageWorld) -> None:
        await allow(world, "alice", "shop")
        cluster_wide = {
            "metadata": {"name": "alice"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
        }
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        assert (await world.api.send("POST", path, cluster_wide))[0] == 201
        async with (
            world.person("alice", "shop") as alice,
            asyncio.timeout(WITHIN_S),
            aclosing(alice.events("map")) as events,
        ):
            stream = aiter(events)
            assert (await anext(stream))[1]["whole"]
            assert (await world.api.send("DELETE", f"{path}/alice"))[0] == 200
            told = [(name, value) async for name, value in stream]
            assert told[-1][0] == "ended"
            assert "what you may read has changed" in told[-1][1]["why"]
            assert not (await first(alice, "summary", "summary"))["whole"]

    run(tmp_path, test)


# ── what is shown ───────────────────────────────────────────────────────────────────────────────────────────────────


async def _until(stream: AsyncIterator[tuple[str, Any]], name: str, holds: Callable[[Any], object]) -> Any:
    async with asyncio.timeout(WITHIN_S):
        async for told, value in stream:
            if told == name and holds(value):
                return value
    raise AssertionError("the stream ended")


def test_the_map_follows_the_cluster_by_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_module, "USAGE_S", 0.1)

    async def test(world: PageWorld) -> None:
        async with world.person() as admin, aclosing(admin.events("map")) as events:
            stream = aiter(events)
            every = await _until(stream, "map", lambda value: "used" in value)  # then nothing is laid out anew
            assert sorted(every["names"]) == ["node-1", "node-2", "node-3"]
            assert sorted(every["zones"]) == ["zone-1", "zone-2", "zone-3"]
            assert every["resources"] == ["cpu", "memory", "pods"]
            await create(world, pod("one", "2"))
            change = await _until(stream, "map", lambda value: any(share >= 500 for share in value["shares"][0]))
            assert len(change["rows"]) == 1
            summary = await first(admin, "summary", "summary", lambda value: value["bound"] == 1)
            assert summary["totals"]["cpu"]["requested"] == "2"

    run(tmp_path, test)


def test_a_pod_that_waits_appears_with_its_reason_and_its_fixes(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        async with world.person() as admin:
            await create(world, pod("small", "1"))
            await create(world, pod("big", "5"))
            found = await first(admin, "waiting", "waiting", lambda now: now["rows"] and now["rows"][0]["reason"])
            (row,) = found["rows"]
            assert (row["owner"], row["requests"]["cpu"]) == ("Pod/big", "5")
            code, why = await admin.get("/api/why/default/big")
            assert (code, why["standing"], why["nodes"], why["feasible"]) == (200, "unschedulable", 3, 0)
            assert any("less cpu" in way["text"] for way in why["ways"])
            code, why = await admin.get("/api/why/default/big?node=node-2")
            assert (why["oneNode"]["node"], why["oneNode"]["fits"]) == ("node-2", False)
            code, found = await admin.get("/api/why/default/big?node=nowhere")
            assert (code, found["error"]) == (400, 'nodes "nowhere" not found')
            code, found = await admin.get("/api/why/default/nothing")
            assert code == 404

    run(tmp_path, test)


def test_a_placed_pod_says_why_here_and_its_node_lists_it(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        async with world.person() as admin:
            await create(world, pod("one", "1"))
            await first(admin, "summary", "summary", lambda now: now["bound"] == 1)
            code, why = await admin.get("/api/why/default/one")
            assert (code, why["standing"], why["rank"]) == (200, "bound", 1)
            code, node = await admin.get(f"/api/nodes/{why['node']}")
            assert [one["pod"] for one in node["pods"]] == ["default/one"]
            cpu = next(one for one in node["resources"] if one["name"] == "cpu")
            assert (cpu["requested"], cpu["allocatable"], cpu["share"]) == ("1", "4", 250)

    run(tmp_path, test)


def test_changes_during_a_question_are_shown_after_it(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        async with world.person() as admin, aclosing(admin.events("map")) as events:
            stream = aiter(events)
            await _until(stream, "map", lambda value: True)
            await create(world, pod("big", "5"))
            asked = [asyncio.create_task(admin.get("/api/why/default/big")) for _ in range(5)]
            await create(world, pod("one", "2"))
            await _until(stream, "summary", lambda value: value["bound"] == 1 and value["waiting"] == 1)
            assert [(await one)[0] for one in asked] == [200] * 5

    run(tmp_path, test)


def _bound(placements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in placements if one["event"] == "bound"]


def test_a_decision_appears_in_the_stream_of_placements(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        async with world.person() as admin, aclosing(admin.events("placements")) as events:
            stream = aiter(events)
            await _until(stream, "placements", lambda value: value["all"])
            await create(world, pod("one"))
            told = await _until(
                stream, "placements", lambda value: any(p["event"] == "bound" for p in value["placements"])
            )
            (bound,) = _bound(told["placements"])
            assert (bound["pod"], bound["node"] in {"node-1", "node-2", "node-3"}) == ("default/one", True)

    run(tmp_path, test)


def test_a_gang_shows_how_many_it_has_and_needs(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        labels = {"situate.dev/gang": "train", "situate.dev/gang-size": "3"}
        for number in range(2):
            await create(world, pod(f"train-{number}", labels=labels))
        async with world.person() as admin:
            found = await first(admin, "gangs", "gangs", lambda now: now["gangs"] and now["gangs"][0]["pods"] == 2)
            (gang,) = found["gangs"]
            assert (gang["name"], gang["minCount"], gang["bound"], gang["waiting"]) == ("train", 3, 0, 2)
            assert [(queue["scheduler"], queue["pods"]) for queue in found["queues"]] == [("default-scheduler", 2)]
            await create(world, pod("train-2", labels=labels))
            await first(admin, "gangs", "gangs", lambda now: now["gangs"][0]["bound"] == 3)

    run(tmp_path, test)


def test_a_preemption_shows_who_had_to_go_for_whom_and_why(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        important = {"metadata": {"name": "important"}, "value": 1000}
        code, found = await world.api.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", important)
        assert code == 201, found
        async with world.person() as admin:
            for number in range(3):
                await create(world, pod(f"low-{number}", "3"))
            await first(admin, "summary", "summary", lambda now: now["bound"] == 3)
            async with aclosing(admin.events("preemptions")) as events:
                stream = aiter(events)
                assert (await _until(stream, "preemptions", lambda now: True))["rows"] == []
                high = pod("high", "3")
                high["spec"]["priorityClassName"] = "important"
                await create(world, high)
                found = await _until(
                    stream, "preemptions", lambda now: now["rows"] and now["rows"][0]["state"] == "bound"
                )
            (row,) = found["rows"]
            (victim,) = row["victims"]
            assert (row["by"], row["priority"], row["placed"]) == ("default/high", 1000, row["node"])
            assert (victim["pod"].startswith("default/low-"), victim["priority"]) == (True, 0)
            assert "Insufficient cpu" in row["message"]
        async with world.person(namespace="kube-system") as later:  # another person: nothing was watched for them yet
            late = await first(
                later,
                "preemptions",
                "preemptions",
                lambda now: now["rows"] and now["rows"][0]["state"] == "bound" and now["rows"][0]["message"],
            )
            (again,) = late["rows"]
            assert (again["by"], again["priority"], again["message"]) == (row["by"], 1000, row["message"])
            assert again["victims"] == [{"pod": victim["pod"], "priority": None}], "it is gone, and so is its priority"

    run(tmp_path, test)


def test_what_if_answers_as_plan_does_and_changes_nothing(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        await create(world, pod("one", "1"))
        async with world.person() as admin:
            await first(admin, "summary", "summary", lambda now: now["bound"] == 1)
            code, found = await admin.post("/api/room", {"manifest": json.dumps(pod("probe", "1"))})
            assert (code, found["fits"], sum(found["byZone"].values())) == (200, 11, 11)
            _, why = await admin.get("/api/why/default/one")
            code, found = await admin.post("/api/drain", {"nodes": [why["node"]]})
            assert (code, found["nodes"]) == (200, [why["node"]])
            code, found = await admin.post("/api/survive", {})
            assert (code, len(found["losses"])) == (200, 3)
            for path, body, words in (
                ("/api/room", {"manifest": "kind: Pod\n"}, "apiVersion"),
                ("/api/room", {"manifest": ": : :"}, "the manifest"),
                ("/api/room", {}, "there is no manifest"),
                ("/api/drain", {"nodes": ["nowhere"]}, '"nowhere" not found'),
                ("/api/drain", {"nodes": []}, "there is no node"),
            ):
                code, found = await admin.post(path, body)
                assert (code, words in found["error"]) == (400, True), found
            assert len(await world.api.items("/api/v1/pods")) == 1

    run(tmp_path, test)


def test_what_if_needs_the_right_to_list(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        await allow(world, "alice", "shop")
        async with world.person("alice", "shop") as alice:
            code, found = await alice.post("/api/survive", {})
            assert (code, "forbidden" in found["error"]) == (403, True)

    run(tmp_path, test)
