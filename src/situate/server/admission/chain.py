"""The order of the admission plugins."""

from __future__ import annotations

from situate.core.reconcile.nodes.fencing import KUBERNETES, NodeProfile
from situate.server.admission.accounts import ServiceAccounts
from situate.server.admission.agent_reports import AgentReports
from situate.server.admission.ephemeral_containers import EphemeralContainers
from situate.server.admission.limits import LimitRanger
from situate.server.admission.namespaces import NamespaceLifecycle
from situate.server.admission.pod_security import PodSecurity
from situate.server.admission.priority import Priority
from situate.server.admission.runtime_class import RuntimeClasses
from situate.server.admission.services import ServiceAddresses
from situate.server.admission.storage import DefaultStorageClass, StorageObjectInUseProtection
from situate.server.admission.tolerations import DefaultTolerations
from situate.server.registry.cache import Cache
from situate.server.registry.ports import AdmissionPlugin


def chain(cache: Cache, profile: NodeProfile = KUBERNETES, *, accounts: bool | None = None) -> list[AdmissionPlugin]:
    """The plugins of every server; identity adds its own. `profile`: how to treat lost nodes. `accounts`: whether a pod
    must have a ServiceAccount, as where a controller creates the account `default` of each namespace; None: no pod."""
    return [
        NamespaceLifecycle(cache),
        LimitRanger(cache),
        *([ServiceAccounts(cache, required=accounts)] if accounts is not None else []),
        AgentReports(),
        PodSecurity(cache),
        EphemeralContainers(cache),
        Priority(cache),
        DefaultTolerations(profile.toleration_s),
        DefaultStorageClass(cache),
        RuntimeClasses(cache),
        StorageObjectInUseProtection(),
        ServiceAddresses(cache),
    ]
