"""The bootstrap roles and bindings of a cluster: those of Kubernetes v1.36, of its controllers' only some, and ours.

The table states Kubernetes' rules as kube-apiserver has them. Kinds declare the rights of our own roles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from situate.server.identity.authorization.rules import Rule
from situate.server.kinds import KINDS
from situate.server.objects import Object

API: Final = "rbac.authorization.k8s.io/v1"
GROUP: Final = "rbac.authorization.k8s.io"
AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
ANNOTATIONS: Final = {AUTOUPDATE: "true"}

# A role: its name, with a namespace if it has one. `> x` aggregates it to the role x. `< x` gives it the rules of all
# roles with `> x`. Its rules are indented: verbs, groups, resources and, after `=`, names; or verbs and paths. A rule
# continues on lines that are indented further. R, W, RW, RU and E stand for common sets of verbs.
_ROLES: Final = """
admin < admin
cluster-admin
  * * : *
  * : *
edit > admin < edit
system:aggregate-to-admin > admin
  create authorization.k8s.io : localsubjectaccessreviews
  RW rbac.authorization.k8s.io : rolebindings roles
system:aggregate-to-edit > edit
  R core : pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy
  impersonate core : serviceaccounts
  W core : pods pods/attach pods/exec pods/portforward pods/proxy
  create core : pods/eviction
  W core : configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets
      serviceaccounts services services/proxy
  create core : serviceaccounts/token
  W core,events.k8s.io : events
  W apps : daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale
      statefulsets statefulsets/scale
  W autoscaling : horizontalpodautoscalers
  W batch : cronjobs jobs
  W extensions : daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies
      replicasets replicasets/scale replicationcontrollers/scale
  W policy : poddisruptionbudgets
  W networking.k8s.io : ingresses networkpolicies
  RW coordination.k8s.io : leases
  W resource.k8s.io : resourceclaims resourceclaimtemplates
  W scheduling.k8s.io : podgroups workloads
system:aggregate-to-view > view
  R core : configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers
      replicationcontrollers/scale serviceaccounts services services/status
  R core : bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status
      resourcequotas resourcequotas/status
  R core : namespaces
  R core,events.k8s.io : events
  R discovery.k8s.io : endpointslices
  R apps : controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status
      replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status
  R autoscaling : horizontalpodautoscalers horizontalpodautoscalers/status
  R batch : cronjobs cronjobs/status jobs jobs/status
  R extensions : daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses
      ingresses/status networkpolicies replicasets replicasets/scale replicasets/status
      replicationcontrollers/scale
  R policy : poddisruptionbudgets poddisruptionbudgets/status
  R networking.k8s.io : ingresses ingresses/status networkpolicies
  R resource.k8s.io : resourceclaims resourceclaims/status resourceclaimtemplates
  R scheduling.k8s.io : podgroups podgroups/status workloads
system:auth-delegator
  create authentication.k8s.io : tokenreviews
  create authorization.k8s.io : subjectaccessreviews
system:basic-user
  create authorization.k8s.io : selfsubjectaccessreviews selfsubjectrulesreviews
  create authentication.k8s.io : selfsubjectreviews
system:certificates.k8s.io:certificatesigningrequests:nodeclient
  create certificates.k8s.io : certificatesigningrequests/nodeclient
system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
  create certificates.k8s.io : certificatesigningrequests/selfnodeclient
system:certificates.k8s.io:kube-apiserver-client-approver
  approve certificates.k8s.io : signers = kubernetes.io/kube-apiserver-client
system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
  approve certificates.k8s.io : signers = kubernetes.io/kube-apiserver-client-kubelet
system:certificates.k8s.io:kubelet-serving-approver
  approve certificates.k8s.io : signers = kubernetes.io/kubelet-serving
system:certificates.k8s.io:legacy-unknown-approver
  approve certificates.k8s.io : signers = kubernetes.io/legacy-unknown
