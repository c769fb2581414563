"""A plain, blocking client of the API server for tests: JSON in, JSON out, one connection a thread.

It is not the client under test, and shares no code with it.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]

BULK_THREADS = 16
TIMEOUT_S = 60.0

# Kinds without a namespace, among those that tests create.
CLUSTER_WIDE = frozenset(
    "APIService ClusterRole ClusterRoleBinding CSIDriver CSINode CustomResourceDefinition DeviceClass "
    "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding Namespace Node PersistentVolume PriorityClass "
    "ResourceSlice RuntimeClass StorageClass ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
    "VolumeAttachment".split()
)
IRREGULAR = {"CSIStorageCapacity": "csistoragecapacities"}


class RefusedError(Exception):
    """The server answered, and the answer was no."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


def plural(kind: str) -> str:
    if kind.endswith("Policy"):
        return f"{kind.lower()[:-1]}ies"
    return IRREGULAR.get(kind) or kind.lower() + ("es" if kind.endswith("s") else "s")


def path_of(item: Json, namespace: str) -> str:
    """Where objects of this one's kind are created."""
    version, kind = item["apiVersion"], item["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = "" if kind in CLUSTER_WIDE else f"/namespaces/{item['metadata'].get('namespace', namespace)}"
    return f"{root}{inside}/{plural(kind)}"


class Api:
    """Requests to one server by one identity (a bearer token)."""

    def __init__(self, url: str, token: str, tls: ssl.SSLContext) -> None:
        self.url = url
        self.token = token
        self._tls = tls
        self._mine = threading.local()
        self._all: list[http.client.HTTPSConnection] = []
        self._pool: ThreadPoolExecutor | None = None

    def request(self, method: str, path: str, body: Json | None = None, content_type: str = "application/json") -> Json:
        data = None if body is None else json.dumps(body).encode()
        answer = self._send(method, path, data, content_type)
        return json.loads(answer) if answer[:1] in (b"{", b"[") else {"text": answer.decode("utf-8", "replace")}

    def get(self, path: str) -> Json:
        return self.request("GET", path)

    def items(self, path: str) -> list[Json]:
        found: list[Json] = self.request("GET", path)["items"]
        return found

    def watch(self, path: str, since: str, seconds: int = 1) -> list[Json]:
        """The events after a version, as far as they come in so many seconds."""
        mark = "&" if "?" in path else "?"
        asked = f"{path}{mark}watch=true&resourceVersion={since}&timeoutSeconds={seconds}"
        return [json.loads(line) for line in self._send("GET", asked, None, "application/json").splitlines()]

    def post(self, path: str, body: Json) -> Json:
        return self.request("POST", path, body)

    def put(self, path: str, body: Json) -> Json:
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Json) -> Json:
        """A JSON merge patch."""
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> Json:
        """At once: grace period 0, nothing orphaned."""
        return self.request("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    def create(self, items: Iterable[Json], namespace: str) -> list[Json]:
        """Create objects of any kinds, many at a time; the server's versions, in the same order."""
        return self.many(lambda item: self.post(path_of(item, namespace), item), list(items))

    def many(self, do: Callable[[Json], Json], items: Sequence[Json]) -> list[Json]:
        if len(items) < 2:
            return [do(item) for item in items]
        self._pool = self._pool or ThreadPoolExecutor(BULK_THREADS)
        return list(self._pool.map(do, items))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._mine = threading.local()

    def ask(
        self, method: str, path: str, body: bytes | None, content_type: str = "application/json", user: str = ""
    ) -> tuple[int, Json]:
        """The code and the object of an answer, whatever it is. `user`: to impersonate."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type, "Accept": "application/json"}
        as_user = {"Impersonate-User": user} if user else {}
        status, answer = exchange(self._connection(), method, path, body, headers | as_user)
        found = json.loads(answer) if answer[:1] == b"{" else {"message": answer.decode("utf-8", "replace")}
        return status, {"code": status, **found} if status >= http.client.BAD_REQUEST else found

    def _send(self, method: str, path: str, data: bytes | None, content_type: str) -> bytes:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type, "Accept": "application/json"}
        connection = self._connection()
        kept = connection.sock is not None
        try:
            status, answer = exchange(connection, method, path, data, headers)
        except (OSError, http.client.HTTPException):
            # A kept connection may have died with the server behind it; a new one is worth one more try.
            if not kept:
                raise
            status, answer = exchange(connection, method, path, data, headers)
        if status >= http.client.BAD_REQUEST:
            raise refusal(status, answer)
        return answer

    def _connection(self) -> http.client.HTTPSConnection:
        """This thread's connection, made or yet to be made."""
        kept: http.client.HTTPSConnection | None = getattr(self._mine, "connection", None)
        if kept is not None:
            return kept
        made = http.client.HTTPSConnection(urlsplit(self.url).netloc, timeout=TIMEOUT_S, context=self._tls)
        self._mine.connection = made
        self._all.append(made)
        return made


def exchange(
    connection: http.client.HTTPSConnection, method: str, path: str, data: bytes | None, headers: dict[str, str]
) -> tuple[int, bytes]:
    """One request and its whole answer; a connection that fails is closed, to be opened anew by the next."""
    try:
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        raise


def refusal(status: int, answer: bytes) -> RefusedError:
    try:
        said = json.loads(answer)
        return RefusedError(status, said.get("reason", ""), said.get("message", ""))
    except (ValueError, AttributeError):
        return RefusedError(status, "", answer[:200].decode("utf-8", "replace"))
