"""What is in the store, and what the server says of itself: compared before and after."""

import json
from dataclasses import dataclass
from typing import Any

from server.faults.wire import Wire

LISTED = (
    "/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/secrets", "/api/v1/services",
    "/api/v1/serviceaccounts", "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes", "/api/v1/events",
    "/api/v1/limitranges", "/api/v1/resourcequotas", "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets", "/apis/apps/v1/daemonsets", "/apis/batch/v1/jobs", "/apis/batch/v1/cronjobs",
    "/apis/policy/v1/poddisruptionbudgets", "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/coordination.k8s.io/v1/leases", "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/storage.k8s.io/v1/storageclasses", "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/situate.dev/v1alpha1/placementdecisions", "/apis/situate.dev/v1alpha1/nodesnapshots",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Standing:
    revision: str
    """The store's: it would be another if anything had been written, even if that was undone."""
    objects: dict[str, Any]
    panics: float


def standing(wire: Wire) -> Standing:
    objects: dict[str, Any] = {}
    revision = ""
    for path in LISTED:
        answer = wire.ask("GET", path)
        assert answer.code == 200, (path, answer.body)
        listed = json.loads(answer.body)
        revision = listed["metadata"]["resourceVersion"]
        objects[path] = listed["items"]
    return Standing(revision, objects, _panics(wire))


def _panics(wire: Wire) -> float:
    lines = wire.ask("GET", "/metrics").body.decode().splitlines()
    (found,) = (line.split()[1] for line in lines if line.startswith("situate_apiserver_panics_total "))
    return float(found)
