"""Objects of the fuzz are accepted here if kube-apiserver accepts them, and refused if it refuses them."""

import os
import re
import ssl
from pathlib import Path

from kubernetes.cluster import Cluster
from server.faults.process import Plane
from server.faults.wire import NoAnswerError, Wire
from server.fuzz.objects import Generator, encode

COUNT = int(os.environ.get("ODD_OBJECTS", "400"))
SEED = 12
NAMESPACE = "odd"
JSON = ["Content-Type: application/json"]
OWN = ("situate.dev", "scheduling.x-k8s.io", "scheduling.k8s.io")
"""Groups that kube-apiserver does not serve, or only behind gates."""

REFUSED_HERE = {
    "surrogate pair": "half of a surrogate pair is no text; kube-apiserver replaces it",
    "parsing time": "times before the year 1 and after 9999 in UTC; kube-apiserver stores some that it cannot show",
    "quantity must be no more than 64 characters": "quantities are bounded, and so is the work to read them",
    "quantity's exponent must be": "the same",
    "number out of range": "numbers in free-form values that no client could read",
    "exceeded max depth": "free-form values are bounded in depth",
    "resourceVersion should not be set": "kube-apiserver says so, too, unless it is a dry run",
    "name or generateName is required": "kube-apiserver says so for most kinds, and otherwise when it stores it",
    "endpoints[0].deprecatedTopology": "the values are label values; kube-apiserver does not look at them",
    "metadata.finalizers": "kube-apiserver lets through finalizers of a PodDisruptionBudget that have no domain",
}
"""Why we refuse what kube-apiserver accepts, by a part of our answer."""

ACCEPTED_HERE = {
    r"volumes\[0\]\.(azureDisk|cinder|fc|flexVolume|iscsi|portworx|quobyte|rbd|scaleIO|storageos)": "old drivers",
    r"spec\.metadata\.": "a ResourceClaimTemplate's metadata that it may not have",
    r"allowedTopologies": "empty topologies of a StorageClass",
    r"spec\.devices|extendedResourceName": "rules for devices",
}
"""Why we accept what kube-apiserver refuses, by a pattern in its answer. None of these is read by anybody."""


def test_odd_objects_are_accepted_or_refused_as_on_kube_apiserver(cluster: Cluster, tmp_path: Path) -> None:
    trusted = ssl.create_default_context(cafile=str(cluster.certificate))
    port = int(cluster.url.rpartition(":")[2])
    generator, different, both = Generator(SEED), [], [0, 0]
    with (
        Plane(tmp_path / "plane") as plane,
        Wire(port, trusted, [f"Authorization: Bearer {cluster.tokens['admin']}"]) as theirs,
        Wire(plane.port, plane.admin()) as ours,
    ):
        for wire in (theirs, ours):
            wire.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            wire.send("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
        for number in range(COUNT):
            subject = generator.subject(number, NAMESPACE)
            if subject.resource.group in OWN or "get" not in subject.resource.verbs:
                continue
            body, path = encode(subject.body()), f"{subject.collection}?dryRun=All"
            try:
                expected = theirs.ask("POST", path, body, JSON)
            except NoAnswerError:  # it compares each of a thousand keys with each
                continue
            found = ours.ask("POST", path, body, JSON)
            both[expected.code < 300] += 1
            if (expected.code < 300) != (found.code < 300):
                why = _reason(expected.code < 300, expected.body.decode(), found.body.decode())
                if not why:
                    changes = "; ".join(map(str, subject.changes))
                    different.append(f"{number} {subject.resource.kind} {expected.code} {found.code}: {changes}")
    assert different == []
    assert min(both) > COUNT // 5


def _reason(accepted_there: bool, theirs: str, ours: str) -> str:
    if accepted_there:
        return next((why for text, why in REFUSED_HERE.items() if text in ours), "")
    return next((why for pattern, why in ACCEPTED_HERE.items() if re.search(pattern, theirs)), "")
