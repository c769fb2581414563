"""What is checked: workloads, and the objects that decide whether they can be placed. Other kinds are skipped."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from situate.cli.cluster.connection import Client
from situate.cli.input.devices import DEVICE_KINDS, GROUP, device_problem
from situate.cli.input.manifests import Manifest, manifests_in, unique
from situate.cli.input.workloads import WORKLOADS, PodWorkload, list_manifests, workload_of
from situate.core.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.core.model.meta import key_of
from situate.core.model.node import Node
from situate.core.model.policy import Namespace, PriorityClass
from situate.kube.errors import ApiError
from situate.wire.objects import Objects, Source, decode_checked, objects_of

LISTS: Final = {
    ("", "Node"): "/api/v1/nodes",
    ("", "Namespace"): "/api/v1/namespaces",
    ("scheduling.k8s.io", "PriorityClass"): "/apis/scheduling.k8s.io/v1/priorityclasses",
    ("policy", "PodDisruptionBudget"): "/apis/policy/v1/poddisruptionbudgets",
    **{key: kind.path for key, kind in WORKLOADS.items()},
}
"""Group and kind -> where the API server has it."""
DEVICES: Final = {(GROUP, kind.model.__name__): f"/apis/{GROUP}/v1/{kind.resource}" for kind in DEVICE_KINDS}
"""The same for what a server may not have."""


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """A claim, or a template of claims."""

    subject: str
    file: str
    path: str
    """Of the claim's spec within the object."""
    claim: ResourceClaim


@dataclass(slots=True, repr=False)
class CheckDevices:
    """What was read of devices."""

    claims: dict[tuple[str, str], ReadClaim] = field(default_factory=dict)
    templates: dict[tuple[str, str], ReadClaim] = field(default_factory=dict)
    classes: dict[str, tuple[DeviceClass, str]] = field(default_factory=dict)
    """With their files."""
    others: list[ResourceSlice | DeviceTaintRule] = field(default_factory=list)
    problem: str = ""
    """Why a server's devices are not known."""

    @property
    def has_slices(self) -> bool:
        return any(isinstance(one, ResourceSlice) for one in self.others)


@dataclass(slots=True, repr=False)
class CheckInput:
    """All that was read. Without a repr: asyncio would format all of it for a task's result."""

    workloads: list[PodWorkload] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    budgets: list[Manifest] = field(default_factory=list)
    devices: CheckDevices = field(default_factory=CheckDevices)
    refused: dict[str, str] = field(default_factory=dict)
    """Kinds that a server did not let us list, and why."""
    count: int = 0
    """How many objects there were, of all kinds."""
    notes: list[str] = field(default_factory=list)


def read_files(sources: Iterable[Source]) -> CheckInput:
    """Raises InputError."""
    return _gathered(unique(one for source in sources for one in manifests_in(source)), CheckInput())


def _gathered(manifests: Iterable[Manifest], read: CheckInput) -> CheckInput:
    for one in manifests:
        read.count += 1
        data, place = msgspec.json.encode(one.body), {"file": one.file, "within": one.within}
        match one.group_and_kind:
            case key if key in WORKLOADS:
                read.workloads.append(workload_of(one))
            case ("", "Node"):
                read.nodes.append(decode_checked(Node, data, **place))
            case ("", "Namespace"):
                read.namespaces.append(decode_checked(Namespace, data, **place))
            case ("scheduling.k8s.io", "PriorityClass"):
                read.priority_classes.append(decode_checked(PriorityClass, data, **place))
            case ("policy", "PodDisruptionBudget"):
                one.required_name()
                read.budgets.append(one)
            case (group, _) if group == GROUP:
                _add_devices(read.devices, objects_of([data], one.file), one.file)
            case _:
                pass
    read.workloads = _without_owned(read.workloads)
    return read


def _add_devices(devices: CheckDevices, found: Objects, file: str) -> None:
    for claim in found.resource_claims:
        key = (claim.metadata.namespace, claim.metadata.name)
        devices.claims[key] = ReadClaim(f"ResourceClaim {key_of(claim.metadata)}", file, "spec", claim)
    for template in found.resource_claim_templates:
        meta = template.metadata
        claim = ResourceClaim(metadata=meta, spec=template.spec.spec)
        subject = f"ResourceClaimTemplate {key_of(meta)}"
        devices.templates[meta.namespace, meta.name] = ReadClaim(subject, file, "spec.spec", claim)
    for one in found.device_classes:
        devices.classes[one.metadata.name] = one, file
    devices.others += [*found.resource_slices, *found.device_taint_rules]


def _without_owned(workloads: Iterable[PodWorkload]) -> list[PodWorkload]:
    """Without those whose controller was read, too: its template is what a person would change.

    Of several pods whose controller was not read, the first represents all.
    """
    found = {(one.kind, one.namespace, one.name): one for one in workloads}
    pods: dict[tuple[str, str, str], int] = {}
    kept: list[PodWorkload] = []
    for one in found.values():
        if one.kind == "ReplicaSet" and not one.replicas:
            continue  # left behind by a rollout
        if one.owner is None:
            kept.append(one)
            continue
        owner = (one.owner[0], one.namespace, one.owner[1])
        if owner not in found and (one.kind != "Pod" or owner not in pods):
            kept.append(one)
        if one.kind == "Pod":
            pods[owner] = pods.get(owner, 0) + 1
    return [
        replace(one, replicas=pods[one.owner[0], one.namespace, one.owner[1]])
        if one.kind == "Pod" and one.owner is not None
        else one
        for one in kept
    ]


async def read_live(client: Client) -> CheckInput:
    """All that we may list. Raises ApiError if that is nothing at all."""
    import asyncio

    read = CheckInput()
    unseen: list[tuple[str, str]] = []
    served: list[str] = []

    async def listed(group: str, kind: str, path: str) -> list[Manifest]:
        resource = path.rpartition("/")[2]
        try:
            found = await list_manifests(client, group, kind, path)
        except ApiError as error:
            if not (error.forbidden or error.not_found):
                raise
            if group != GROUP:
                read.refused[kind] = error.message
            elif not error.not_found:
                unseen.append((resource, error.message))
            return []
        served.append(f"{resource}.{group}")
        return found

    wanted = {**LISTS, **DEVICES}
    lists = await asyncio.gather(*(listed(group, kind, path) for (group, kind), path in wanted.items()))
    read.devices.problem = device_problem(served, sorted(unseen))
    if len(read.refused) == len(LISTS):
        raise ApiError(403, "Forbidden", next(iter(read.refused.values())))
    return _gathered((one for found in lists for one in found), read)
