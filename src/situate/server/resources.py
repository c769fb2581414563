"""What is served: an explicit table of resources, with their names, scopes, verbs and subresources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["BY_KIND", "BY_PATH", "RESOURCES", "Resource"]

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    """Empty for what exists only as subresources; `create` alone for what is answered and never stored."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    stored_as: str = ""
    """`group/plural` under which objects are kept: resources that are one thing in several versions share it."""
    computed: bool = False
    """Worked out when it is asked for (server/views), and kept nowhere."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def stored(self) -> bool:
        return "get" in self.verbs and not self.computed


# api version, plural, kind, N(amespaced) or C(luster), short names, categories; after `|` subresources, after `!` verbs
# other than all of them, after `=` where it is kept, if that is the place of another version or group. With `~` at its
# end it is worked out, and not kept.
_TABLE: Final = """
v1 bindings Binding N - - ! create
v1 configmaps ConfigMap N cm -
v1 endpoints Endpoints N ep -
v1 events Event N ev -
v1 limitranges LimitRange N limits -
v1 namespaces Namespace C ns - | finalize status ! create delete get list patch update watch
v1 nodes Node C no - | status
v1 persistentvolumeclaims PersistentVolumeClaim N pvc - | status
v1 persistentvolumes PersistentVolume C pv - | status
v1 pods Pod N po all | binding eviction log status
v1 podtemplates PodTemplate N - -
v1 replicationcontrollers ReplicationController N rc all | scale status
v1 resourcequotas ResourceQuota N quota - | status
v1 secrets Secret N - -
v1 serviceaccounts ServiceAccount N sa - | token
v1 services Service N svc all | status
apps/v1 controllerrevisions ControllerRevision N - -
apps/v1 daemonsets DaemonSet N ds all | status
apps/v1 deployments Deployment N deploy all | scale status
apps/v1 replicasets ReplicaSet N rs all | scale status
apps/v1 statefulsets StatefulSet N sts all | scale status
batch/v1 cronjobs CronJob N cj all | status
batch/v1 jobs Job N - all | status
policy/v1 poddisruptionbudgets PodDisruptionBudget N pdb - | status
scheduling.k8s.io/v1 priorityclasses PriorityClass C pc -
scheduling.k8s.io/v1beta1 podgroups PodGroup N - - | status
scheduling.k8s.io/v1alpha2 podgroups PodGroup N - - | status = scheduling.k8s.io/podgroups
scheduling.x-k8s.io/v1alpha1 podgroups PodGroup N pg,pgs - | status
coordination.k8s.io/v1 leases Lease N - -
events.k8s.io/v1 events Event N ev - = /events
storage.k8s.io/v1 csidrivers CSIDriver C - -
storage.k8s.io/v1 csinodes CSINode C - -
storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity N - -
storage.k8s.io/v1 storageclasses StorageClass C sc -
storage.k8s.io/v1 volumeattachments VolumeAttachment C - - | status
resource.k8s.io/v1 deviceclasses DeviceClass C - -
resource.k8s.io/v1 resourceclaims ResourceClaim N - - | status
resource.k8s.io/v1 resourceclaimtemplates ResourceClaimTemplate N - -
resource.k8s.io/v1 resourceslices ResourceSlice C - -
discovery.k8s.io/v1 endpointslices EndpointSlice N - -
node.k8s.io/v1 runtimeclasses RuntimeClass C - -
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding C - -
rbac.authorization.k8s.io/v1 clusterroles ClusterRole C - -
rbac.authorization.k8s.io/v1 rolebindings RoleBinding N - -
rbac.authorization.k8s.io/v1 roles Role N - -
authentication.k8s.io/v1 selfsubjectreviews SelfSubjectReview C - - ! create
authentication.k8s.io/v1 tokenreviews TokenReview C - - ! create
authorization.k8s.io/v1 localsubjectaccessreviews LocalSubjectAccessReview N - - ! create
authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview C - - ! create
authorization.k8s.io/v1 selfsubjectrulesreviews SelfSubjectRulesReview C - - ! create
authorization.k8s.io/v1 subjectaccessreviews SubjectAccessReview C - - ! create
situate.dev/v1alpha1 namespaceviews NamespaceView C nsv situate ! get list ~
situate.dev/v1alpha1 nodesnapshots NodeSnapshot C nsnap situate ! get list watch
situate.dev/v1alpha1 nodeviews NodeView C nov situate ! get list ~
situate.dev/v1alpha1 placementdecisions PlacementDecision N pld situate ! get list watch
situate.dev/v1alpha1 placementevents PlacementEvent N ple - ! list watch ~
situate.dev/v1alpha1 workloadviews WorkloadView N wlv situate ! get list ~
"""


def _words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


def _parse(line: str) -> Resource:
    computed = line.endswith(" ~")
    line, _, place = line.removesuffix(" ~").partition(" = ")
    line, _, verbs = line.partition(" ! ")
    line, _, subresources = line.partition(" | ")
    api_version, plural, kind, scope, short, categories = line.split()
    group, _, version = api_version.rpartition("/")
    return Resource(
        group,
        version,
        plural,
        kind,
        kind.lower(),
        scope == "N",
        tuple(verbs.split()) or ALL_VERBS,
        _words(short),
        _words(categories),
        tuple(subresources.split()),
        place or f"{group}/{plural}",
        computed,
    )


def _parsed() -> Iterator[Resource]:
    for line in _TABLE.strip().splitlines():
        yield _parse(line)


RESOURCES: Final[tuple[Resource, ...]] = tuple(_parsed())
BY_PATH: Final[Mapping[tuple[str, str, str], Resource]] = {
    (one.group, one.version, one.plural): one for one in RESOURCES
}
"""By group, version and plural, as in a URL."""
BY_KIND: Final[Mapping[tuple[str, str], Resource]] = {(one.api_version, one.kind): one for one in RESOURCES}
