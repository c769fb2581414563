"""The same patches, to a real API server and to ours: the same objects, owners, conflicts and refusals.

A patched object is compared after the server has filled in its defaults: what we make of a patch is sent back as a PUT
(dry run), and must be what the server made of the patch itself. Objects change as the cases go on, so that they come to
have many owners.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, cast

import pytest

from kubernetes import patching_cases as cases
from kubernetes import patching_facts
from kubernetes.api import RefusedError, path_of
from kubernetes.cluster import Cluster
from kubernetes.patching_kinds import CREATED, DEPLOYMENT, FILLED_IN, KINDS, Kind, kind_id
from kubernetes.patching_operations import operations
from situate.wire import patching
from situate.wire.schema.table import flat_fields, kinds, message

Json = dict[str, Any]

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

NOW = "2026-01-02T03:04:05Z"
CASES = 100

MANAGERS = ("alpha", "beta", "kubectl")


class Bench:
    """One object on a real server, and the same requests to it and to us."""

    def __init__(self, cluster: Cluster, kind: Kind, seed: int) -> None:
        self.cluster = cluster
        self.kind = kind
        self.rng = random.Random(f"{seed}/{kind_id(kind)}")
        self.name = f"{kind.name.lower()}-{seed}"
        self.counts: dict[str, int] = {}
        self.create()

    def create(self) -> None:
        head = {"apiVersion": self.kind.version, "kind": self.kind.name}
        new = {**head, "metadata": {"name": self.name, "labels": {"made": "here"}}, **self.kind.start}
        path = self.kind.path(self.cluster.namespace)
        made = self.cluster.api.post(f"{path}?fieldManager=maker", new)
        sent = bare(made)
        # What admission and the registry fill in is nobody's.
        if filled_in := FILLED_IN.get(self.kind.name):
            sent |= {"spec": {name: value for name, value in sent["spec"].items() if name not in filled_in}}
        ours = patching.updated(None, sent, self.writer("maker", ""))
        assert differences(owners_of(ours), owners_of(made)) == []

    def writer(self, manager: str, subresource: str | None = None) -> patching.FieldWriter:
        within = self.kind.subresource if subresource is None else subresource
        return patching.FieldWriter(manager, self.kind.version, self.kind.name, NOW, within)

    @property
    def path(self) -> str:
        below = f"/{self.kind.subresource}" if self.kind.subresource else ""
        return self.kind.path(self.cluster.namespace, self.name) + below

    def live(self) -> Json:
        return self.cluster.api.get(self.kind.path(self.cluster.namespace, self.name))

    def ask(self, method: str, body: Any, content: str, query: str) -> Json | RefusedError:
        try:
            return self.cluster.api.request(method, f"{self.path}?{query}", cast("Json", body), content)
        except RefusedError as refused:
            return refused

    def case(self) -> None:
        content = self.rng.choice((STRATEGIC, STRATEGIC, STRATEGIC, MERGE, JSON, APPLY, APPLY, APPLY))
        live = self.live()
        manager = self.rng.choice(MANAGERS)
        force = content == APPLY and self.rng.random() < 0.5
        patch = self.patch(content, live)
        ours = self.ours(content, live, patch, manager, force)

        put: Json | RefusedError | patching.PatchError = ours
        if isinstance(ours, dict):
            put = self.ask("PUT", ours, "application/json", f"dryRun=All&fieldManager={manager}")
        query = f"fieldManager={manager}" + ("&force=true" if force else "")
        if self.rng.random() < 0.5:
            query += "&dryRun=All"
        theirs = self.ask("PATCH", patch, content, query)
        try:
            self.compare(content, live, manager, ours, put, theirs)
        except AssertionError as failed:
            raise AssertionError(f"{content} by {manager}, force={force}: {patch}\nlive: {live}\n{failed}") from failed

    def patch(self, content: str, live: Json) -> Any:
        if content == JSON:
            return operations(self.rng, live)
        found = cases.joined(self.rng, self.kind.fragments, smart=content == STRATEGIC)
        if content == APPLY:
            head = {"apiVersion": self.kind.version, "kind": self.kind.name}
            return {**head, **found, "metadata": {"name": self.name, **found.get("metadata", {})}}
        return found

    def ours(self, content: str, live: Json, patch: Any, manager: str, force: bool) -> Json | patching.PatchError:
        shape = patching.merge_schema(self.kind.version, self.kind.name)
        try:
            match content:
                case "application/strategic-merge-patch+json":
                    return patching.strategic_patched(live, patch, shape)
                case "application/merge-patch+json":
                    return patching.merge_patched(live, patch)
                case "application/json-patch+json":
                    return patching.json_patched(live, patch)
            return patching.applied(live, patch, self.writer(manager), force=force)
        except patching.PatchError as error:
            return error

    def compare(
        self,
        content: str,
        live: Json,
        manager: str,
        ours: Json | patching.PatchError,
        put: Json | RefusedError | patching.PatchError,
        theirs: Json | RefusedError,
    ) -> None:
        short = content.removeprefix("application/").partition("+")[0]
        if isinstance(theirs, RefusedError):
            self.count(f"{short} refused")
            assert isinstance(put, RefusedError | patching.PatchError), f"not refused by us: {theirs}"
            if isinstance(put, patching.ApplyConflictError):
                self.count(f"{short} in conflict")
                assert f"409 Conflict: {put}" == str(theirs)
            elif isinstance(put, RefusedError) and "unable to decode" not in str(put).lower() and content != JSON:
                assert str(put) == str(theirs)
            return
        assert isinstance(put, dict), f"refused by us: {put}"
        assert isinstance(ours, dict)
        self.count(short)
        assert differences(comparable(put), comparable(theirs)) == []
        if content != APPLY:
            written = bare(theirs)
            if self.kind.name == "Pod":  # owners are settled before admission puts the default tolerations back
                written["spec"] = {name: value for name, value in written["spec"].items() if name != "tolerations"}
                written["spec"] |= {
                    name: value for name, value in ours.get("spec", {}).items() if name == "tolerations"
                }
            ours = patching.updated(live, written, self.writer(manager))
        assert differences(owners_of(ours), owners_of(theirs)) == []

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def bare(item: Json) -> Json:
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    return {**item, "metadata": metadata}


def comparable(item: Json) -> Json:
    found = bare(item)
    found["metadata"].pop("resourceVersion", None)
    return found


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """A line for each place where two values are not the same."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        names = sorted({*ours, *theirs})
        found = [differences(ours.get(name, "-"), theirs.get(name, "-"), f"{path}/{name}") for name in names]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        found = [differences(*pair, f"{path}/{index}") for index, pair in enumerate(zip(ours, theirs, strict=True))]
    else:
        found = [] if ours == theirs else [[f"{path}: ours {ours}, theirs {theirs}"]]
    return [line for lines in found for line in lines]


