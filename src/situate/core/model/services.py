"""Services and their endpoints, as controllers read and write them."""

import msgspec

from situate.core.model.base import EMPTY, Int32, Labels, Model
from situate.core.model.stored import Raw, StoredMeta


class ServicePort(Model, frozen=True, kw_only=True):
    name: str = ""
    protocol: str = "TCP"
    port: Int32 = 0
    target_port: int | str = 0
    app_protocol: str | None = None


class ManagedServiceSpec(Model, frozen=True, kw_only=True):
    type: str = "ClusterIP"
    selector: Labels = EMPTY
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ip_families: tuple[str, ...] = ()
    publish_not_ready_addresses: bool = False


class ManagedService(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ManagedServiceSpec = ManagedServiceSpec()


class ManagedSlice(Model, frozen=True, kw_only=True):
    """An EndpointSlice."""

    metadata: StoredMeta = StoredMeta()
    address_type: str = ""
    endpoints: tuple[Raw, ...] = ()
    ports: tuple[Raw, ...] = ()


class ManagedEndpoints(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    subsets: tuple[Raw, ...] = ()
