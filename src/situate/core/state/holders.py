"""What bound pods hold of a view's nodes, overlays included: volumes, claims, host ports and devices."""

from __future__ import annotations

from collections.abc import Mapping

from situate.core.state.attached import NOTHING_ATTACHED, NodeVolumes, node_volumes
from situate.core.state.classes import HostPort, PodClass
from situate.core.state.columns import IntColumn, sealed
from situate.core.state.pods import BoundPod
from situate.core.state.view import LOAD, STORAGE, View


def volume_holders(view: View) -> dict[int, list[PodClass]]:
    """Row of the view -> classes of the pods there that have volumes, overlays included; no other rows."""
    view.reads |= LOAD
    found: dict[int, list[PodClass]] = {}
    table = view.cluster.volumes.by_node
    rows = table.keys() if view.row is None else [row for row in (view.row,) if row in table]
    for row in rows:
        here = [kind for pod, kind in table[row].items() if pod not in view.removed]
        if here:
            found[view.relative(row)] = here
    for kind, row in view.added:
        if kind.holds_volumes and view.relative(row) >= 0:
            found.setdefault(view.relative(row), []).append(kind)
    return found


def volume_room(view: View, driver: str) -> tuple[IntColumn, IntColumn]:
    """How many volumes a driver has attached, overlays included, and how many it can attach, by row.

    Without a limit that is NO_LIMIT, and its volumes are not counted.
    """
    view.reads |= LOAD | STORAGE
    table = view.cluster.attached
    table.refresh()
    used, limit = table.used(driver)[view.rows], table.limit(driver)[view.rows]
    moved = _volumes_moved(view)
    if moved:
        used = used.copy()
        for row in moved:
            used[row] = volumes_on(view, row).used.get(driver, 0)
    return sealed(used), sealed(limit)


def volumes_on(view: View, row: int) -> NodeVolumes:
    """What is attached to the node at a row of the view, overlays included."""
    view.reads |= LOAD | STORAGE
    if row in _volumes_moved(view):
        absolute = view.absolute(row)
        kinds = volume_holders(view.at(absolute)).get(0, [])
        return node_volumes(view.cluster.nodes.names[absolute], kinds, view.cluster.objects.storage)
    view.cluster.attached.refresh()
    return view.cluster.attached.rows.get(view.absolute(row), NOTHING_ATTACHED)


def volume_problems(view: View) -> dict[int, str]:
    """Row of the view -> why the volumes of some pod there cannot be counted, overlays included; no other rows."""
    view.reads |= LOAD | STORAGE
    view.cluster.attached.refresh()
    kept = view.cluster.attached.problems
    found = {view.relative(row): text for row, text in kept.items() if view.relative(row) >= 0}
    for row in _volumes_moved(view):
        found.pop(row, None)
        if problem := volumes_on(view, row).problem:
            found[row] = problem
    return found


def _volumes_moved(view: View) -> dict[int, None]:
    """The rows of the view where an overlay adds or removes a pod with volumes."""
    if not (view.removed or view.added):
        return {}
    rows = (view.relative(row) for kind, row, _, _ in view.delta() if kind.holds_volumes)
    return {row: None for row in rows if row >= 0}


def claim_users(view: View, namespace: str, claim: str) -> list[BoundPod]:
    view.reads |= LOAD
    users = view.cluster.volumes.by_claim.get((namespace, claim), {})
    return [view.cluster.pods.bound(pod) for pod in users if pod not in view.removed]


def overlay_classes(view: View) -> list[tuple[PodClass, int]]:
    """What the view changes of the cluster: the class of each pod, with -1 if it was removed, 1 if added."""
    view.reads |= LOAD
    return [(kind, sign) for kind, _, sign, _ in view.delta()]


def device_users(view: View, resource: str) -> tuple[int, Mapping[PodClass, int]]:
    """The classes of bound pods that need devices, with their number; and a version that moves when their shares do,
    counted roughly (see `level`). Overlays do not count: they are about single nodes."""
    view.reads |= LOAD
    table = view.cluster.devices_of(resource)
    return table.mix_version, table.kinds


def port_holders(view: View, port: HostPort) -> Mapping[int, Mapping[str, int]]:
    """Row of the view -> address -> pods, where a host port is taken at some address; overlays included."""
    view.reads |= LOAD
    table = view.cluster.ports.holders(port)
    if view.row is not None:
        table = {0: table[view.row]} if view.row in table else {}
    if not (view.removed or view.added):
        return table
    found = {row: dict(addresses) for row, addresses in table.items()}
    for kind, row, sign, _ in view.delta():
        at = view.relative(row)
        for taken in kind.host_ports if at >= 0 else ():
            if (taken.protocol, taken.port) == (port.protocol, port.port):
                addresses = found.setdefault(at, {})
                # Kubernetes does not count the holders of a port: when one of two goes, it is free.
                addresses[taken.ip] = 0 if sign < 0 else addresses.get(taken.ip, 0) + 1
    return {at: held for at, held in ((at, _positive(addresses)) for at, addresses in found.items()) if held}


def _positive(addresses: dict[str, int]) -> dict[str, int]:
    return {ip: count for ip, count in addresses.items() if count > 0}
