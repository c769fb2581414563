import gzip
import json
from typing import Any

import pytest

from server.http.world import PODS, World, deployment, pod, told, world
from situate.server.errors import conflict
from situate.server.http import rendering
from situate.server.http.ports import CreateHandler, CreateRequest
from situate.server.http.settings import Limits
from situate.server.registry import stored_object
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND

MERGE = {"Content-Type": "application/merge-patch+json"}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def test_an_object_lives_through_all_verbs() -> None:
    async def story() -> None:
        async with world() as here:
            made = await here.ask("POST", PODS, pod("p", labels={"a": "b"}))
            assert made.code == 201
            assert (made.json["kind"], made.json["metadata"]["namespace"]) == ("Pod", "default")
            got = await here.get(f"{PODS}/p")
            assert (got.code, got.json) == (200, made.json)
            listed = (await here.get(PODS)).json
            assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
            assert [item["metadata"]["name"] for item in listed["items"]] == ["p"]
            assert "kind" not in listed["items"][0]
            patched = await here.ask("PATCH", f"{PODS}/p", {"metadata": {"labels": {"c": "d"}}}, MERGE)
            assert patched.json["metadata"]["labels"] == {"a": "b", "c": "d"}
            put = await here.ask("PUT", f"{PODS}/p", patched.json)
            assert put.code == 200
            stale = await here.ask(
                "PUT", f"{PODS}/p", {**made.json, "metadata": {**made.json["metadata"], "labels": {}}}
            )
            assert stale.code == 409
            assert "the object has been modified" in stale.message
            gone = await here.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
            assert (gone.code, gone.json["kind"]) == (200, "Pod")
            assert (await here.get(f"{PODS}/p")).message == 'pods "p" not found'

    told(story)


def test_deleting_most_things_is_answered_with_a_status() -> None:
    async def story() -> None:
        async with world() as here:
            path = "/apis/apps/v1/namespaces/default/deployments"
            made = await here.ask("POST", path, deployment())
            gone = (await here.ask("DELETE", f"{path}/web", {"propagationPolicy": "Background"})).json
            uid = made.json["metadata"]["uid"]
            assert gone["status"] == "Success"
            assert gone["details"] == {"name": "web", "group": "apps", "kind": "deployments", "uid": uid}

    told(story)


def test_a_collection_is_deleted_by_its_labels() -> None:
    async def story() -> None:
        async with world() as here:
            for name in ("a", "b", "c"):
                await here.ask("POST", PODS, pod(name, labels={"of": name}))
            gone = await here.ask("DELETE", f"{PODS}?labelSelector=of+in+(a,b)&gracePeriodSeconds=0")
            assert (gone.code, len(gone.json["items"])) == (200, 2)
            assert [item["metadata"]["name"] for item in (await here.get(PODS)).json["items"]] == ["c"]

    told(story)


def test_lists_go_on_where_they_ended() -> None:
    async def story() -> None:
        async with world() as here:
            for number in range(5):
                await here.ask("POST", PODS, pod(f"p{number}"))
            names: list[str] = []
            token = ""
            while True:
                page = (await here.get(f"{PODS}?limit=2&continue={token}")).json
                names += [item["metadata"]["name"] for item in page["items"]]
                token = page["metadata"].get("continue", "")
                if not token:
                    break
                assert page["metadata"]["remainingItemCount"] == 5 - len(names)
            assert names == [f"p{number}" for number in range(5)]

    told(story)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_long_list_is_made_in_slices_and_is_the_same(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "SLICE", 2)
    for module in (rendering, stored_object):
        monkeypatch.setattr(module, "ITEMS_PER_CHUNK", 2)

    async def story() -> None:
        async with world() as here:
            for number in range(count):
                await here.ask("POST", PODS, pod(f"p{number}"))
            names = [f"p{number}" for number in range(count)]
            for accept in ("", PARTIALS):
                listed = (await here.get(PODS, accept)).json
                assert [item["metadata"]["name"] for item in listed["items"]] == names
            assert [row["cells"][0] for row in (await here.get(PODS, TABLE)).json["rows"]] == names

    told(story)


