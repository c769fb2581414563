"""The kinds of core/v1: their strategies, one file a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.server.kinds import (
    bindings,
    claims,
    configmaps,
    endpoints,
    events,
    limitranges,
    namespaces,
    nodes,
    persistentvolumes,
    pods,
    replicationcontrollers,
    resourcequotas,
    secrets,
    serviceaccounts,
    services,
    templates,
)
from situate.server.kinds.strategy import Strategy

__all__ = ["STRATEGIES"]

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "/Binding": bindings.STRATEGY,
    "/ConfigMap": configmaps.STRATEGY,
    "/Endpoints": endpoints.STRATEGY,
    "/Event": events.STRATEGY,
    "/LimitRange": limitranges.STRATEGY,
    "/Namespace": namespaces.STRATEGY,
    "/Node": nodes.STRATEGY,
    "/PersistentVolume": persistentvolumes.STRATEGY,
    "/PersistentVolumeClaim": claims.STRATEGY,
    "/Pod": pods.STRATEGY,
    "/PodTemplate": templates.STRATEGY,
    "/ReplicationController": replicationcontrollers.STRATEGY,
    "/ResourceQuota": resourcequotas.STRATEGY,
    "/Secret": secrets.STRATEGY,
    "/Service": services.STRATEGY,
    "/ServiceAccount": serviceaccounts.STRATEGY,
    "events.k8s.io/Event": events.NEW_STRATEGY,
}