def owners_of(item: Json) -> list[Json]:
    """managedFields, but for the times, and the order, which goes by them."""
    entries = item["metadata"].get("managedFields", [])
    timeless = [{name: value for name, value in entry.items() if name != "time"} for entry in entries]
    return sorted(timeless, key=lambda entry: tuple(entry.get(n, "") for n in ("operation", "manager", "subresource")))


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_a_patch_makes_of_an_object_what_it_makes_of_it_on_a_real_server(cluster: Cluster, kind: Kind) -> None:
    bench = Bench(cluster, kind, seed=1)
    for _ in range(CASES):
        bench.case()
    carried_out = sum(count for what, count in bench.counts.items() if " " not in what)
    assert carried_out > CASES / 3, bench.counts
    assert bench.counts["apply-patch in conflict"] > 0


@pytest.mark.parametrize("way", ["POST", "apply"])
def test_whoever_makes_an_object_owns_what_it_owns_on_a_real_server(cluster: Cluster, way: str) -> None:
    found = [made_alike(cluster, words, rest, way) for words, rest in CREATED]
    assert [line for lines in found for line in lines] == []


def made_alike(cluster: Cluster, words: str, rest: Json, way: str) -> list[str]:
    version, kind = words.split()
    head = {"apiVersion": version, "kind": kind, "metadata": {"name": "made", "finalizers": ["example.com/a"]}}
    new = json.loads(json.dumps({**head, **rest}).replace("NAMESPACE", cluster.namespace))
    path = path_of(new, cluster.namespace)
    writer = patching.FieldWriter("maker", version, kind, NOW)
    if way == "POST":
        made = cluster.api.post(f"{path}?dryRun=All&fieldManager=maker", new)
        ours = patching.updated(None, bare(made), writer)
    else:
        made = cluster.api.request("PATCH", f"{path}/made?dryRun=All&fieldManager=maker", new, APPLY)
        ours = patching.applied(None, new, writer)
        posted = cluster.api.post(f"{path}?dryRun=All", ours)
        for one in (made, posted):
            one["metadata"] = {"name": one["metadata"]["name"], "managedFields": one["metadata"]["managedFields"]}
            if "lastPhaseTransitionTime" in one.get("status", {}):
                one["status"]["lastPhaseTransitionTime"] = NOW  # not the second in which it was posted
        assert differences(comparable(posted), comparable(made), kind) == []
    return differences(owners_of(ours), owners_of(made), kind)