def test_a_table_has_columns_and_rows_with_what_was_asked_of_the_object() -> None:
    async def story() -> None:
        async with world() as here:
            await here.ask("POST", PODS, pod())
            table = (await here.get(PODS, TABLE)).json
            assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
            assert [column["name"] for column in table["columnDefinitions"][:3]] == ["Name", "Ready", "Status"]
            assert table["rows"][0]["cells"][:3] == ["p", "0/1", "Pending"]
            assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
            assert "spec" not in table["rows"][0]["object"]
            whole = (await here.get(f"{PODS}?includeObject=Object", TABLE)).json
            assert whole["rows"][0]["object"]["spec"]["containers"][0]["name"] == "c"
            bare = (await here.get(f"{PODS}?includeObject=None", TABLE)).json
            assert bare["rows"][0]["object"] is None
            one = (await here.get(f"{PODS}/p", TABLE)).json
            assert len(one["rows"]) == 1
            assert (await here.get(f"{PODS}?includeObject=Foo", TABLE)).code == 400

    told(story)


def test_metadata_alone_is_given_of_one_or_of_many_but_not_mixed() -> None:
    async def story() -> None:
        async with world() as here:
            await here.ask("POST", PODS, pod())
            one = (await here.get(f"{PODS}/p", PARTIAL)).json
            assert (one["kind"], one["apiVersion"], set(one)) == (
                "PartialObjectMetadata",
                "meta.k8s.io/v1",
                {"kind", "apiVersion", "metadata"},
            )
            many = (await here.get(PODS, PARTIALS)).json
            assert (many["kind"], many["items"][0]["metadata"]["name"]) == ("PartialObjectMetadataList", "p")
            assert (await here.get(PODS, PARTIAL)).code == 406
            assert (await here.get(f"{PODS}/p", PARTIALS)).code == 406

    told(story)


UNKNOWN: Object = {**pod(), "spec": {"containers": [{"name": "c", "image": "i", "imagee": 1}], "foo": 1}}


def test_unknown_fields_are_refused_warned_of_or_ignored() -> None:
    async def story() -> None:
        async with world() as here:
            strict = await here.ask("POST", f"{PODS}?fieldValidation=Strict", UNKNOWN)
            assert strict.code == 400
            assert strict.message == (
                'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field '
                '"spec.containers[0].imagee", unknown field "spec.foo"'
            )
            warned = await here.ask("POST", f"{PODS}?dryRun=All", UNKNOWN)
            assert warned.code == 201
            assert warned.warnings == [
                '299 - "unknown field \\"spec.containers[0].imagee\\""',
                '299 - "unknown field \\"spec.foo\\""',
            ]
            ignored = await here.ask("POST", f"{PODS}?fieldValidation=Ignore", UNKNOWN)
            assert (ignored.code, ignored.warnings) == (201, [])
            assert "foo" not in ignored.json["spec"]

    told(story)


def test_a_dry_run_keeps_nothing() -> None:
    async def story() -> None:
        async with world() as here:
            assert (await here.ask("POST", f"{PODS}?dryRun=All", pod())).code == 201
            assert (await here.get(f"{PODS}/p")).code == 404

    told(story)


def refused(answer: Any) -> tuple[int, str]:
    return answer.code, answer.message


@pytest.mark.parametrize(
    "method, path, body, code, message",
    [
        pytest.param(
            "PUT",
            f"{PODS}/x",
            pod("y"),
            400,
            "the name of the object (y) does not match the name on the URL (x)",
            id="another name in the body",
        ),
        pytest.param(
            "PUT",
            f"{PODS}/x",
            {"kind": "Pod", "apiVersion": "v1"},
            400,
            "the name of the object (x based on URL) was undeterminable: name must be provided",
            id="no name in the body",
        ),
        pytest.param(
            "POST",
            PODS,
            pod("x", namespace="other"),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace in the body",
        ),
        pytest.param(
            "POST",
            PODS,
            {"kind": "ConfigMap", "apiVersion": "v1"},
            400,
            'ConfigMap in version "v1" cannot be handled as a Pod: '
            "converting (v1.ConfigMap) to (core.Pod): unknown conversion",
            id="another kind",
        ),
        pytest.param(
            "POST",
            PODS,
            {"kind": "Foo", "apiVersion": "v1"},
            400,
            'Foo in version "v1" cannot be handled as a Pod: no kind "Foo" is registered for version "v1"',
            id="a kind that is none",
        ),
        pytest.param(
            "POST",
            PODS,
            b"{",
            400,
            "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error:"
            " unexpected end of JSON input ({)",
            id="half a body",
        ),
        pytest.param(
            "DELETE", f"{PODS}/x", pod(), 400, 'no kind "Pod" is registered for version "v1"', id="no options"
        ),
        pytest.param(
            "PUT", PODS, pod(), 405, "the server does not allow this method on the requested resource", id="PUT of many"
        ),
        pytest.param(
            "POST",
            "/api/v1/pods",
            pod(),
            405,
            "the server does not allow this method on the requested resource",
            id="POST without a namespace",
        ),
        pytest.param(
            "POST",
            f"{PODS}/x",
            pod(),
            405,
            "the server does not allow this method on the requested resource",
            id="POST of a name",
        ),
        pytest.param(
            "GET",
            "/api/v1/foos",
            None,
            404,
            "the server could not find the requested resource",
            id="an unknown resource",
        ),
    ],
)
def test_bad_requests_are_refused_in_words(method: str, path: str, body: Any, code: int, message: str) -> None:
    async def story() -> None:
        async with world() as here:
            assert refused(await here.ask(method, path, body)) == (code, message)

    told(story)