system:controller:resource-claim-controller
  R core : pods
  update core : pods/finalizers
  create,delete,get,list,watch resource.k8s.io : resourceclaims
  patch,update resource.k8s.io : resourceclaims resourceclaims/status
  patch,update core : pods/status
  E core,events.k8s.io : events
  patch,update resource.k8s.io : resourceclaims/binding
system:discovery
  get : /api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/
system:heapster
  R core : events namespaces nodes pods
  R extensions : deployments
system:kube-aggregator
  R core : endpoints services
system:kube-controller-manager
  E core,events.k8s.io : events
  create coordination.k8s.io : leases
  get,update coordination.k8s.io : leases = kube-controller-manager
  create core : secrets serviceaccounts
  delete core : secrets
  get core : configmaps namespaces secrets serviceaccounts
  update core : secrets serviceaccounts
  create authentication.k8s.io : tokenreviews
  create authorization.k8s.io : subjectaccessreviews
  list,watch * : *
  create core : serviceaccounts/token
system:kube-dns
  list,watch core : endpoints services
system:kube-scheduler
  E core,events.k8s.io : events
  create coordination.k8s.io : leases
  get,list,update,watch coordination.k8s.io : leases = kube-scheduler
  RW coordination.k8s.io : leasecandidates
  R core : nodes
  delete,get,list,watch core : pods
  create core : bindings pods/binding
  patch,update core : pods/status
  R core : replicationcontrollers services
  R apps,extensions : replicasets
  R apps : statefulsets
  R policy : poddisruptionbudgets
  R core : persistentvolumeclaims persistentvolumes
  create authentication.k8s.io : tokenreviews
  create authorization.k8s.io : subjectaccessreviews
  R storage.k8s.io : csinodes
  R storage.k8s.io : volumeattachments
  R core : namespaces
  R storage.k8s.io : csidrivers
  R storage.k8s.io : csistoragecapacities
  R resource.k8s.io : deviceclasses
  RU resource.k8s.io : resourceclaims
  RU resource.k8s.io : resourceclaims/status
  update core : pods/finalizers
  R resource.k8s.io : resourceslices
  create,delete resource.k8s.io : resourceclaims
  patch,update resource.k8s.io : resourceclaims/binding
  R scheduling.k8s.io : podgroups
  patch,update scheduling.k8s.io : podgroups/status
system:kubelet-api-admin
  R core : nodes
  proxy core : nodes
  * core : nodes/log nodes/metrics nodes/proxy nodes/stats
  * core : nodes/configz nodes/healthz nodes/pods
system:monitoring
  get : /flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz
  get core : nodes/metrics
system:node
  create authentication.k8s.io : tokenreviews
  create authorization.k8s.io : localsubjectaccessreviews subjectaccessreviews
  R core : services
  create,get,list,watch core : nodes
  patch,update core : nodes/status
  patch,update core : nodes
  E core,events.k8s.io : events
  R core : pods
  create,delete core : pods
  patch,update core : pods/status
  create core : pods/eviction
  R core : configmaps secrets
  get core : persistentvolumeclaims persistentvolumes
  get core : endpoints
  create,get,list,watch certificates.k8s.io : certificatesigningrequests
  create,delete,get,patch,update coordination.k8s.io : leases
  get storage.k8s.io : volumeattachments
  create core : serviceaccounts/token
  get,patch,update core : persistentvolumeclaims/status
  R storage.k8s.io : csidrivers
  create,delete,get,patch,update storage.k8s.io : csinodes
  R node.k8s.io : runtimeclasses
  get resource.k8s.io : resourceclaims
  deletecollection resource.k8s.io : resourceslices
  get core : serviceaccounts
system:node-bootstrapper
  create,get,list,watch certificates.k8s.io : certificatesigningrequests
system:node-problem-detector
  get core : nodes
  patch core : nodes/status
  E core,events.k8s.io : events
system:node-proxier
  list,watch core : endpoints services
  R core : nodes
  E core,events.k8s.io : events
  list,watch networking.k8s.io : servicecidrs
  list,watch discovery.k8s.io : endpointslices
system:persistent-volume-provisioner
  create,delete,get,list,watch core : persistentvolumes
  get,list,update,watch core : persistentvolumeclaims
  R storage.k8s.io : storageclasses
  watch core : events
  E core,events.k8s.io : events