@pytest.mark.parametrize(
    "labels, manager",
    [
        pytest.param({"b": "1"}, "kubectl", id="what it wrote itself, it may change"),
        pytest.param({"a": "3"}, "kubectl", id="what somebody changed since is in conflict"),
        pytest.param({"b": "1"}, "another", id="nobody else may"),
    ],
)
def test_kubectl_takes_over_what_client_side_apply_wrote(cluster: Cluster, labels: Json, manager: str) -> None:
    head: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {"a": "1"}}}
    wanted = {**head, "spec": {**DEPLOYMENT["spec"], "replicas": 2}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(wanted))
    path = path_of(wanted, cluster.namespace) + "/d"
    cluster.api.request("PATCH", f"{path}?fieldManager=other", {"metadata": {"labels": {"a": "2"}}}, MERGE)
    live = cluster.api.get(path)
    config = {**wanted, "metadata": {"name": "d", "labels": labels}, "spec": {**wanted["spec"], "replicas": 3}}
    ours: Json | str
    try:
        ours = patching.applied(live, config, patching.FieldWriter(manager, "apps/v1", "Deployment", NOW))
    except patching.ApplyConflictError as conflict:
        ours = f"409 Conflict: {conflict}"
    theirs: Json | str
    try:
        theirs = cluster.api.request("PATCH", f"{path}?dryRun=All&fieldManager={manager}", config, APPLY)
    except RefusedError as refused:
        theirs = str(refused)
    if isinstance(ours, str) or isinstance(theirs, str):
        assert ours == theirs
        return
    assert differences(owners_of(ours), owners_of(theirs)) == []
    assert ours["metadata"]["annotations"] == theirs["metadata"]["annotations"]


def test_the_oldest_of_many_writers_become_ancient(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}})
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps/m"
    live = cluster.api.get(path)
    for number in range(14):
        theirs = cluster.api.request(
            "PATCH", f"{path}?fieldManager=writer-{number}", {"data": {f"k{number}": ""}}, MERGE
        )
        now = max(entry["time"] for entry in theirs["metadata"]["managedFields"])
        ours = patching.updated(live, bare(theirs), patching.FieldWriter(f"writer-{number}", "v1", "ConfigMap", now))
        assert ours["metadata"]["managedFields"] == theirs["metadata"]["managedFields"]
        live = theirs
    assert any(entry["manager"] == "ancient-changes" for entry in live["metadata"]["managedFields"])


def test_the_table_says_what_a_real_servers_openapi_says(cluster: Cluster) -> None:
    definitions: dict[str, Json] = {}
    for document in openapi(cluster):
        definitions |= document["components"]["schemas"]
    different, compared = {}, 0
    for name in reached():
        prefix = "io.k8s.apimachinery.pkg.apis" if name.startswith("meta.") else "io.k8s.api"
        properties = definitions.get(f"{prefix}.{name}", {}).get("properties", {})
        for field in flat_fields(message(name)):
            if field.name in properties:
                compared += 1
                theirs = patching_facts.merge_words(properties[field.name], definitions)
                if theirs != field.merge:
                    different[f"{name}.{field.name}"] = theirs, field.merge
    assert different == {}
    assert compared > 1_000


def reached() -> set[str]:
    """All messages that an object of a Kubernetes kind can hold."""
    found: set[str] = set()
    waiting = list(kinds().values())
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            types = [field.type.of or field.type for field in flat_fields(message(name))]
            waiting += [one.name for one in types if one.form == "message"]
    return found


def openapi(cluster: Cluster) -> Iterator[Json]:
    """The documents of all versions that both servers have."""
    paths = cluster.api.get("/openapi/v3")["paths"]
    for version in {version for version, _ in kinds()}:
        name = f"apis/{version}" if "/" in version else f"api/{version}"
        if name in paths:
            yield cluster.api.get(paths[name]["serverRelativeURL"])
