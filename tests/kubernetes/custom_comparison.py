"""Compares custom resources with kube-apiserver: random schemas and objects, and what both make of them.

`make fuzz-crd COUNT=5000 SEED=1` runs it. A difference is printed with the schema and the object that show it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from kubernetes.api import Api
from kubernetes.cluster import Cluster
from kubernetes.custom_schemas import Schemas
from server.apiextensions.world import GROUP, World, definition, thing, world
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.errors import StatusError
from situate.server.http.responses import encode
from situate.server.requests import SYSTEM, Target

Json = dict[str, Any]
OBJECTS = 4
"""Objects of each schema."""
TOGETHER = 8
"""Definitions that are compared side by side."""
SERVED_S = 20.0
"""How long to wait until kube-apiserver serves a definition."""
DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHOWN = 10
"""Differences that are printed."""


class Case(NamedTuple):
    number: int
    kind: str
    schema: Json
    objects: list[Json]


class Answer(NamedTuple):
    """What a server says: a code, and sorted causes, or the object's fields."""

    code: int
    said: Any


class Difference(NamedTuple):
    case: Case
    sent: Any
    theirs: Answer
    ours: Answer

    def __str__(self) -> str:
        lines = [
            f"case {self.case.number}",
            f"  schema {json.dumps(self.case.schema)}",
            f"  sent   {json.dumps(self.sent)}",
        ]
        return "\n".join([*lines, f"  theirs {self.theirs}", f"  ours   {self.ours}"])


def cases(seed: int, count: int) -> Iterator[Case]:
    for number in range(count):
        schemas = Schemas(seed * 1_000_003 + number)
        schema = schemas.whole()
        spec = schema["properties"]["spec"]
        yield Case(number, f"Fuzz{number}", schema, [{"spec": schemas.value(spec)} for _ in range(OBJECTS)])


def compare(cluster: Cluster, seed: int, count: int) -> list[Difference]:
    return asyncio.run(_compare(cluster.api, list(cases(seed, count))))


async def _compare(api: Api, these: Sequence[Case]) -> list[Difference]:
    loop, found = asyncio.get_running_loop(), list[Difference]()
    with ThreadPoolExecutor(TOGETHER) as pool:
        for start in range(0, len(these), TOGETHER):
            some = these[start : start + TOGETHER]
            theirs = [loop.run_in_executor(pool, _theirs, api, case) for case in some]
            async with world() as here:
                for case, waiting in zip(some, theirs, strict=True):
                    ours = await _ours(here, case)
                    sent: list[Any] = [case.schema, *case.objects]
                    found += [
                        Difference(case, one, left, right)
                        for one, left, right in zip(sent, await waiting, ours, strict=False)
                        if left != right
                    ]
    return found


def _object(case: Case, number: int, body: Json) -> Json:
    return thing(f"o{number}", kind=case.kind, **body)


# -- here --------------------------------------------------------------------------------------------------------------


async def _ours(here: World, case: Case) -> list[Answer]:
    crd = definition(case.schema, kind=case.kind)
    try:
        resource = await here.define(crd)
    except StatusError as error:
        return [_refusal(error.status())]
    found = [Answer(201, None)]
    for number, body in enumerate(case.objects):
        try:
            stored = await here.create(resource, _object(case, number, body))
        except StatusError as error:
            found.append(_refusal(error.status()))
        else:
            found.append(Answer(201, _fields(json.loads(stored.to_json(resource)))))
    await here.registry.delete(Target(DEFINITIONS, "", crd["metadata"]["name"]), SYSTEM)
    return found


# -- there -------------------------------------------------------------------------------------------------------------


def _theirs(api: Api, case: Case) -> list[Answer]:
    crd = definition(case.schema, kind=case.kind)
    name, plural = crd["metadata"]["name"], crd["spec"]["names"]["plural"]
    code, answer = api.ask("POST", DEFINITIONS_PATH, encode(crd))
    if code != 201:
        return [_refusal(answer)]
    path, deadline = f"/apis/{GROUP}/v1/namespaces/default/{plural}", time.monotonic() + SERVED_S
    while api.ask("GET", path, None)[0] != 200:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} is not served")
        time.sleep(0.05)
    found = [Answer(201, None)]
    for number, body in enumerate(case.objects):
        code, answer = api.ask("POST", path, encode(_object(case, number, body)))
        found.append(Answer(201, _fields(answer)) if code == 201 else _refusal(answer))
    api.ask("DELETE", f"{DEFINITIONS_PATH}/{name}", None)
    return found


def _fields(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name not in ("metadata", "apiVersion", "kind")}


def _refusal(status: Json) -> Answer:
    causes = status.get("details", {}).get("causes") or ()
    said = sorted(f"{one.get('reason')} {one.get('field', '')}: {one['message']}" for one in causes)
    return Answer(status["code"], said or status["message"])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        found = compare(cluster, asked.seed, asked.count)
    for one in found[:SHOWN]:
        print(one)
    print(f"{asked.count} schemas with {OBJECTS} objects each, seed {asked.seed}: {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