system:public-info-viewer
  get : /healthz /livez /readyz /version /version/
system:service-account-issuer-discovery
  get : /.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/
system:volume-scheduler
  RU core : persistentvolumes
  R storage.k8s.io : storageclasses
  RU core : persistentvolumeclaims
view > edit < view
kube-public/situate:cluster-info
  get core : configmaps = cluster-info
kube-system/extension-apiserver-authentication-reader
  R core : configmaps = extension-apiserver-authentication
kube-system/system::leader-locking-kube-controller-manager
  create,get,list,update,watch coordination.k8s.io : leases
  create,get,list,update,watch coordination.k8s.io : leasecandidates
kube-system/system::leader-locking-kube-scheduler
  create,get,list,update,watch coordination.k8s.io : leases
  create,get,list,update,watch coordination.k8s.io : leasecandidates
situate:aggregate-to-edit > edit
situate:aggregate-to-view > view
situate:node
situate:node-bootstrapper
situate:scheduler
  get,list,update,watch coordination.k8s.io : leases = situate situate-scheduler
  list,watch scheduling.volcano.sh,scheduling.run.ai : podgroups
"""

# A binding: its name, the role (a Role if the binding has a namespace), and the subjects.
_BINDINGS: Final = """
cluster-admin = cluster-admin : Group/system:masters
system:basic-user = system:basic-user : Group/system:authenticated
system:controller:resource-claim-controller = system:controller:resource-claim-controller :
  kube-system/resource-claim-controller
system:discovery = system:discovery : Group/system:authenticated
system:kube-controller-manager = system:kube-controller-manager : User/system:kube-controller-manager
system:kube-dns = system:kube-dns : kube-system/kube-dns
system:kube-scheduler = system:kube-scheduler : User/system:kube-scheduler
system:monitoring = system:monitoring : Group/system:monitoring
system:node = system:node :
system:node-proxier = system:node-proxier : User/system:kube-proxy
system:public-info-viewer = system:public-info-viewer : Group/system:authenticated Group/system:unauthenticated
system:service-account-issuer-discovery = system:service-account-issuer-discovery : Group/system:serviceaccounts
system:volume-scheduler = system:volume-scheduler : User/system:kube-scheduler
situate:kubelet-bootstrap = system:node-bootstrapper : Group/system:bootstrappers:kubelet
situate:node-autoapprove-bootstrap = system:certificates.k8s.io:certificatesigningrequests:nodeclient :
  Group/system:bootstrappers:kubelet
situate:node-autoapprove-rotation = system:certificates.k8s.io:certificatesigningrequests:selfnodeclient :
  Group/system:nodes
situate:kubelet-api-admin = system:kubelet-api-admin : User/kube-apiserver-kubelet-client
situate:node-bootstrapper = situate:node-bootstrapper : Group/system:bootstrappers
situate:scheduler = situate:scheduler : User/system:kube-scheduler
kube-public/situate:cluster-info = situate:cluster-info : Group/system:unauthenticated Group/system:authenticated
kube-system/system::extension-apiserver-authentication-reader = extension-apiserver-authentication-reader :
  User/system:kube-controller-manager User/system:kube-scheduler
kube-system/system::leader-locking-kube-controller-manager = system::leader-locking-kube-controller-manager :
  User/system:kube-controller-manager kube-system/kube-controller-manager kube-system/leader-election-controller
kube-system/system::leader-locking-kube-scheduler = system::leader-locking-kube-scheduler :
  User/system:kube-scheduler kube-system/kube-scheduler
