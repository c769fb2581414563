"""A small API server in memory, on a free loopback port, that can be told to misbehave.

    async with FakeServer() as server:                    # FakeServer(tls=context): over TLS
        async with Client(server.access(), qps=-1) as client: ...

Collections are named by their path over all namespaces: "/api/v1/pods", "/apis/storage.k8s.io/v1/storageclasses".
Objects are plain dicts, as on the wire; uid, creationTimestamp and resourceVersion are filled in.

    server.put("/api/v1/pods", obj) -> obj       create or replace, and tell the watches
    server.remove("/api/v1/pods", "web", "default") -> obj
    server.get("/api/v1/pods", "web", "default") -> obj | None;   server.all("/api/v1/pods") -> [obj]
    server.revision                              the last resourceVersion that was given (int)
    server.requests                              everything that was asked: Asked(method, path, query, headers, body)
    server.asked("POST", "/binding") -> [Asked]  those whose path contains that
    server.absent.add("/apis/x/v1")              answers 404 below this path, as if the server had no such group

Watching: list with limit/continue, watch with resourceVersion, allowWatchBookmarks, sendInitialEvents, timeoutSeconds.
    server.bookmark("/api/v1/pods")              a BOOKMARK to all its watches
    server.event("/api/v1/pods", "ERROR", status(410, "Expired"))      any event, also after 200
    server.cut() / server.cut(clean=True)        break all watches / end them as the server does at their timeout
    server.compact()                             older resourceVersions are 410 now (by status), in lists and watches
    await server.watching("/api/v1/pods", 1)     wait until that many watches are open

Faults: the first that fits is used, `times` times, and then forgotten.
    server.fault("POST", "/binding", status=409, reason="Conflict")    the answer, nothing is done
    server.fault("POST", "/binding", status=500, done=True)            it is done, and the answer lies
    server.fault("POST", "/binding", drop="before" | "after")          the connection breaks: before/after the work
    server.fault("GET", "/pods", hang=True)                            no answer until `server.release()` or the end
    server.fault("GET", "/pods", status=429, headers={"Retry-After": "1"}, times=3)
    server.fault("GET", "watch=", cut_after=2)                         the watch breaks after two events
`path` is looked for in the path and query together, so "watch=" fits watches only.

Writes: POST (create), PUT (409 on another resourceVersion), PATCH (merge patches; lists of conditions by type), DELETE
(preconditions; `graceful.add("/api/v1/pods")`: only a deletionTimestamp, until `remove`), POST .../binding.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from situate.kube.access import Access

Object = dict[str, Any]
_PATH = re.compile(
    r"(?P<root>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[^/]+)(/(?P<name>[^/]+)(/(?P<sub>[^/]+))?)?"
)
STAMP = "2026-01-01T00:00:00Z"
_Route = tuple[str, str, str, str]  # collection, namespace, name, subresource


def status(code: int, reason: str, message: str = "", **details: Any) -> Object:
    """A Status object, as in the body of an error or in an ERROR event."""
    text = message or f"{reason}, said the fake server"
    made: Object = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return {**made, "message": text, **({"details": details} if details else {})}


class RefusedError(Exception):
    """What is answered instead."""

    def __init__(self, code: int, reason: str, message: str = "") -> None:
        super().__init__(message)
        self.code, self.body = code, status(code, reason, message)


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Fault:
    method: str
    path: str
    times: int = 1
    status: int = 0
    reason: str = ""
    message: str = ""
    causes: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = False
    drop: Literal["", "before", "after"] = ""
    hang: bool = False
    cut_after: int | None = None


class FakeServer:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Asked] = []
        self.absent: set[str] = set()
        self.graceful: set[str] = set()
        self.revision = 100
        self.url = ""
        self._tls = tls
        self._floor = 0
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        self._history: dict[str, list[tuple[int, str, Object]]] = {}
        self._watches: list[tuple[str, asyncio.Queue[tuple[str, Object] | Literal["cut"] | None]]] = []
        self._faults: list[Fault] = []
        self._released = asyncio.Event()
        self._changed = asyncio.Event()
        self._uids = itertools.count(1)
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)

    async def __aenter__(self) -> FakeServer:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()
        self.cut(clean=True)
        await self._runner.cleanup()

    def access(self, **fields: Any) -> Access:
        return Access(self.url, where="the fake server", **fields)

    # -- the store -----------------------------------------------------------------------------------------------------

    def put(self, collection: str, obj: Object) -> Object:
        made = copy.deepcopy(obj)
        meta = made.setdefault("metadata", {})
        key = (meta.get("namespace", ""), meta["name"])
        before = self._objects.setdefault(collection, {}).get(key)
        old = before["metadata"] if before else {"uid": f"uid-{next(self._uids)}", "creationTimestamp": STAMP}
        for name in ("uid", "creationTimestamp"):
            meta.setdefault(name, old[name])
        self._objects[collection][key] = made
        return self._told(collection, "MODIFIED" if before else "ADDED", made)

    def remove(self, collection: str, name: str, namespace: str = "") -> Object:
        return self._told(collection, "DELETED", self._objects[collection].pop((namespace, name)))

    def get(self, collection: str, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(collection, {}).get((namespace, name))

    def all(self, collection: str) -> list[Object]:
        return list(self._objects.get(collection, {}).values())

    def asked(self, method: str, path: str = "") -> list[Asked]:
        return [one for one in self.requests if one.method == method and path in one.path]

    def _told(self, collection: str, kind: str, obj: Object) -> Object:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        frozen = copy.deepcopy(obj)
        self._history.setdefault(collection, []).append((self.revision, kind, frozen))
        self.event(collection, kind, frozen)
        return frozen

    # -- watches and faults --------------------------------------------------------------------------------------------

    def event(self, collection: str, kind: str, obj: Object) -> None:
        for watched, queue in self._watches:
            if watched == collection:
                queue.put_nowait((kind, obj))

    def bookmark(self, collection: str) -> None:
        self.event(collection, "BOOKMARK", {"metadata": {"resourceVersion": str(self.revision)}})

    def cut(self, *, clean: bool = False) -> None:
        for _, queue in self._watches:
            queue.put_nowait(None if clean else "cut")

    def compact(self) -> None:
        self._floor = self.revision

    async def watching(self, collection: str, count: int = 1) -> None:
        while sum(watched == collection for watched, _ in self._watches) < count:
            self._changed.clear()
            await self._changed.wait()

    def fault(self, method: str, path: str, **fields: Any) -> Fault:
        self._faults.append(Fault(method, path, **fields))
        return self._faults[-1]

    def release(self) -> None:
        self._released.set()

    def _due(self, request: web.Request) -> Fault | None:
        for one in self._faults:
            if one.times > 0 and one.method == request.method and one.path in request.path_qs:
                one.times -= 1
                return one
        return None

    # -- HTTP ----------------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw) if raw else None
        query = dict(request.query)
        self.requests.append(Asked(request.method, request.path, query, dict(request.headers), body))
        fault = self._due(request)
        if fault is not None and fault.hang:
            await self._released.wait()
        if fault is not None and fault.drop == "before":
            return _drop(request)
        if fault is not None and fault.status and not fault.done:
            return _lie(fault)
        try:
            if query.get("watch") in ("true", "1"):
                return await self._watch(request, query, fault)
            answer = web.json_response(self._do(request.method, request.path, query, body))
        except RefusedError as refused:
            answer = web.json_response(refused.body, status=refused.code)
        if fault is not None and fault.drop == "after":
            return _drop(request)
        return _lie(fault) if fault is not None and fault.status else answer

    def _route(self, path: str) -> _Route:
        found = _PATH.fullmatch(path)
        if found is None or any(path == one or path.startswith(f"{one}/") for one in self.absent):
            raise RefusedError(404, "NotFound", "the server could not find the requested resource")
        collection = f"{found['root']}/{found['plural']}"
        return collection, found["namespace"] or "", found["name"] or "", found["sub"] or ""

    def _do(self, method: str, path: str, query: dict[str, str], body: Any) -> Object:
        collection, namespace, name, sub = self._route(path)
        match method, sub:
            case "GET", _ if not name:
                return self._list(collection, namespace, query)
            case "POST", "binding":
                return self._bind(self._one(collection, name, namespace), body)
            case "POST", "":
                return self._create(collection, namespace, body)
            case "GET", _:
                return self._one(collection, name, namespace)
            case "PUT", _:
                _same_version(self._one(collection, name, namespace), body)
                return self.put(collection, body)
            case "PATCH", _:
                old = self._one(collection, name, namespace)
                _same_version(old, body)
                return self.put(collection, _merged(old, body))
            case "DELETE", _:
                return self._delete(collection, self._one(collection, name, namespace), body or {})
        raise RefusedError(405, "MethodNotAllowed")

    def _one(self, collection: str, name: str, namespace: str) -> Object:
        found = self.get(collection, name, namespace)
        if found is None:
            raise RefusedError(404, "NotFound", f'{collection.rpartition("/")[2]} "{name}" not found')
        return copy.deepcopy(found)

    def _create(self, collection: str, namespace: str, body: Object) -> Object:
        meta = body["metadata"]
        if namespace:
            meta["namespace"] = namespace
        if not meta.get("name"):
            meta["name"] = f"{meta.get('generateName', '')}{self.revision + 1:05d}"
        if self.get(collection, meta["name"], namespace) is not None:
            raise RefusedError(409, "AlreadyExists", f'"{meta["name"]}" already exists')
        return self.put(collection, body)

    def _bind(self, pod: Object, body: Object) -> Object:
        meta, wanted = pod["metadata"], body.get("metadata", {})
        if wanted.get("uid", meta["uid"]) != meta["uid"]:
            raise RefusedError(409, "Conflict", "Precondition failed: UID in precondition")
        if wanted.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
            raise RefusedError(409, "Conflict", "Precondition failed: ResourceVersion in precondition")
        if pod.get("spec", {}).get("nodeName"):
            raise RefusedError(
                409, "Conflict", f'pod {meta["name"]} is already assigned to node "{pod["spec"]["nodeName"]}"'
            )
        if meta.get("deletionTimestamp"):
            raise RefusedError(409, "Conflict", f"pod {meta['name']} is being deleted, cannot be assigned to a host")
        pod.setdefault("spec", {})["nodeName"] = body["target"]["name"]
        self.put("/api/v1/pods", pod)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}

    def _delete(self, collection: str, obj: Object, body: Object) -> Object:
        meta = obj["metadata"]
        for name, wanted in (body.get("preconditions") or {}).items():
            if wanted != meta[name]:
                raise RefusedError(
                    409, "Conflict", f"the {name} in the precondition ({wanted}) does not match ({meta[name]})"
                )
        if collection in self.graceful:
            meta.setdefault("deletionTimestamp", STAMP)
            return self.put(collection, obj)
        return self.remove(collection, meta["name"], meta.get("namespace", ""))

    def _list(self, collection: str, namespace: str, query: dict[str, str]) -> Object:
        asked = int(query.get("resourceVersion") or 0)
        start, _, at = query.get("continue", "0@").partition("@")
        if (query.get("resourceVersionMatch") == "Exact" and asked < self._floor) or (at and int(at) < self._floor):
            raise RefusedError(410, "Expired", "The provided continue parameter is too old")
        found = [
            one for (where, _), one in sorted(self._objects.get(collection, {}).items()) if namespace in ("", where)
        ]
        first, limit = int(start), int(query.get("limit") or 0) or len(found)
        meta: Object = {"resourceVersion": at or str(self.revision)}
        if len(found) > first + limit:
            meta["continue"] = f"{first + limit}@{meta['resourceVersion']}"
            meta["remainingItemCount"] = len(found) - first - limit
        return {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": found[first : first + limit]}

    async def _watch(self, request: web.Request, query: dict[str, str], fault: Fault | None) -> web.StreamResponse:
        collection, namespace, _, _ = self._route(request.path)
        asked = int(query.get("resourceVersion") or 0)
        initial = query.get("sendInitialEvents") == "true" or asked == 0
        if not initial and asked < self._floor:
            raise RefusedError(410, "Expired", f"too old resource version: {asked} ({self._floor})")
        with self._watched(collection) as queue:
            now = [("ADDED", one) for one in copy.deepcopy(self.all(collection))] if initial else []
            if query.get("sendInitialEvents") == "true":
                ends = {"resourceVersion": str(self.revision), "annotations": {"k8s.io/initial-events-end": "true"}}
                now.append(("BOOKMARK", {"metadata": ends}))
            missed = (
                [] if initial else [(kind, one) for at, kind, one in self._history.get(collection, []) if at > asked]
            )
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            left = -1 if fault is None or fault.cut_after is None else fault.cut_after
            seconds = float(query.get("timeoutSeconds") or 0) or None
            try:
                async with asyncio.timeout(seconds):
                    await self._send(request, response, [*now, *missed], queue, namespace, left)
            except TimeoutError:
                pass
            return response

    async def _send(
        self, request: web.Request, response: web.StreamResponse, first: list[tuple[str, Object]],
        queue: asyncio.Queue[Any], namespace: str, left: int,
    ) -> None:  # fmt: skip
        while left != 0:
            event = first.pop(0) if first else await queue.get()
            if event is None:
                return
            if event == "cut":
                break
            kind, obj = event
            if namespace and obj.get("metadata", {}).get("namespace", namespace) != namespace:
                continue
            await response.write(json.dumps({"type": kind, "object": obj}).encode() + b"\n")
            left -= 1
        _drop(request)

    @contextmanager
    def _watched(self, collection: str) -> Iterator[asyncio.Queue[Any]]:
        entry: tuple[str, asyncio.Queue[Any]] = (collection, asyncio.Queue())
        self._watches.append(entry)
        self._changed.set()
        try:
            yield entry[1]
        finally:
            self._watches = [one for one in self._watches if one is not entry]


def _drop(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _lie(fault: Fault) -> web.Response:
    causes = {"causes": [{"reason": reason} for reason in fault.causes]} if fault.causes else {}
    body = status(fault.status, fault.reason or "InternalError", fault.message, **causes)
    return web.json_response(body, status=fault.status, headers=fault.headers)


def _same_version(old: Object, new: Object) -> None:
    meta = new.get("metadata") or {}
    for name in ("resourceVersion", "uid"):
        if meta.get(name, old["metadata"][name]) != old["metadata"][name]:
            raise RefusedError(
                409, "Conflict", "the object has been modified; please apply your changes to the latest version"
            )


def _merged(old: Any, new: Any) -> Any:
    """A merge patch; as a strategic one would, it merges conditions by their type, users of a claim by their uid, and
    finalizers."""
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    out = dict(old)
    for key, value in new.items():
        if value is None:
            out.pop(key, None)
        elif key == "finalizers":
            out[key] = list(dict.fromkeys([*out.get(key, []), *value]))
        elif key == "$deleteFromPrimitiveList/finalizers":
            out["finalizers"] = [one for one in out.get("finalizers", []) if one not in value]
        elif key == "reservedFor":
            uids = [one["uid"] for one in value]
            out[key] = [one for one in out.get(key, []) if one["uid"] not in uids]
            out[key] += [one for one in value if one.get("$patch") != "delete"]
        elif key == "conditions" and isinstance(out.get(key), list):
            types = [one.get("type") for one in value]
            by_type = {one.get("type"): one for one in out[key]}
            out[key] = [one for one in out[key] if one.get("type") not in types]
            out[key] += [_merged(by_type.get(one.get("type"), {}), one) for one in value]
        else:
            out[key] = _merged(out.get(key, {}), value)
    return out