async def _ask_with(here: World, content_type: str, body: bytes, method: str = "POST", path: str = PODS) -> Any:
    return await here.ask(method, path, body, {"Content-Type": content_type})


def test_bodies_may_be_yaml_and_must_be_something_known() -> None:
    async def story() -> None:
        async with world() as here:
            text = b"kind: Pod\napiVersion: v1\nmetadata: {name: yam}\nspec: {containers: [{name: c, image: i}]}\n"
            assert (await _ask_with(here, "application/yaml", text)).code == 201
            aliased = await _ask_with(here, "application/yaml", b"a: &a [x]\nb: *a\n")
            assert refused(aliased)[0] == 400
            assert "aliases" in aliased.message
            deep = await _ask_with(here, "application/yaml", b"[" * 100_000)
            assert refused(deep)[0] == 400
            assert (await _ask_with(here, "text/plain", b"{}")).code == 415
            apply = await _ask_with(
                here, "application/apply-patch+yaml", text, "PATCH", f"{PODS}/yam?fieldManager=me&force=true"
            )
            assert apply.code == 200
            assert (await _ask_with(here, "application/json", b"{}", "PATCH", f"{PODS}/yam")).code == 415
            nested = b'{"a":' * 5000 + b"1" + b"}" * 5000
            assert (await _ask_with(here, "application/merge-patch+json", nested, "PATCH", f"{PODS}/yam")).code == 400

    told(story)


def test_large_answers_are_compressed_for_those_who_take_it() -> None:
    async def story() -> None:
        async with world(limits=Limits(gzip_bytes=1000)) as here:
            for number in range(5):
                await here.ask("POST", PODS, pod(f"p{number}"))
            plain = await here.get(PODS)
            packed = await here.ask("GET", PODS, headers={"Accept-Encoding": "gzip"})
            assert packed.headers["content-encoding"] == "gzip"
            assert len(packed.body) < len(plain.body)
            assert json.loads(gzip.decompress(packed.body)) == plain.json
            assert "content-encoding" not in plain.headers

    told(story)


def test_what_is_only_asked_is_answered_by_whoever_was_plugged_in() -> None:
    seen: list[CreateRequest] = []

    async def bind(asked: CreateRequest) -> Object:
        seen.append(asked)
        if asked.body["target"]["name"] == "full":
            raise conflict("pods/binding", "", asked.target.name, "node is full")
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    async def story() -> None:
        async with world(specials={("", "pods", "binding"): CreateHandler(bind, "v1", "Binding")}) as here:
            body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}, "target": {"name": "n"}}
            done = await here.ask("POST", f"{PODS}/p/binding", body)
            assert (done.code, done.json["status"]) == (201, "Success")
            assert (seen[0].target.name, seen[0].body["target"]["name"], seen[0].caller.name) == ("p", "n", "alice")
            full = await here.ask("POST", f"{PODS}/p/binding", {**body, "target": {"name": "full"}})
            assert full.code == 409
            assert (await here.get(f"{PODS}/p/binding")).code == 405

    told(story)


def test_a_long_list_is_sent_as_it_is_made_to_clients_without_chunks_too() -> None:
    async def story() -> None:
        async with world() as here:
            target = Target(BY_KIND["v1", "ConfigMap"], "default")
            for number in range(stored_object.ITEMS_PER_CHUNK + 1):
                await here.registry.create(target, {"metadata": {"name": f"a{number}"}}, SYSTEM)
            path = "/api/v1/namespaces/default/configmaps"
            async with here.line() as line:
                line.send(f"GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n".encode())
                reply = await line.head()
                assert reply.code == 200
                assert (reply.headers["connection"], "content-length" in reply.headers) == ("close", False)
                assert len(json.loads(await line.reader.read())["items"]) == stored_object.ITEMS_PER_CHUNK + 1

    told(story)
