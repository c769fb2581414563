"""Compares our decisions about the pods of a scenario with kube-scheduler's verdicts. Opens and prints nothing.

EXPLAINED lists the intended differences. `excused` says which fields of such a verdict are still compared; the command
counts and prints them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from situate.core.config.defaults import BUILT_IN_POINTS
from situate.core.config.errors import ConfigError
from situate.core.config.resolve import resolve
from situate.core.devices.extended import IN_MEMORY_NAME
from situate.core.engine.decision import Decision, decide
from situate.core.engine.framework import Framework, build_frameworks
from situate.core.model.devices import ResourceClaim
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.pod import Pod
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.plugins.dynamic_resources import decide as decide_devices
from situate.core.plugins.support.device_demand import NO_DEVICES, DeviceDecision, written_claims
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.wire.config import ConfigInputError
from situate.wire.errors import InputError
from situate.wire.scenarios import Scenario
from situate.wire.schema.values import canonical_quantity

COMPARED: Final = (
    "preFilter",
    "feasible",
    "rejected",
    "scores",
    "total",
    "best",
    "message",
    "nominated",
    "victims",
    "preemptCode",
    "preemptMessage",
    "error",
    "allocations",
)
"""The fields of a verdict that are compared. An absent field equals an empty one."""

ONE_NODE: Final = "a node that cannot be judged"
UNPREPARED: Final = "a plugin whose preparation the profile disables"
UNREADABLE: Final = "a preference that cannot be read"

EXPLAINED: Final = {
    ONE_NODE: "A filter fails on one node. kube-scheduler gives up on the pod; situate refuses that node alone.",
    UNPREPARED: "A profile enables a plugin at filter or score, and disables it at preFilter or preScore. "
    "kube-scheduler gives up on the pods that the plugin decides about; situate prepares the plugin all the same.",
    UNREADABLE: "A term of a pod's preferred node affinity is none (greater than a word); the API server lets it pass. "
    "kube-scheduler gives up on the pod as soon as it has a choice of nodes; to situate the term matches no node.",
}
"""The intended differences, by name."""

_FAILED_AT: Final = {
    re.compile(r'\brunning "(?P<plugin>\w+)" filter plugin: '): ("filter", "preFilter"),
    re.compile(r'\brunning Score plugins: plugin "(?P<plugin>\w+)" failed with: '): ("score", "preScore"),
}
"""kube-scheduler's message when a plugin fails -> the extension point, and the one that should have prepared it."""
_UNREADABLE: Final = 'running PreScore plugin "NodeAffinity": '
_BEFORE_SCORES: Final = ("preFilter", "feasible", "rejected")


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of the verdict on one pod."""

    pod: str
    field: str
    expected: Any
    got: Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pending pods of a scenario."""

    differences: tuple[FieldDifference, ...]
    explained: tuple[str, ...] = ()
    """For each pod with an intended difference: its name in EXPLAINED."""


def compare(scenario: Scenario, expected: list[dict[str, Any]], profiles: dict[str, Framework]) -> Comparison:
    """Decide about every pending pod of a scenario; `expected` are kube-scheduler's verdicts."""
    cluster = Cluster(scenario.config.rules)
    cluster.load(scenario.objects.nodes, scenario.objects.named(), scenario.objects.pods)
    points = {profile.scheduler_name: profile.points for profile in resolve(scenario.config, BUILT_IN_POINTS)}
    found: list[FieldDifference] = []
    explained: list[str] = []
    for pod, recorded in zip(scenario.pending, expected, strict=True):
        deciding, promised = profiles[pod.spec.scheduler_name], pod.status.nominated_node_name
        kind = cluster.class_of(pod)
        decision = decide(deciding, kind, View(cluster), nominated_node=promised)
        got = as_verdict(decision, cluster)
        chosen = cluster.nodes.rows.get(str(recorded.get("chosen", "")))
        devices = _devices(deciding, kind, cluster, chosen)
        got["allocations"] = as_allocations(devices)
        wanted, fields, why = excused(_with_canonical(recorded), points[pod.spec.scheduler_name])
        if why:
            explained.append(why)
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        found.extend(
            FieldDifference(key, field, wanted.get(field), got.get(field))
            for field in fields
            if (wanted.get(field) or None) != (got.get(field) or None)
        )
        for claim in written_claims(devices, pod.metadata):
            cluster.put_object(_named(claim, pod))
        if scenario.sequence and recorded.get("chosen"):
            cluster.add_pod(_bound(pod, str(recorded["chosen"])))
    return Comparison(tuple(found), tuple(explained))


def excused(
    recorded: dict[str, Any], points: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, Any], tuple[str, ...], str]:
    """The expected verdict, the fields to compare, and the name of the intended difference, or an empty text.

    `points` are the plugins that the pod's profile enables at each extension point.
    """
    error = recorded.get("error", "")
    if asked := _unprepared(error, points):
        return recorded, _BEFORE_SCORES if asked == "score" else ("preFilter",), UNPREPARED
    if recorded.get("preemptCode") == "Error" and _unprepared(recorded["preemptMessage"], points):
        return recorded, _BEFORE_SCORES, UNPREPARED
    if error.startswith(_UNREADABLE):
        return recorded, _BEFORE_SCORES, UNREADABLE
    failing = [node for node, refusal in recorded.get("rejected", {}).items() if refusal["code"] == "Error"]
    if not failing:
        return recorded, ("error",) if error else COMPARED, ""
    # The recorded verdict treats that node as refused for good, so the rest can be compared.
    refused = {node: recorded["rejected"][node] | {"code": "UnschedulableAndUnresolvable"} for node in failing}
    return recorded | {"rejected": recorded["rejected"] | refused, "error": ""}, COMPARED, ONE_NODE


