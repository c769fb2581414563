"""A world whose kind has two versions, and a webhook that converts between them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from server.apiextensions.world import GROUP, World, thing, world
from situate.server.admission.webhooks.client import CallError, WebhookClient
from situate.server.apiextensions.conversion_metrics import ConversionMetrics
from situate.server.apiextensions.conversion_webhook import ConversionWebhooks
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.requests import SYSTEM, ListOptions, Object, Target, WatchOptions
from situate.server.resources import Resource

TEXT = {"type": "string"}
NOT_GIVEN = "not given"
LIVE = WatchOptions(initial_events=False, resource_version_match="NotOlderThan")


class Webhook:
    """Stands for the client of the webhooks: v1 has `host`, v2 `name`, of which `host` is the old name."""

    def __init__(self) -> None:
        self.asked: list[Object] = []
        self.fails = ""
        self.change: Callable[[Object], Any] = lambda _: None
        self.gate: asyncio.Event | None = None
        self.made: list[Any] | None = [NOT_GIVEN]
        """In place of what it converts."""

    async def call(self, client: Mapping[str, Any], body: bytes, timeout_s: int) -> bytes:
        review = json.loads(body)
        asked = review["request"]
        self.asked.append(asked)
        assert (client["url"], timeout_s) == ("https://127.0.0.1:1/convert", 30)
        if self.gate is not None:
            await self.gate.wait()
        if self.fails:
            raise CallError(self.fails)
        made = self.made
        if made == [NOT_GIVEN]:
            made = [self._converted(one, asked["desiredAPIVersion"]) for one in asked["objects"]]
        response = {"uid": asked["uid"], "convertedObjects": made, "result": {"status": "Success"}}
        return json.dumps({**review, "response": response}).encode()

    def _converted(self, obj: Object, wanted: str) -> Object:
        old, new = ("host", "name") if wanted.endswith("v2") else ("name", "host")
        spec = {new if key == old else key: value for key, value in obj.get("spec", {}).items()}
        made = {**obj, "apiVersion": wanted, "spec": spec}
        self.change(made)
        return made


def definition(storage: str = "v1", **version: Any) -> Object:
    fields = {"v1": "host", "v2": "name"}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {field: TEXT, "common": TEXT}}},
                }
            },
            "selectableFields": [{"jsonPath": f".spec.{field}"}],
            **version,
        }
        for name, field in fields.items()
    ]
    webhook = {"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


class Converting:
    """A world with the definition, and its two versions."""

    def __init__(self, here: World, webhook: Webhook, metrics: ConversionMetrics) -> None:
        self.here = here
        self.webhook = webhook
        self.metrics = metrics

    def resource(self, version: str) -> Resource:
        found = self.here.registry.custom.at_path(GROUP, version, "things")
        assert found is not None
        return found

    @property
    def v1(self) -> Resource:
        return self.resource("v1")

    @property
    def v2(self) -> Resource:
        return self.resource("v2")

    async def get(self, version: str, name: str = "a") -> Object:
        resource = self.resource(version)
        return (await self.here.registry.get(Target(resource, "default", name))).object(resource)

    async def list(self, version: str, **options: Any) -> list[Object]:
        resource = self.resource(version)
        found = await self.here.registry.list(Target(resource, "default"), ListOptions(**options))
        return [one.object(resource) for one in found.items]

    async def store(self, storage: str) -> None:
        """Change the storage version."""
        held = self.here.registry.cache.get(DEFINITIONS, "", f"things.{GROUP}")
        assert held is not None
        crd = held.object(DEFINITIONS)
        crd["spec"] = definition(storage)["spec"]
        await self.here.registry.update(Target(DEFINITIONS, "", crd["metadata"]["name"]), crd, SYSTEM)

    def stored(self, name: str = "a") -> Object:
        held = self.here.registry.cache.get(self.v1, "default", name)
        assert held is not None
        found: Object = json.loads(held.value)
        return found


Story = Callable[[Converting], Awaitable[None]]


def run(story: Story, **version: Any) -> None:
    async def whole() -> None:
        webhook, numbers, metrics = Webhook(), iter(range(10_000)), ConversionMetrics()
        webhooks = ConversionWebhooks(cast(WebhookClient, webhook), lambda: f"review-{next(numbers)}", metrics)
        async with world(webhooks.convert) as here:
            await here.define(definition(**version))
            await story(Converting(here, webhook, metrics))

    asyncio.run(whole())


def of(name: str, version: str, value: str = "x") -> Object:
    return thing(name, version=version, spec={"host" if version == "v1" else "name": value, "common": "c"})
