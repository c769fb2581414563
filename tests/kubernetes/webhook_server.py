"""A webhook for tests: it answers as its path says, and remembers what it was asked."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kubernetes.certificates import make_key, openssl

Json = dict[str, Any]
Answer = tuple[int, bytes]
SLOW_S = 3.0
API = "admission.k8s.io/v1"


def review(request: Json, api_version: str = "", **response: Any) -> Answer:
    made = {"uid": request["uid"], "allowed": True, **response}
    version = api_version or request["apiVersion"]
    return 200, json.dumps({"apiVersion": version, "kind": "AdmissionReview", "response": made}).encode()


def patch(*operations: Json) -> Json:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def refuse(**status: Any) -> Json:
    return {"allowed": False, "status": status}


def add(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


def _slow(request: Json) -> Answer:
    time.sleep(SLOW_S)
    return review(request)


def _once(request: Json) -> Answer:
    data = request["object"].get("data") or {}
    return review(request) if "second" in data else review(request, **patch(add("/data/second", "yes")))


def _count(request: Json) -> Answer:
    times = int((request["object"].get("data") or {}).get("times", "0"))
    return review(request, **patch(add("/data/times", str(times + 1))))


ANSWERS: dict[str, Callable[[Json], Answer]] = {
    "allow": review,
    "deny": lambda one: review(one, **refuse(message="no reason at all")),
    "deny-403": lambda one: review(one, **refuse(message="not you", code=403, reason="Forbidden")),
    "deny-plain": lambda one: review(one, allowed=False),
    "deny-reason": lambda one: review(one, **refuse(reason="Conflict", code=409)),
    "deny-200": lambda one: review(one, **refuse(message="odd", code=200, status="Success")),
    "deny-details": lambda one: review(
        one,
        **refuse(
            message="look",
            code=422,
            reason="Invalid",
            details={
                "kind": "x",
                "name": "y",
                "causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "f"}],
            },
        ),
    ),
    "warn": lambda one: review(one, warnings=["take care", "take care", "really"], auditAnnotations={"k": "v"}),
    "http-500": lambda _: (500, b"it broke"),
    "http-404": lambda _: (404, b"not here"),
    "http-400": lambda _: (400, b"bad"),
    "garbage": lambda _: (200, b"not json"),
    "empty": lambda _: (200, b"{}"),
    "wrong-uid": lambda one: review({**one, "uid": "other"}),
    "absent": lambda _: (200, json.dumps({"apiVersion": API, "kind": "AdmissionReview"}).encode()),
    "other-version": lambda one: review(one, "admission.k8s.io/v1beta1"),
    "slow": _slow,
    "add": lambda one: review(one, **patch(add("/data/added", "yes"))),
    "bad-path": lambda one: review(one, **patch(add("/none/added", "yes"))),
    "unknown-field": lambda one: review(one, **patch(add("/nonsense", "yes"))),
    "wrong-type": lambda one: review(one, **patch(add("/data/added", 7))),
    "no-type": lambda one: review(one, patch=patch(add("/data/added", "yes"))["patch"]),
    "no-patch": lambda one: review(one, patchType="JSONPatch"),
    "other-type": lambda one: review(one, patch=patch(add("/data/added", "yes"))["patch"], patchType="Merge"),
    "undecodable": lambda one: review(one, patch=base64.b64encode(b"{").decode(), patchType="JSONPatch"),
    "rename": lambda one: review(one, **patch({"op": "replace", "path": "/metadata/name", "value": "renamed"})),
    "move": lambda one: review(one, **patch({"op": "replace", "path": "/metadata/namespace", "value": "other"})),
    "once": _once,
    "count": _count,
    "invalid": lambda one: review(one, **patch(add("/data/bad~1key", "x"))),
}


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that is killed or loses patience ends its connection in the middle. Its trace would be printed into
        what another test looks at."""


class WebhookServer:
    """`with WebhookServer(folder) as server`: at `url`, with a certificate that `authorities` (PEM) has signed."""

    def __init__(self, home: Path, answers: Mapping[str, Callable[[Json], Answer]] = ANSWERS) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.asked: list[tuple[str, Json]] = []
        """The path and the request of each review."""
        self._certificate, key = home / "webhook.crt", make_key(home / "webhook.key")
        names = "subjectAltName=IP:127.0.0.1,DNS:hook.default.svc,DNS:localhost"
        openssl(
            *("req", "-x509", "-new", "-key", key, "-subj", "/CN=webhook", "-days", "2"),
            *("-addext", names, "-out", self._certificate),
        )
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = {**sent["request"], "apiVersion": sent["apiVersion"]}
                path = self.path.partition("?")[0].strip("/")
                owner.asked.append((path, asked))
                code, body = answers[path.partition("/")[0]](asked)
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self._http = _QuietServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate, key)
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.port = self._http.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def authorities(self) -> str:
        """For a caBundle."""
        return base64.b64encode(self._certificate.read_bytes()).decode()

    def __enter__(self) -> "WebhookServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
