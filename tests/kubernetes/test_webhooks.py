"""The same webhook and the same writes on kube-apiserver and on our API server: the same answers, and the webhook is
asked the same.

Each case has a configuration of its own, about ConfigMaps with the label `case`; all are there before the first write.
"""

import json
import re
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.cluster import Cluster
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import free_ports, wait_until
from kubernetes.webhook_server import WebhookServer

Json = dict[str, Any]
WITHIN_S = 20.0
GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
CLOSED = "closed"
"""In place of the path: a port where nobody listens."""


@dataclass(frozen=True, slots=True)
class Hook:
    path: str
    spec: Json = field(default_factory=dict)
    mutating: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    hooks: list[Hook]
    writes: tuple[str, ...] = ("create",)


def v(path: str, **spec: Any) -> Hook:
    return Hook(path, spec)


def m(path: str, **spec: Any) -> Hook:
    return Hook(path, spec, mutating=True)


def rules(*operations: str, **more: Any) -> list[Json]:
    return [{**MAPS, "operations": list(operations), **more}]


IGNORE: Json = {"failurePolicy": "Ignore"}


def when(*expressions: str) -> list[Json]:
    return [{"name": f"c{at}", "expression": one} for at, one in enumerate(expressions)]


SINGLE = (
    *("allow", "deny", "deny-403", "deny-plain", "deny-reason", "deny-200", "deny-details", "warn"),
    *("http-500", "http-404", "http-400", "wrong-uid", "absent", "empty", "other-version", "add"),
)
PATCHES = (
    *("deny", "warn", "add", "bad-path", "no-type", "no-patch", "other-type", "rename", "invalid", "unknown-field"),
)
CASES = [
    *(Case(f"v-{one}", [v(one)]) for one in SINGLE),
    *(Case(f"m-{one}", [m(one)]) for one in PATCHES),
    Case("closed", [v(CLOSED)]),
    Case("closed-ignored", [v(CLOSED, **IGNORE)]),
    Case("http-500-ignored", [m("http-500", **IGNORE)]),
    Case("slow", [v("slow", timeoutSeconds=1)]),
    Case("slow-ignored", [v("slow", timeoutSeconds=1, **IGNORE)]),
    Case("untrusted", [v("allow", untrusted=True)]),
    Case("condition-true", [v("deny", matchConditions=when("object.data.k == 'v'", "request.operation == 'CREATE'"))]),
    Case("condition-false", [v("deny", matchConditions=when("object.data.k == 'v'", "oldObject != null"))]),
    Case("condition-fails", [v("deny", matchConditions=when("object.data.none == 'v'"))]),
    Case("condition-fails-ignored", [v("deny", matchConditions=when("object.data.none == 'v'"), **IGNORE)]),
    Case(
        "condition-authorizer",
        [v("deny", matchConditions=when("authorizer.requestResource.check('create').allowed()"))],
    ),
    Case("operations", [v("deny", rules=rules("UPDATE", "DELETE"))], ("create", "update", "patch", "apply", "delete")),
    Case("all-operations", [v("allow", rules=rules("*"))], ("create", "update", "patch", "apply", "delete")),
    Case("mutated-update", [m("add", rules=rules("UPDATE"))], ("create", "update", "patch", "apply")),
    Case("dry", [v("allow"), m("add")], ("dry",)),
    Case("generated", [m("add"), v("allow")], ("generate",)),
    Case("group", [v("deny", rules=rules("CREATE", apiGroups=["apps"]))]),
    Case("scope", [v("deny", rules=rules("CREATE", scope="Cluster"))]),
    Case("two", [v("deny", matchConditions=when("false")), v("deny-403")]),
    Case("chain", [m("add"), m("once")]),
    Case("reinvoked", [m("count", reinvocationPolicy="IfNeeded"), m("once")]),
    Case("not-reinvoked", [m("count"), m("once")]),
    Case("beta", [v("deny", admissionReviewVersions=["v1beta1"])]),
    Case("elsewhere", [v("deny", namespaceSelector={"matchLabels": {"no": "such"}})]),
]


def configurations(case: Case, server: WebhookServer, closed: int, untrusted: str) -> list[Json]:
    made: dict[bool, list[Json]] = {True: [], False: []}
    for at, hook in enumerate(case.hooks):
        spec = dict(hook.spec)
        bundle = untrusted if spec.pop("untrusted", False) else server.authorities
        url = f"https://127.0.0.1:{closed}/x" if hook.path == CLOSED else f"{server.url}/{hook.path}/{case.name}"
        made[hook.mutating].append(
            {
                "name": f"h{at}.{case.name}.example.com",
                "clientConfig": {"url": url, "caBundle": bundle},
                "rules": [MAPS],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1", "v1beta1"],
                "objectSelector": {"matchLabels": {"case": case.name}},
                **spec,
            }
        )
    kinds = {True: "MutatingWebhookConfiguration", False: "ValidatingWebhookConfiguration"}
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kinds[mutating],
            "metadata": {"name": f"case-{case.name}"},
            "webhooks": hooks,
        }
        for mutating, hooks in made.items()
        if hooks
    ]


