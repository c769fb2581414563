"""Service: the addresses of the pods that it selects, as EndpointSlices and as Endpoints.

A slice has at most 100 endpoints, all with the same ports. Endpoints stay in their slice as long as they are there, so
that a change rewrites few slices. A Service without a selector is left to whoever writes its Endpoints: their addresses
are mirrored to slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.model.services import ManagedEndpoints, ManagedService, ManagedSlice, ServicePort
from situate.core.model.stored import Raw
from situate.core.reconcile.adoption import selector_of
from situate.core.reconcile.effects import CreateObject, DeleteObject, Effect, ObjectRef, ReconcileResult, UpdateObject
from situate.core.reconcile.naming import fresh_names
from situate.core.reconcile.objects import KINDS, ManagedObject, ObjectLister, controller_ref, ref_of, to_json
from situate.core.reconcile.pods import is_ready

MOST_IN_A_SLICE: Final = 100
MOST_ADDRESSES: Final = 1_000
"""In Endpoints; the annotation OVER_CAPACITY says that there are more."""
SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SLICES_BY: Final = "endpointslice-controller.k8s.io"
MIRRORED_BY: Final = "endpointslicemirroring-controller.k8s.io"
ENDPOINTS_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_BY: Final = "endpoint-controller"
SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
HEADLESS: Final = "service.kubernetes.io/headless"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
ZONE: Final = "topology.kubernetes.io/zone"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
FAMILIES: Final = ("IPv4", "IPv6")


class _Endpoint(NamedTuple):
    """A pod behind a Service, at one address."""

    pod: ManagedPod
    address: str
    ports: tuple[Raw, ...]
    ready: bool
    serving: bool
    terminating: bool


def selects(one: ManagedService, pod: ManagedPod) -> bool:
    """Whether the pod is behind the Service."""
    return _is_selecting(one) and one.spec.selector.items() <= pod.metadata.labels.items()


def _is_selecting(one: ManagedService) -> bool:
    return bool(one.spec.selector) and one.spec.type != "ExternalName"


def service_endpoints(one: ManagedService, objects: ObjectLister, now: Millis) -> ReconcileResult:
    selector = selector_of(one.spec.selector) if _is_selecting(one) else None
    if selector is None or one.metadata.deletion_timestamp is not None:
        return ReconcileResult()
    space = one.metadata.namespace
    pods = [pod for pod in objects.among(ManagedPod, space) if selector.matches(pod.metadata.labels)]
    pods = [pod for pod in pods if pod.status.phase not in ("Succeeded", "Failed")]
    effects: list[Effect] = []
    families = one.spec.ip_families or FAMILIES[:1]
    for family in FAMILIES:
        found = list(_endpoints_of(one, pods, family)) if family in families else []
        effects += _slices(one, found, family, objects, placeholder=family in families)
    effects += _endpoints(one, list(_endpoints_of(one, pods, families[0])), objects)
    return ReconcileResult(tuple(effects))


def _endpoints_of(one: ManagedService, pods: Sequence[ManagedPod], family: str) -> Iterator[_Endpoint]:
    for pod in pods:
        addresses = [each.ip for each in pod.status.pod_ips] or [pod.status.pod_ip]
        address = next((each for each in addresses if each and (":" in each) == (family == "IPv6")), "")
        if not address:
            continue
        serving, terminating = is_ready(pod), pod.metadata.deletion_timestamp is not None
        ready = one.spec.publish_not_ready_addresses or (serving and not terminating)
        ports = tuple(port for port in (_port(pod, each) for each in one.spec.ports) if port is not None)
        if ports or not one.spec.ports:
            yield _Endpoint(pod, address, ports, ready, serving, terminating)


def _port(pod: ManagedPod, port: ServicePort) -> Raw | None:
    """The port of a pod that a port of its Service leads to; None if the pod has none of that name."""
    number: int | None = None
    if isinstance(port.target_port, int):
        number = port.target_port or port.port
    else:
        restarted = [one for one in pod.spec.init_containers if one.restart_policy == "Always"]
        for ports in (*(one.ports for one in pod.spec.containers), *(one.ports for one in restarted)):
            for own in ports:
                if own.name == port.target_port and own.protocol == port.protocol and number is None:
                    number = own.container_port
    if number is None:
        return None
    told = {} if port.app_protocol is None else {"appProtocol": port.app_protocol}
    return {"name": port.name, "port": number, "protocol": port.protocol, **told}


# -- slices ---------------------------------------------------------------------------------------------------------


def _slices(
    one: ManagedService, found: Sequence[_Endpoint], family: str, objects: ObjectLister, *, placeholder: bool
) -> Iterator[Effect]:
    labels = {name: text for name, text in one.metadata.labels.items() if name not in (SERVICE_NAME, MANAGED_BY)}
    labels |= {SERVICE_NAME: one.metadata.name, MANAGED_BY: SLICES_BY}
    if one.spec.cluster_ip == "None":
        labels[HEADLESS] = ""
    groups: dict[bytes, tuple[tuple[Raw, ...], dict[str, Raw]]] = {}
    for each in found:
        _, bodies = groups.setdefault(_key(each.ports), (each.ports, {}))
        bodies[each.pod.metadata.uid] = _body(one, each, objects)
    held = [
        each
        for each in objects.controlled(ManagedSlice, one.metadata.namespace, one.metadata.uid)
        if each.address_type == family and each.metadata.labels.get(MANAGED_BY) == SLICES_BY
    ]
    yield from _reconciled(one, held, groups, labels, family, objects, placeholder=placeholder)


def _reconciled(
    owner: ManagedObject,
    held: Sequence[ManagedSlice],
    groups: Mapping[bytes, tuple[tuple[Raw, ...], dict[str, Raw]]],
    labels: Mapping[str, str],
    family: str,
    objects: ObjectLister,
    *,
    placeholder: bool,
) -> Iterator[Effect]:
    """Write the slices of an owner: `groups` has endpoints by pod, for each set of ports."""
    unused = list(held)
    wanted: list[tuple[ManagedSlice | None, tuple[Raw, ...], list[Raw]]] = []
    for key, (ports, bodies) in groups.items():
        left = dict(bodies)
        parts: list[tuple[ManagedSlice | None, list[Raw]]] = []
        for each in [one for one in unused if _key(one.ports) == key]:
            kept = [left.pop(uid) for uid in map(_uid, each.endpoints) if uid in left]
            if kept:
                unused.remove(each)
                parts.append((each, kept))
        for body in left.values():
            room = next((part for part in parts if len(part[1]) < MOST_IN_A_SLICE), None)
            if room is None:
                room = (unused.pop(0) if unused else None, list[Raw]())
                parts.append(room)
            room[1].append(body)
        wanted += ((slice_, ports, part) for slice_, part in parts)
    if not wanted and placeholder:
        wanted.append((unused.pop(0) if unused else None, (), []))
    names = fresh_names(
        f"{owner.metadata.name}-",
        owner.metadata,
        lambda name: objects.get(ManagedSlice, owner.metadata.namespace, name) is not None,
    )
    for slice_, ports, part in wanted:
        if slice_ is None:
            yield _new_slice(owner, next(names), labels, family, ports, part)
        elif (list(slice_.ports), list(slice_.endpoints), dict(slice_.metadata.labels)) != (
            list(ports),
            part,
            dict(labels),
        ):
            gone = {name: None for name in slice_.metadata.labels if name not in labels}
            patch = {"metadata": {"labels": {**labels, **gone}}, "endpoints": part, "ports": list(ports)}
            yield UpdateObject(ref_of(slice_), slice_.metadata.resource_version, patch)
    for slice_ in unused:
        yield DeleteObject(ref_of(slice_))


def _new_slice(
    owner: ManagedObject,
    name: str,
    labels: Mapping[str, str],
    family: str,
    ports: Sequence[Raw],
    endpoints: Sequence[Raw],
) -> CreateObject:
    api_version, kind = KINDS[ManagedSlice]
    space = owner.metadata.namespace
    meta = {
        "name": name,
        "generateName": f"{owner.metadata.name}-",
        "namespace": space,
        "labels": dict(labels),
        "ownerReferences": [to_json(controller_ref(owner))],
    }
    body = {"apiVersion": api_version, "kind": kind, "metadata": meta, "addressType": family}
    return CreateObject(
        ObjectRef(api_version, kind, space, name), {**body, "endpoints": list(endpoints), "ports": list(ports)}
    )


def _key(ports: Sequence[Raw]) -> bytes:
    return msgspec.json.encode(sorted(msgspec.json.encode(port, order="sorted").decode() for port in ports))


def _uid(endpoint: Raw) -> str:
    """What an endpoint of a slice stands for."""
    target = endpoint.get("targetRef") or {}
    return str(target.get("uid") or "".join(endpoint.get("addresses") or ()))


def _body(one: ManagedService, each: _Endpoint, objects: ObjectLister) -> Raw:
    pod = each.pod
    body: dict[str, Any] = {
        "addresses": [each.address],
        "conditions": {"ready": each.ready, "serving": each.serving, "terminating": each.terminating},
        "targetRef": _target(pod),
    }
    if pod.spec.hostname and pod.spec.subdomain == one.metadata.name:
        body["hostname"] = pod.spec.hostname
    if pod.spec.node_name:
        body["nodeName"] = pod.spec.node_name
        node = objects.get(ManagedNode, "", pod.spec.node_name)
        if node is not None and (zone := node.metadata.labels.get(ZONE)):
            body["zone"] = zone
    return body


def _target(pod: ManagedPod) -> Raw:
    meta = pod.metadata
    return {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}


# -- Endpoints ------------------------------------------------------------------------------------------------------


def _endpoints(one: ManagedService, found: Sequence[_Endpoint], objects: ObjectLister) -> Iterator[Effect]:
    there = [each for each in found if not each.terminating or one.spec.publish_not_ready_addresses]
    groups: dict[bytes, dict[str, Any]] = {}
    for each in there[:MOST_ADDRESSES]:
        subset = groups.setdefault(_key(each.ports), {"ports": [_named(port) for port in each.ports]})
        side = "addresses" if each.ready else "notReadyAddresses"
        subset.setdefault(side, []).append(_address(one, each))
    subsets = [{name: part for name, part in subset.items() if part} for subset in groups.values()]
    labels = {**one.metadata.labels, ENDPOINTS_MANAGED_BY: ENDPOINTS_BY}
    if one.spec.cluster_ip == "None":
        labels[HEADLESS] = ""
    annotations = {OVER_CAPACITY: "truncated"} if len(there) > MOST_ADDRESSES else {}
    name, space = one.metadata.name, one.metadata.namespace
    held = objects.get(ManagedEndpoints, space, name)
    if held is None:
        api_version, kind = KINDS[ManagedEndpoints]
        meta = {"name": name, "namespace": space, "labels": labels}
        if annotations:
            meta["annotations"] = annotations
        body = {"apiVersion": api_version, "kind": kind, "metadata": meta, "subsets": subsets}
        yield CreateObject(ObjectRef(api_version, kind, space, name), body)
        return
    over = OVER_CAPACITY in held.metadata.annotations
    if list(held.subsets) != subsets or dict(held.metadata.labels) != labels or over != bool(annotations):
        gone: dict[str, str | None] = {label: None for label in held.metadata.labels if label not in labels}
        over_capacity: dict[str, str | None] = {**({OVER_CAPACITY: None} if over else {}), **annotations}
        changes = {"labels": {**labels, **gone}, "annotations": over_capacity}
        patch = {"metadata": changes, "subsets": subsets or None}
        yield UpdateObject(ref_of(held), held.metadata.resource_version, patch)


def _named(port: Raw) -> Raw:
    return {name: part for name, part in port.items() if name != "name" or part}


def _address(one: ManagedService, each: _Endpoint) -> Raw:
    pod = each.pod
    named = pod.spec.hostname and pod.spec.subdomain == one.metadata.name
    return {
        "ip": each.address,
        **({"hostname": pod.spec.hostname} if named else {}),
        **({"nodeName": pod.spec.node_name} if pod.spec.node_name else {}),
        "targetRef": _target(pod),
    }


def mirrored_endpoints(one: ManagedEndpoints, objects: ObjectLister, now: Millis) -> ReconcileResult:
    """Endpoints that somebody else writes become slices; those of a Service that is gone are deleted."""
    meta = one.metadata
    service = objects.get(ManagedService, meta.namespace, meta.name)
    if service is None and meta.labels.get(ENDPOINTS_MANAGED_BY) == ENDPOINTS_BY and meta.deletion_timestamp is None:
        return ReconcileResult((DeleteObject(ref_of(one), meta.resource_version),))
    skipped = meta.labels.get(SKIP_MIRROR) == "true" or LEADER in meta.annotations
    mirrored = service is not None and not service.spec.selector and not skipped and meta.deletion_timestamp is None
    held = objects.controlled(ManagedSlice, meta.namespace, meta.uid)
    held = [each for each in held if each.metadata.labels.get(MANAGED_BY) == MIRRORED_BY]
    labels = {name: text for name, text in meta.labels.items() if name not in (SERVICE_NAME, MANAGED_BY)}
    labels |= {SERVICE_NAME: meta.name, MANAGED_BY: MIRRORED_BY}
    effects: list[Effect] = []
    for family in FAMILIES:
        groups: dict[bytes, tuple[tuple[Raw, ...], dict[str, Raw]]] = {}
        for subset in one.subsets if mirrored else ():
            ports = tuple({"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ())
            _, bodies = groups.setdefault(_key(ports), (ports, {}))
            for side, ready in (("addresses", True), ("notReadyAddresses", False)):
                for address in subset.get(side) or ():
                    if (":" in address.get("ip", "")) == (family == "IPv6"):
                        body = _mirror(address, ready=ready)
                        bodies[_uid(body)] = body
        groups = {key: group for key, group in groups.items() if group[1]}
        own = [each for each in held if each.address_type == family]
        effects += _reconciled(one, own, groups, labels, family, objects, placeholder=False)
    return ReconcileResult(tuple(effects))


def _mirror(address: Raw, *, ready: bool) -> Raw:
    body: dict[str, Any] = {"addresses": [address.get("ip", "")], "conditions": {"ready": ready}}
    return body | {name: address[name] for name in ("hostname", "nodeName", "targetRef") if name in address}
