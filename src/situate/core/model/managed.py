"""Pods, namespaces and budgets, as controllers read and write them. `managed_devices` has devices, `managed_volumes`
volumes.

Of a pod, this is what its controller reads: owner, phase, readiness, termination. Scheduling reads `pod`.
"""

from collections.abc import Mapping

import msgspec

from situate.core.model.apps import IntOrPercent
from situate.core.model.base import EMPTY, Int32, Int64, Model
from situate.core.model.labels import LabelSelector
from situate.core.model.pod import PodResourceClaim
from situate.core.model.stored import Condition, Raw, StoredMeta
from situate.core.model.tolerations import Toleration


class ManagedPort(Model, frozen=True, kw_only=True):
    name: str = ""
    container_port: Int32 = 0
    protocol: str = "TCP"


class ManagedContainer(Model, frozen=True, kw_only=True):
    name: str = ""
    restart_policy: str | None = None
    ports: tuple[ManagedPort, ...] = ()


class PortContainer(Model, frozen=True, kw_only=True):
    """Of a container, only what services name."""

    ports: tuple[ManagedPort, ...] = ()


class ManagedPodSpec(Model, frozen=True, kw_only=True):
    node_name: str = ""
    restart_policy: str = "Always"
    hostname: str = ""
    subdomain: str = ""
    init_containers: tuple[ManagedContainer, ...] = ()
    containers: tuple[PortContainer, ...] = ()
    volumes: tuple[Raw, ...] = ()
    affinity: Raw = EMPTY
    tolerations: tuple[Toleration, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()


class Terminated(Model, frozen=True, kw_only=True):
    exit_code: Int32 = 0
    finished_at: str | None = None


class ManagedContainerState(Model, frozen=True, kw_only=True):
    terminated: Terminated | None = None


class PodContainerStatus(Model, frozen=True, kw_only=True):
    name: str = ""
    restart_count: Int32 = 0
    state: ManagedContainerState = ManagedContainerState()


class GeneratedClaim(Model, frozen=True, kw_only=True):
    """The claim that was made for an entry of a pod's `resourceClaims`; without a name, none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedClaim(Model, frozen=True, kw_only=True):
    """The claim that a scheduler made for a pod's extended resources."""

    resource_claim_name: str = ""


class PodAddress(Model, frozen=True, kw_only=True):
    ip: str = ""


class ManagedPodStatus(Model, frozen=True, kw_only=True):
    phase: str = "Pending"
    reason: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[PodAddress, ...] = msgspec.field(default=(), name="podIPs")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[PodContainerStatus, ...] = ()
    init_container_statuses: tuple[PodContainerStatus, ...] = ()
    resource_claim_statuses: tuple[GeneratedClaim, ...] = ()
    extended_resource_claim_status: ExtendedClaim | None = None


class ManagedAccount(Model, frozen=True, kw_only=True):
    """A ServiceAccount; only its existence matters."""

    metadata: StoredMeta = StoredMeta()


class CertificateData(Model, frozen=True, kw_only=True):
    """The one key of a ConfigMap that a controller reads."""

    certificates: str = msgspec.field(default="", name="ca.crt")


class ManagedConfigMap(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    data: CertificateData = CertificateData()


class ManagedPod(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ManagedPodSpec = ManagedPodSpec()
    status: ManagedPodStatus = ManagedPodStatus()


class NamespaceSpec(Model, frozen=True, kw_only=True):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Model, frozen=True, kw_only=True):
    phase: str = "Active"
    conditions: tuple[Condition, ...] = ()


class ManagedNamespace(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class BudgetSpec(Model, frozen=True, kw_only=True):
    min_available: IntOrPercent | None = None
    max_unavailable: IntOrPercent | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatus(Model, frozen=True, kw_only=True):
    """`disrupted_pods`: pods whose eviction was granted and not observed yet, with the time."""

    observed_generation: Int64 = 0
    disrupted_pods: Mapping[str, str | None] = EMPTY
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    conditions: tuple[Condition, ...] = ()


class Budget(Model, frozen=True, kw_only=True):
    """A PodDisruptionBudget."""

    metadata: StoredMeta = StoredMeta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
