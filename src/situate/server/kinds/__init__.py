"""The kinds that the server serves: one declaration each, in the package of its group."""

from collections.abc import Mapping
from typing import Final

from situate.server.kinds.admissionregistration import mutating_policies, validating_policies, webhooks
from situate.server.kinds.apiextensions import customresourcedefinition
from situate.server.kinds.apiregistration import apiservice
from situate.server.kinds.apps import controllerrevision, daemonset, deployment, replicaset, statefulset
from situate.server.kinds.authentication import reviews as authentication_reviews
from situate.server.kinds.authorization import reviews as authorization_reviews
from situate.server.kinds.autoscaling import horizontalpodautoscaler
from situate.server.kinds.batch import cronjob, job
from situate.server.kinds.certificates import certificatesigningrequest
from situate.server.kinds.coordination import lease
from situate.server.kinds.core import (
    binding,
    configmap,
    endpoints,
    event,
    limitrange,
    namespace,
    persistentvolume,
    persistentvolumeclaim,
    pod,
    podtemplate,
    replicationcontroller,
    resourcequota,
    secret,
    service,
    serviceaccount,
)
from situate.server.kinds.core import node as core_node
from situate.server.kinds.discovery import endpointslice
from situate.server.kinds.flowcontrol import flowschema, prioritylevelconfiguration
from situate.server.kinds.kind import Kind
from situate.server.kinds.metrics import usage
from situate.server.kinds.networking import ingress, ingressclass, ipaddress, networkpolicy, servicecidr
from situate.server.kinds.node import runtimeclass
from situate.server.kinds.policy import poddisruptionbudget
from situate.server.kinds.rbac import role, rolebinding
from situate.server.kinds.resource import (
    deviceclass,
    devicetaintrule,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
)
from situate.server.kinds.scheduling import coscheduling, podgroup, priorityclass
from situate.server.kinds.situate_dev import devicepool, nodejoin, nodesnapshot, placementdecision, views
from situate.server.kinds.storage import (
    csidriver,
    csinode,
    csistoragecapacity,
    storageclass,
    volumeattachment,
    volumeattributesclass,
)
from situate.server.kinds.strategy import Strategy

__all__ = ["KINDS", "STRATEGIES", "Kind", "Strategy"]

KINDS: Final[tuple[Kind, ...]] = (
    binding.KIND,
    configmap.KIND,
    endpoints.KIND,
    event.KIND,
    limitrange.KIND,
    namespace.KIND,
    core_node.KIND,
    persistentvolumeclaim.KIND,
    persistentvolume.KIND,
    pod.KIND,
    podtemplate.KIND,
    replicationcontroller.KIND,
    resourcequota.KIND,
    secret.KIND,
    serviceaccount.KIND,
    service.KIND,
    controllerrevision.KIND,
    daemonset.KIND,
    deployment.KIND,
    replicaset.KIND,
    statefulset.KIND,
    horizontalpodautoscaler.KIND,
    cronjob.KIND,
    job.KIND,
    poddisruptionbudget.KIND,
    priorityclass.KIND,
    podgroup.KIND,
    coscheduling.KIND,
    certificatesigningrequest.KIND,
    lease.KIND,
    event.EVENTS_KIND,
    csidriver.KIND,
    csinode.KIND,
    csistoragecapacity.KIND,
    storageclass.KIND,
    volumeattachment.KIND,
    volumeattributesclass.KIND,
    deviceclass.KIND,
    devicetaintrule.KIND,
    resourceclaim.KIND,
    resourceclaimtemplate.KIND,
    resourceslice.KIND,
    endpointslice.KIND,
    flowschema.KIND,
    prioritylevelconfiguration.KIND,
    runtimeclass.KIND,
    ingressclass.KIND,
    ingress.KIND,
    ipaddress.KIND,
    networkpolicy.KIND,
    servicecidr.KIND,
    rolebinding.CLUSTER_KIND,
    role.CLUSTER_KIND,
    rolebinding.KIND,
    role.KIND,
    authentication_reviews.SELF_SUBJECT_REVIEW,
    authentication_reviews.TOKEN_REVIEW,
    authorization_reviews.LOCAL_ACCESS_REVIEW,
    authorization_reviews.SELF_ACCESS_REVIEW,
    authorization_reviews.SELF_RULES_REVIEW,
    authorization_reviews.ACCESS_REVIEW,
    mutating_policies.BINDING,
    mutating_policies.POLICY,
    validating_policies.BINDING,
    validating_policies.POLICY,
    apiservice.KIND,
    webhooks.MUTATING,
    webhooks.VALIDATING,
    customresourcedefinition.KIND,
    usage.NODE_METRICS,
    usage.POD_METRICS,
    devicepool.KIND,
    views.NAMESPACE_VIEW,
    nodejoin.KIND,
    nodesnapshot.KIND,
    views.NODE_VIEW,
    placementdecision.KIND,
    views.PLACEMENT_EVENT,
    views.WORKLOAD_VIEW,
)
STRATEGIES: Final[Mapping[str, Strategy]] = {
    f"{one.group}/{one.kind}": kind.strategy for kind in KINDS for one in kind.resources
}
"""By `group/Kind`."""