def _unprepared(error: str, points: Mapping[str, tuple[str, ...]]) -> str:
    """The extension point where a plugin failed that the profile does not enable for preparation; else empty."""
    for message, (asked, prepared) in _FAILED_AT.items():
        found = message.search(error)
        if found is not None and found["plugin"] in points[asked] and found["plugin"] not in points[prepared]:
            return asked
    return ""


def profiles_of(scenario: Scenario, file: str = "") -> dict[str, Framework]:
    """The profiles of a scenario. Raises InputError if a pending pod has none."""
    try:
        profiles = build_frameworks(scenario.config)
    except ConfigError as error:
        raise ConfigInputError(error.problems, file) from None
    for pod in scenario.pending:
        if pod.spec.scheduler_name not in profiles:
            subject = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
            problem = f'no profile has this name: "{pod.spec.scheduler_name}"'
            raise InputError(problem, file=file, subject=subject, path="spec.schedulerName")
    return profiles


def as_verdict(decision: Decision, cluster: Cluster) -> dict[str, Any]:
    """The decision in the form of the recorded verdicts."""
    names = cluster.nodes.names
    verdict: dict[str, Any] = {}
    filtered, diagnosis = decision.filtered, decision.diagnosis
    if filtered.failed is not None and diagnosis.node_count:
        return {"error": decision.message}
    if diagnosis.turned_away is not None:
        refusal = diagnosis.turned_away.refusal
        verdict["preFilter"] = {
            "plugin": diagnosis.turned_away.plugin,
            "code": refusal.code,
            "reasons": [refusal.text],
        }
    rows = filtered.feasible.nonzero()[0].tolist()
    verdict["feasible"] = [names[row] for row in rows]
    verdict["rejected"] = {
        names[row]: {"plugin": refused.plugin, "code": refused.code, "reasons": sorted(refused.reasons)}
        for row, refused in diagnosis.refusals.items()
    }
    if decision.scored is not None:
        verdict["scores"] = {
            plugin: {names[row]: int(scores[row]) for row in rows}
            for plugin, scores in decision.scored.by_plugin.items()
        }
        verdict["total"] = {names[row]: int(decision.scored.total[row]) for row in rows}
        verdict["best"] = [names[row] for row in decision.best.tolist()]
        verdict["chosen"] = names[decision.best[0]]
        return verdict
    verdict["message"] = decision.message
    if (remedy := decision.post_filter) is not None:
        verdict["nominated"] = names[remedy.node_row] if remedy.node_row is not None else None
        verdict["victims"] = sorted(victim.key for victim in remedy.victims)
        verdict["preemptCode"] = remedy.code
        verdict["preemptMessage"] = remedy.message
    return verdict


def _devices(framework: Framework, kind: PodClass, cluster: Cluster, row: int | None) -> DeviceDecision:
    """The devices that a pod gets on the node where kube-scheduler put it."""
    plugin = next((one for one in framework.profile.filters if isinstance(one, DynamicResources)), None)
    found = None if plugin is None or row is None else decide_devices(plugin, kind, View(cluster), row)
    return NO_DEVICES if found is None else found


def as_allocations(devices: DeviceDecision) -> dict[str, Any]:
    """The pod's claims with their devices, in the form of the recorded verdicts."""
    found = {}
    had = [(claim, claim.status.allocation) for claim in devices.reserved]
    for claim, allocation in (*had, *devices.allocations):
        if allocation is None:
            continue
        name = claim.metadata.name
        listed = []
        for one in allocation.devices.results:
            device: dict[str, Any] = {"request": one.request, "driver": one.driver, "pool": one.pool}
            device["device"] = one.device
            if one.admin_access is not None:
                device["adminAccess"] = one.admin_access
            if one.consumed_capacity:
                device["consumedCapacity"] = _canonical(one.consumed_capacity)
            listed.append(device)
        selector = allocation.node_selector
        nodes = "null" if selector is None else msgspec.json.encode(selector).decode()
        found["extended" if name == IN_MEMORY_NAME else name] = {"devices": listed, "nodes": nodes}
    return found


def _with_canonical(recorded: dict[str, Any]) -> dict[str, Any]:
    """The same verdict, with amounts as Go writes them."""
    if "allocations" not in recorded:
        return recorded
    claims = {}
    for name, claim in recorded["allocations"].items():
        devices = [
            one | {"consumedCapacity": _canonical(one["consumedCapacity"])} if "consumedCapacity" in one else one
            for one in claim.get("devices") or ()
        ]
        claims[name] = {"devices": devices, "nodes": _nodes(claim.get("nodes"))}
    return recorded | {"allocations": claims}


def _canonical(amounts: Mapping[str, Any]) -> dict[str, str]:
    return {name: canonical_quantity(amount) for name, amount in amounts.items()}


def _nodes(text: str | None) -> str:
    """A recorded node selector with its fields in our order."""
    if not text:
        return "null"
    return msgspec.json.encode(msgspec.json.decode(text, type=NodeSelector | None)).decode()


def _named(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """The API server names the claim for extended resources."""
    if claim.metadata.name != IN_MEMORY_NAME:
        return claim
    return replace(claim, metadata=replace(claim.metadata, name=f"{pod.metadata.name}-extended-resources-0"))


def _bound(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node), status=replace(pod.status, phase="Running"))