"""

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_VERBS: Final = {
    "R": _READ,
    "W": _WRITE,
    "RW": tuple(sorted(_READ + _WRITE)),
    "RU": ("get", "list", "patch", "update", "watch"),
    "E": ("create", "patch", "update"),
}


class BootstrapRole(NamedTuple):
    namespace: str
    """Empty for a ClusterRole."""
    name: str
    rules: tuple[Rule, ...]
    gathered_by: str
    gathers: str

    def object(self) -> Object:
        role = _made("Role" if self.namespace else "ClusterRole", self.namespace, self.name)
        if self.gathered_by:
            role["metadata"]["labels"][AGGREGATE + self.gathered_by] = "true"
        if self.gathers:
            selector = {"matchLabels": {AGGREGATE + self.gathers: "true"}}
            role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
        if self.rules:
            role["rules"] = [rule.shown() for rule in self.rules]
        return role


class BootstrapBinding(NamedTuple):
    namespace: str
    name: str
    role: str
    subjects: tuple[tuple[str, str], ...]

    def object(self) -> Object:
        kind = "Role" if self.namespace else "ClusterRole"
        binding = _made(f"{kind}Binding", self.namespace, self.name)
        if self.subjects:
            binding["subjects"] = [_subject(*subject) for subject in self.subjects]
        binding["roleRef"] = {"apiGroup": GROUP, "kind": kind, "name": self.role}
        return binding


def _made(kind: str, namespace: str, name: str) -> Object:
    metadata: Object = {"name": name, "labels": dict(LABELS), "annotations": dict(ANNOTATIONS)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": API, "kind": kind, "metadata": metadata}


def _subject(kind: str, name: str) -> Object:
    if kind in ("User", "Group"):
        return {"kind": kind, "apiGroup": GROUP, "name": name}
    return {"kind": "ServiceAccount", "name": name, "namespace": kind}


def _rule(line: str) -> Rule:
    left, _, right = line.partition(" : ")
    things, _, names = right.partition(" = ")
    verbs, _, groups = left.strip().partition(" ")
    meant = _VERBS.get(verbs) or tuple(verbs.split(","))
    if not groups:
        return Rule(meant, paths=tuple(things.split()))
    named = tuple("" if group == "core" else group for group in groups.split(","))
    return Rule(meant, named, tuple(things.split()), tuple(names.split()))


def _declared(role: str) -> Iterator[Rule]:
    """The rules that kinds declare for a role, by group and verbs. `; patch status` is about a subresource."""
    found: dict[tuple[str, str], list[str]] = {}
    for kind in KINDS:
        resource = kind.resources[0]
        for rule in filter(None, kind.rights.get(role, "").split("; ")):
            verbs, _, subresource = rule.partition(" ")
            name = f"{resource.plural}/{subresource}" if subresource else resource.plural
            found.setdefault((resource.group, verbs), []).append(name)
    for (group, verbs), resources in found.items():
        yield Rule(_VERBS.get(verbs) or tuple(verbs.split(",")), (group,), tuple(resources))


def _entries(table: str) -> Iterator[list[str]]:
    """A line that is not indented, and the indented lines after it."""
    entry: list[str] = []
    for line in table.strip().splitlines():
        if not line.startswith(" "):
            if entry:
                yield entry
            entry = [line]
        elif line.startswith("      "):
            entry[-1] += " " + line.strip()
        else:
            entry.append(line)
    yield entry


def _parsed_roles() -> Iterator[BootstrapRole]:
    for head, *rules in _entries(_ROLES):
        rest, _, gathers = head.partition(" < ")
        rest, _, gathered_by = rest.partition(" > ")
        namespace, _, name = rest.rpartition("/")
        declared = _declared(gathered_by or name) if name.startswith("situate:") else ()
        yield BootstrapRole(namespace, name, (*map(_rule, rules), *declared), gathered_by, gathers)


def _parsed_bindings() -> Iterator[BootstrapBinding]:
    for lines in _entries(_BINDINGS):
        left, _, subjects = " ".join(lines).partition(" :")
        place, _, role = left.partition(" = ")
        namespace, _, name = place.rpartition("/")
        found = (subject.partition("/") for subject in subjects.split())
        yield BootstrapBinding(namespace, name, role, tuple((kind, who) for kind, _, who in found))


ROLES: Final = tuple(_parsed_roles())
BINDINGS: Final = tuple(_parsed_bindings())
NODE_RULES: Final = next(role.rules for role in ROLES if role.name == "system:node")
"""The rights of every node, where the node authorizer has no special rule."""
