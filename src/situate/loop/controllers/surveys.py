"""Surveys of all nodes in which one node that cannot be surveyed does not stop the others."""

from __future__ import annotations

from collections.abc import Callable

from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.reconcile.effects import ObjectRef, ReconcileResult
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.zones import taint_lost_nodes
from situate.core.reconcile.objects import ObjectIndex, ref_of


def survey_zones(
    objects: ObjectIndex, heartbeats: Heartbeats, now: Millis, report: Callable[[ObjectRef, Exception], None]
) -> ReconcileResult:
    """Without the nodes that cannot be surveyed even alone, if there are any; `report` gets those."""
    try:
        return taint_lost_nodes(objects, heartbeats, now)
    except Exception:  # noqa: BLE001 - the loop below finds the node that causes it
        others = ObjectIndex()
        for node in objects.among(ManagedNode):
            try:
                taint_lost_nodes(ObjectIndex([node]), heartbeats, now)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is about this node
                report(ref_of(node), error)
            else:
                others.put(node)
        return taint_lost_nodes(others, heartbeats, now)
