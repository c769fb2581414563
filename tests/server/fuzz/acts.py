"""What is done with one object: it is written, changed in every way there is, listed, watched and deleted."""

import asyncio
import copy
import random
from typing import Any
from urllib.parse import quote

from server.fuzz.client import JSON, Client, Request
from server.fuzz.objects import Change, Generator, Subject, apply, encode
from server.fuzz.values import INTEGERS, LARGE, TEXTS, TIMES

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
NUMBERS = (*INTEGERS, *LARGE, "x", "1_0", "\u0663", "9" * 5_000, "-0", "+5", "1e3", "")
OPTIONS: dict[str, tuple[Any, ...]] = {
    "limit": NUMBERS,
    "timeoutSeconds": NUMBERS,
    "continue": ("x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTIyMzM3MjAzNjg1NDc3NTgwNywic3RhcnQiOiJhIn0", "\0"),
    "resourceVersion": ("", "0", "1", "-1", "x", "9" * 30, "9" * 5_000, "\u0663", str(2**63)),
    "resourceVersionMatch": ("", "Exact", "NotOlderThan", "x"),
    "labelSelector": ("app=a", "app in (a,b)", "!app", "a>1", f"a>{'9' * 30}", "=", "a=" + "x" * 70, ",", "\0", "("),
    "fieldSelector": ("metadata.name=a", "spec.nodeName=", "status.phase!=Running", "a=b", "=", "\\", "metadata.name"),
    "fieldManager": ("m", "x" * 129, "\0", "\U0001f600"),
    "fieldValidation": ("Strict", "Ignore", "Warn", "x"),
    "force": ("true", "x", ""),
    "pretty": ("true", "0"),
    "dryRun": ("All", "x", ""),
    "sendInitialEvents": ("true", "false", "x"),
    "allowWatchBookmarks": ("true", "x"),
}
LOG_OPTIONS: dict[str, tuple[Any, ...]] = {
    "sinceSeconds": NUMBERS,
    "sinceTime": TIMES,
    "tailLines": NUMBERS,
    "limitBytes": NUMBERS,
    "container": ("c", "x", "\0"),
    "timestamps": ("true", "x"),
    "previous": ("true",),
    "stream": ("All", "Stdout", "x"),
}