class Teller:
    """Performs the writes of the cases on one server, and tells what came of them."""

    def __init__(self, cluster: Cluster, server: WebhookServer) -> None:
        self.cluster = cluster
        self.server = server
        self._tls = ssl._create_unverified_context()

    def ask(self, method: str, path: str, body: Json | None, kind: str = "application/json") -> Any:
        """The answer, and the warnings."""
        headers = {
            "Authorization": f"Bearer {self.cluster.tokens['admin']}",
            "Content-Type": kind,
            "User-Agent": "judge",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.cluster.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls) as answer:
                return answer.status, json.loads(answer.read()), answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read()), error.headers.get_all("Warning") or []

    def configure(self, body: Json) -> None:
        path = f"{GROUP}/{body['kind'].lower()}s"
        code, answer, _ = self.ask("POST", path, body)
        assert code == 201, answer

    def write(self, case: Case, how: str) -> Any:
        path = f"/api/v1/namespaces/{self.cluster.namespace}/configmaps"
        name = f"m-{case.name}"
        obj: Json = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"case": case.name}},
            "data": {"k": "v"},
        }
        match how:
            case "create":
                return self.ask("POST", path, obj)
            case "dry":
                return self.ask("POST", f"{path}?dryRun=All&fieldManager=me&fieldValidation=Strict", obj)
            case "generate":
                meta = {"generateName": "g-", "labels": {"case": case.name}}
                return self.ask("POST", path, {**obj, "metadata": meta})
            case "update":
                return self.ask("PUT", f"{path}/{name}", {**obj, "data": {"k": "w"}})
            case "patch":
                changes = {"data": {"p": "q"}}
                return self.ask("PATCH", f"{path}/{name}", changes, "application/merge-patch+json")
            case "apply":
                query = "?fieldManager=me&force=true"
                return self.ask("PATCH", f"{path}/{name}{query}", obj, "application/apply-patch+yaml")
            case _:
                return self.ask("DELETE", f"{path}/{name}?propagationPolicy=Background", None)

    def tell(self, home: Path) -> dict[str, Any]:
        """What came of each write. The configurations are removed, because other tests share the server."""
        try:
            return self._tell(home)
        finally:
            for kind in ("validating", "mutating"):
                self.ask("DELETE", f"{GROUP}/{kind}webhookconfigurations", None)

    def _tell(self, home: Path) -> dict[str, Any]:
        (closed,) = free_ports(1)
        with WebhookServer(home / "other") as other:
            untrusted = other.authorities
        for case in CASES:
            for one in configurations(case, self.server, closed, untrusted):
                self.configure(one)
        # kube-apiserver knows a new configuration a moment later; the last one is the newest.
        last = Case("last", [v("deny"), m("allow")])
        for one in configurations(last, self.server, closed, untrusted):
            self.configure(one)
        wait_until(lambda: self.write(last, "create")[0] == 400, "the webhooks to be asked", WITHIN_S)
        wait_until(self._asks_both, "both webhooks to be asked", WITHIN_S)
        said: dict[str, Any] = {}
        for case in CASES:
            for how in case.writes:
                self.server.asked.clear()
                answer = self.write(case, how)
                asked = sorted(self.server.asked, key=lambda one: one[0])
                said[f"{case.name} {how}"] = neutral([answer, asked], str(self.server.port), str(closed))
        return said

    def _asks_both(self) -> bool:
        """The mutating webhook comes first, and allows."""
        self.server.asked.clear()
        self.write(Case("last", []), "create")
        return bool(self.server.asked) and self.server.asked[0][0].startswith("allow")


def neutral(found: Any, port: str, closed: str) -> Any:
    """Without what differs from one server to the next."""
    text = json.dumps(found)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r'"resourceVersion": "\d+"', '"resourceVersion": "N"', text)
    text = re.sub(r'"g-[a-z0-9]{5}"', '"g-GENERATED"', text)
    text = re.sub(r" \(possibly because of [^)]*\)", "", text)  # what else Go has tried
    text = text.replace('"uid": "admin", ', "")  # the token file of kube-apiserver gives users a uid
    text = text.replace(f":{port}", ":PORT").replace(f":{closed}", ":CLOSED")
    return json.loads(text)


def test_webhooks_are_asked_and_obeyed_as_by_kube_apiserver(cluster: Cluster, tmp_path: Path) -> None:
    cluster.namespace = cluster.new_namespace("webhooks")
    with WebhookServer(tmp_path / "a") as server:
        theirs = Teller(cluster, server).tell(tmp_path)
    with OwnCluster(tmp_path / "own") as own, WebhookServer(tmp_path / "b") as server:
        own.namespace = own.new_namespace(cluster.namespace)
        ours = Teller(own, server).tell(tmp_path)
    assert ours == theirs
