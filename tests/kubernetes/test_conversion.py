"""Conversion webhooks are asked, checked and obeyed as by kube-apiserver."""

import json
import re
import ssl
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from kubernetes.cluster import Cluster
from kubernetes.conversion_cases import ANSWERS, GROUP, definition, plural_of, thing
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import free_ports, wait_until
from kubernetes.webhook_server import Json, WebhookServer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLOSED = "closed"
UNTRUSTED = "untrusted"
WITHIN_S = 30.0
ASKED = "asked"
PATCHED = ("patch v2", "patched v1", "status v2")
MERGE, JSON = "application/merge-patch+json", "application/json"


class Teller:
    """Performs the requests of the cases on one server, and tells what came of them."""

    def __init__(self, cluster: Cluster, server: WebhookServer) -> None:
        self.cluster = cluster
        self.server = server
        self._tls = ssl._create_unverified_context()

    def ask(self, method: str, path: str, body: Json | None = None, kind: str = JSON) -> tuple[int, Json]:
        headers = {"Authorization": f"Bearer {self.cluster.tokens['admin']}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        headers["User-Agent"] = "judge"
        request = urllib.request.Request(self.cluster.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def tell(self) -> Json:
        (closed,) = free_ports(1)
        cases = [*ANSWERS, CLOSED, UNTRUSTED]
        for case in cases:
            where = f"https://127.0.0.1:{closed}/x" if case == CLOSED else f"{self.server.url}/{case}"
            client = {"url": where} if case == UNTRUSTED else {"url": where, "caBundle": self.server.authorities}
            if case == UNTRUSTED:
                client["url"] = f"{self.server.url}/good"
            code, answer = self.ask("POST", DEFINITIONS, definition(case, client))
            assert code == 201, answer
        found: Json = {}
        for case in cases:
            wait_until(partial(self.is_served, case), f"{case} to be served", WITHIN_S)
            found[case] = neutral(self.story(case), str(self.server.port), str(closed))
        return found

    def is_served(self, case: str) -> bool:
        return self.ask("GET", self.path(case, "v1"))[0] == 200

    def path(self, case: str, version: str, name: str = "") -> str:
        where = f"/apis/{GROUP}/{version}/namespaces/{self.cluster.namespace}/{plural_of(case)}"
        return f"{where}/{name}" if name else where

    def story(self, case: str) -> Json:
        """Objects are stored in v1, and asked for in v2."""
        self.server.asked.clear()
        said: dict[str, Any] = {}
        v1, v2 = thing(case, "a", "v1", host="h", port="1"), thing(case, "b", "v2", hostPort="h:2")
        said["create v1"] = self.ask("POST", self.path(case, "v1"), v1)
        said["get v1"] = self.ask("GET", self.path(case, "v1", "a"))
        said["get v2"] = self.ask("GET", self.path(case, "v2", "a"))
        said["create v2"] = self.ask("POST", self.path(case, "v2"), v2)
        said["stored v2"] = self.ask("GET", self.path(case, "v1", "b"))
        said[ASKED] = [asked for path, asked in self.server.asked if path == case]
        said["dry v2"] = self.ask("POST", f"{self.path(case, 'v2')}?dryRun=All", thing(case, "c", "v2", hostPort="h:3"))
        said["patch v2"] = self.ask("PATCH", self.path(case, "v2", "a"), {"spec": {"mode": "slow"}}, MERGE)
        said["patched v1"] = self.ask("GET", self.path(case, "v1", "a"))
        said["scale v2"] = self.ask("GET", self.path(case, "v2", "a/scale"))
        said["status v2"] = self.ask("PATCH", self.path(case, "v2", "a/status"), {"status": {"ready": 2}}, MERGE)
        said["none v2"] = self.ask("GET", self.path(case, "v2", "zzz"))
        said["invalid v2"] = self.ask("POST", self.path(case, "v2"), thing(case, "d", "v2", hostPort=7))
        said["delete v1"] = self.ask("DELETE", self.path(case, "v1", "a"))[0]
        said["list v1"] = self.ask("GET", self.path(case, "v1"))
        return said

    def clear(self) -> None:
        self.ask("DELETE", DEFINITIONS)


def neutral(found: Any, port: str, closed: str) -> Any:
    """Without what differs from one server to the next."""
    text = json.dumps(found)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r'"resourceVersion": "\d+"', '"resourceVersion": "N"', text)
    text = re.sub(r"is missing in '.*?'\"", "is missing in 'THE OBJECT'\"", text)  # its fields have no order
    return json.loads(text.replace(f":{port}", ":PORT").replace(f":{closed}", ":CLOSED"))


def comparable(step: str, found: Any) -> Any:
    """Without what is known to differ: see docs/reference/custom-resources.md."""
    if isinstance(found, list):
        return [comparable(step, one) for one in found]
    if not isinstance(found, dict):
        return found
    ignored = ["managedFields"] if step in PATCHED else []
    return {name: comparable(step, one) for name, one in found.items() if name not in ignored and one != ""}


def differences(ours: Json, theirs: Json) -> list[str]:
    found: list[str] = []
    for case in theirs:
        for step in theirs[case]:
            left, right = (comparable(step, one[case][step]) for one in (theirs, ours))
            # kube-apiserver's watch cache asks for the objects of each version, too.
            same = all(one in left for one in right) if step == ASKED else left == right
            if not same:
                found.append(f"{case}, {step}:\n  theirs {json.dumps(left)}\n  ours   {json.dumps(right)}")
        assert ours[case][ASKED] or case in (CLOSED, UNTRUSTED), "the webhook was not asked"
    return found


def test_conversion_webhooks_are_obeyed_as_by_kube_apiserver(cluster: Cluster, tmp_path: Path) -> None:
    cluster.namespace = cluster.new_namespace("conversion")
    with WebhookServer(tmp_path / "a", ANSWERS) as server:
        teller = Teller(cluster, server)
        theirs = teller.tell()
        teller.clear()
    with OwnCluster(tmp_path / "own") as own, WebhookServer(tmp_path / "b", ANSWERS) as server:
        own.namespace = own.new_namespace(cluster.namespace)
        ours = Teller(own, server).tell()
    found = differences(ours, theirs)
    assert not found, "\n".join(found)