class Acts:
    """The requests of one turn."""

    def __init__(self, client: Client, generator: Generator, subject: Subject) -> None:
        self._client = client
        self._generator = generator
        self._subject = subject
        self._dice: random.Random = generator.dice(subject.number, "acts")

    async def ask(self, method: str, path: str, body: Any = None, content_type: str = JSON, accept: str = JSON) -> Any:
        data = None if body is None else encode(body)
        request = Request(method, path, data, content_type, accept)
        code, said = await self._client.ask(request, self._subject.number)
        return said if 200 <= code < 300 and isinstance(said, dict) else None

    async def turn(self) -> None:
        dice, subject = self._dice, self._subject
        made = await self.create()
        if "get" not in subject.resource.verbs:
            return
        if made is not None:
            self._client.tally.accepted[subject.resource.kind] += 1
            for act in dice.sample(
                (self.replace, self.patch, self.status, self.subresources, self.read), dice.randint(1, 4)
            ):
                await act(made)
        elif dice.random() < 0.3:
            await self.read({})
        if made is not None and dice.random() < 0.7:
            await self.delete()

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create(self) -> Any:
        dice, subject = self._dice, self._subject
        body = subject.body()
        if dice.random() < 0.1:
            found = await self.ask("PATCH", f"{subject.address}?fieldManager=fuzz&force=true", body, APPLY)
        else:
            found = await self.ask("POST", subject.collection + self._query(0.1), body)
        if found is None and dice.random() < 0.5:
            # Refused: without its oddities it is there for what follows.
            found = await self.ask("POST", subject.collection, subject.plain)
        return found

    def _query(self, chance: float, *names: str) -> str:
        dice = self._dice
        if dice.random() > chance:
            return ""
        chosen = dice.sample(names or tuple(OPTIONS), min(dice.randint(1, 3), len(names or OPTIONS)))
        return "?" + "&".join(f"{name}={quoted(dice.choice(OPTIONS[name]))}" for name in chosen)

    def _change(self, top: str = "") -> Change:
        return self._generator.change(self._subject.resource, self._subject.plain, self._dice, top)

    def _changed(self, found: Any, top: str = "") -> Any:
        body = copy.deepcopy(found)
        try:
            apply(body, self._subject.root, self._change(top))
        except (TypeError, AttributeError, KeyError, IndexError):
            return {**body, "metadata": {**body.get("metadata", {}), "annotations": {"x": "y"}}}
        return body

    async def replace(self, made: Any) -> None:
        await self.ask("PUT", self._subject.address + self._query(0.1), self._changed(made))

    async def patch(self, made: Any, at: str = "", top: str = "") -> None:
        path = f"{self._subject.address}{at}"
        kind = self._dice.choice((MERGE, STRATEGIC, JSON_PATCH, APPLY))
        change = self._change(top)
        if kind == JSON_PATCH:
            steps = "/".join({"[]": "0", "{}": "k"}.get(step, step.replace("~", "~0")) for step in change.path)
            verb = self._dice.choice(("add", "replace", "test", "remove", "move", "copy"))
            body: Any = [{"op": verb, "path": f"/{steps}", "value": change.value, "from": "/metadata/labels"}]
        else:
            body = {}
            apply(body, self._subject.root, change)
            if kind == APPLY:
                head = {key: made.get(key) for key in ("apiVersion", "kind")}
                metadata = body.get("metadata") if isinstance(body.get("metadata"), dict) else {}
                body = {**body, **head, "metadata": {**(metadata or {}), "name": self._subject.name}}
        query = "?fieldManager=fuzz" + self._dice.choice(("", "&force=true")) if kind == APPLY else self._query(0.1)
        await self.ask("PATCH", path + query, body, kind)

    async def status(self, made: Any) -> None:
        if "status" not in self._subject.resource.subresources:
            return
        if self._dice.random() < 0.5:
            await self.patch(made, "/status", "status")
        else:
            found = await self.ask("GET", self._subject.address) or made
            await self.ask("PUT", f"{self._subject.address}/status", self._changed(found, "status"))

    async def subresources(self, made: Any) -> None:
        dice, subject = self._dice, self._subject
        name, metadata = subject.name, {"name": subject.name, "namespace": subject.namespace}
        number = dice.choice((*INTEGERS, *LARGE, "5", None, 1.5))
        for one in subject.resource.subresources:
            path = f"{subject.address}/{one}"
            if one == "scale":
                body = {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": metadata,
                    "spec": {"replicas": number},
                }
                await self.ask("PUT", path, body)
                await self.ask("PATCH", path, {"spec": {"replicas": dice.choice((0, 3, number))}}, MERGE)
                await self.ask("GET", path)
            elif one == "binding":
                target = {"kind": "Node", "name": dice.choice(("node-01", "node-02", "nowhere", *TEXTS))}
                notes = {"situate.dev/term": dice.choice(("x", "9" * 5_000, "1", "-1"))} if dice.random() < 0.3 else {}
                await self.ask("POST", path, {"metadata": {**metadata, "annotations": notes}, "target": target})
            elif one == "eviction":
                options = {"gracePeriodSeconds": number}
                await self.ask(
                    "POST",
                    path,
                    {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options},
                )
            elif one == "log":
                chosen = dice.sample(tuple(LOG_OPTIONS), 2)
                query = "&".join(f"{key}={quoted(dice.choice(LOG_OPTIONS[key]))}" for key in chosen)
                await self.ask("GET", f"{path}?{query}")
            elif one == "token":
                spec = {"expirationSeconds": number, "audiences": dice.choice(([], ["a"], ["\0"], None))}
                await self.ask(
                    "POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
                )
            elif one == "finalize" and name.startswith("fz"):
                finalizers = dice.choice(([], ["kubernetes"], ["x/y"], None, [""]))
                await self.ask("PUT", path, {**made, "spec": {"finalizers": finalizers}})

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def read(self, _: Any) -> None:
        dice, subject = self._dice, self._subject
        await self.ask("GET", subject.address, accept=dice.choice((JSON, TABLE)))
        lists = ("limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector")
        await self.ask("GET", subject.collection + self._query(1, *lists), accept=dice.choice((JSON, TABLE)))
        if dice.random() < 0.1:
            query = self._query(1, *lists, "sendInitialEvents", "allowWatchBookmarks").replace("?", "&")
            await self.ask(
                "GET", f"{subject.collection}?watch=1&timeoutSeconds=1{query}", accept=dice.choice((JSON, TABLE))
            )

    # ── deleting ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def delete(self) -> None:
        dice, subject = self._dice, self._subject
        if dice.random() < 0.5:
            grace, policy = dice.choice(NUMBERS), dice.choice(("Background", "Foreground", "Orphan", "x"))
            await self.ask("DELETE", f"{subject.address}?gracePeriodSeconds={quoted(grace)}&propagationPolicy={policy}")
        else:
            options = {
                "gracePeriodSeconds": dice.choice((*INTEGERS, *LARGE)),
                "orphanDependents": dice.choice((True, None)),
            }
            options["preconditions"] = dice.choice((None, {"uid": "x"}, {"resourceVersion": "9" * 30}))
            await self.ask("DELETE", subject.address, {"kind": "DeleteOptions", "apiVersion": "v1", **options})
        if not subject.resource.namespaced:
            await self.gone()

    async def gone(self) -> None:
        """Objects outside of namespaces do not go with one."""
        path = self._subject.address
        for _ in range(3):
            code, found = await self._client.ask(
                Request("DELETE", f"{path}?gracePeriodSeconds=0"), self._subject.number
            )
            if code == 404 or not isinstance(found, dict):
                return
            await self.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            await asyncio.sleep(0.02)


def quoted(value: Any) -> str:
    return quote(str(value).encode("utf-8", "surrogatepass"), safe="")
