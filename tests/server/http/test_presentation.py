"""Responses as clients ask for them: indented, as YAML, within their time."""

import json

import pytest
import yaml

from server.http.world import told, world
from situate.server.http import presentation

DEFAULT = "/api/v1/namespaces/default"


@pytest.mark.parametrize(
    "query, agent, pretty",
    [
        ("", "kubectl/v1.36", False),
        ("?pretty=true", "kubectl/v1.36", True),
        ("?pretty=1", "", True),
        ("?pretty=nonsense", "curl/8", False),
        ("", "curl/8", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("?pretty=false", "curl/8", False),
    ],
)
def test_json_is_indented_for_whoever_asks_and_for_people(query: str, agent: str, pretty: bool) -> None:
    async def story() -> None:
        async with world() as here:
            for path in (DEFAULT, "/api/v1/namespaces/nope", "/api/v1", "/version"):
                reply = await here.ask("GET", path + query, headers={"User-Agent": agent})
                assert reply.body.startswith(b'{\n  "') is pretty
                assert reply.headers["content-type"] == "application/json"

    told(story)


def test_yaml_says_what_json_says() -> None:
    async def story() -> None:
        async with world() as here:
            for path in (DEFAULT, "/api/v1/namespaces", "/api/v1/namespaces/nope", "/apis"):
                plain, reply = await here.get(path), await here.get(path, "application/yaml")
                assert (reply.code, reply.headers["content-type"]) == (plain.code, "application/yaml")
                assert json.loads(json.dumps(yaml.safe_load(reply.body))) == plain.json
            first = await here.get(DEFAULT, "application/json, application/yaml")
            assert first.headers["content-type"] == "application/json"

    told(story)


def test_yaml_is_refused_for_a_watch_and_for_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with world() as here:
            watch = await here.get("/api/v1/namespaces?watch=true&timeoutSeconds=1", "application/yaml")
            assert watch.code == 406
            monkeypatch.setattr(presentation, "MAX_YAML_BYTES", 100)
            long = await here.get("/api/v1/namespaces", "application/yaml")
            assert (long.code, long.headers["content-type"]) == (406, "application/json")

    told(story)


def test_a_timeout_that_is_none_is_refused() -> None:
    async def story() -> None:
        async with world() as here:
            reply = await here.get(f"{DEFAULT}?timeout=nope")
            text = 'invalid timeout specified in the request URL - time: invalid duration "nope"'
            assert (reply.code, reply.json["message"]) == (400, text)
            assert (await here.get(f"{DEFAULT}?timeout=32s")).code == 200
            assert (await here.get("/api/v1/namespaces?watch=true&timeoutSeconds=1&timeout=nope")).code == 200

    told(story)
