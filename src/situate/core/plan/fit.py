"""Counts how many more copies of a pod fit: places them one by one until one fits nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from situate.core.model.meta import key_of
from situate.core.model.pod import Pod, PodStatus
from situate.core.place.selecting import NOWHERE
from situate.core.plan.sandbox import Sandbox, recreated

MAX_PODS: Final = 100_000
"""The default maximum number of copies."""
ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class FitResult:
    """How many copies fit and where, and what stops the next one."""

    count: int
    stopped: bool
    """Whether the next one fits nowhere; otherwise the limit was reached."""
    by_node: Mapping[str, int]
    by_zone: Mapping[str, int]
    """Nodes without a zone are under the empty name."""
    message: str
    """kube-scheduler's message for the next one; empty if the limit was reached."""
    evicts: tuple[str, ...] = ()
    """The pods that the next one would preempt."""
    node: str = ""
    """Its node after the preemption."""


def fit(sandbox: Sandbox, pod: Pod, most: int = MAX_PODS) -> FitResult:
    """Place copies of a pod in a sandbox until the next one fits nowhere. They stay there."""
    copy = replace(recreated(pod), status=PodStatus())
    by_node: dict[str, int] = {}
    count = number = 0
    while count < most:
        number += 1
        name = f"{pod.metadata.name}-{number}"
        one = replace(copy, metadata=replace(copy.metadata, name=name, uid=f"{pod.metadata.uid}-{number}"))
        if key_of(one.metadata) in sandbox.pods:
            continue
        one = sandbox.with_claims(one, pod)
        row = sandbox.choose(one)
        if row == NOWHERE:
            return _result(sandbox, one, count, by_node)
        sandbox.bind(one, row)
        count += 1
        by_node[sandbox.name(row)] = by_node.get(sandbox.name(row), 0) + 1
    return FitResult(count, False, by_node, _by_zone(sandbox, by_node), "")


def _result(sandbox: Sandbox, pod: Pod, count: int, by_node: Mapping[str, int]) -> FitResult:
    decision = sandbox.decide(pod)
    remedy = decision.post_filter
    evicts = () if remedy is None else tuple(victim.key for victim in remedy.victims)
    node = "" if remedy is None or remedy.node_row is None else sandbox.name(remedy.node_row)
    return FitResult(count, True, by_node, _by_zone(sandbox, by_node), decision.message, evicts, node)


def _by_zone(sandbox: Sandbox, by_node: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, count in by_node.items():
        zone = sandbox.node(name).metadata.labels.get(ZONE, "")
        found[zone] = found.get(zone, 0) + count
    return found
