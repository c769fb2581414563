"""Simulates the loss of a part of a cluster: removes its nodes and reschedules their pods.

Each loss is tried separately and rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.plan.eviction_rules import FORCED, DrainRules, EvictionOutcome, node_pod_verdict
from situate.core.plan.rescheduling import Rescheduled, Rescheduler
from situate.core.plan.sandbox import Sandbox

NODE: Final = "node"
"""Each node is its own domain; any other value is a label key."""
_RULES: Final = DrainRules(force=True, delete_emptydir_data=True)


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of one domain."""

    by: str
    domain: str
    nodes: tuple[str, ...]
    moved: tuple[Rescheduled, ...]
    """The pods that find another node, including preempted ones."""
    lost: tuple[Rescheduled, ...]
    """The pods that find none."""


def domains(sandbox: Sandbox, by: str) -> dict[str, list[str]]:
    """The domains by name, sorted, and the nodes of each."""
    if by == NODE:
        return {node.metadata.name: [node.metadata.name] for node in sandbox.nodes()}
    found: dict[str, list[str]] = {}
    for node in sandbox.nodes():
        value = node.metadata.labels.get(by)
        if value is not None:
            found.setdefault(value, []).append(node.metadata.name)
    return dict(sorted(found.items()))


def losses(sandbox: Sandbox, by: str, *, nodes_stay: bool = False) -> Iterator[Loss]:
    """Lose each domain in turn.

    `nodes_stay`: the Node objects stay, unschedulable, as until they are deleted; spread constraints still count their
    domains.
    """
    for domain, nodes in domains(sandbox, by).items():
        yield lose(sandbox, by, domain, nodes, nodes_stay=nodes_stay)


def lose(sandbox: Sandbox, by: str, domain: str, nodes: Sequence[str], *, nodes_stay: bool = False) -> Loss:
    """Lose these nodes together."""
    mark = sandbox.savepoint()
    try:
        gone = [sandbox.pods[key] for name in nodes for key in sandbox.pods_on(name)]
        # Last row first: rows are reused lowest first, so the rollback restores every node to its row.
        for name in sorted(nodes, key=sandbox.row, reverse=True):
            if nodes_stay:
                for key in sandbox.pods_on(name):
                    sandbox.evict(key)
                sandbox.cordon(name)
            else:
                sandbox.remove(name)
        rescheduled = _rescheduled(sandbox, [pod for pod in gone if node_pod_verdict(pod) is None])
    finally:
        sandbox.rollback(mark)
    moved = tuple(one for one in rescheduled if one.node)
    return Loss(by, domain, tuple(nodes), moved, tuple(one for one in rescheduled if not one.node))


def _rescheduled(sandbox: Sandbox, pods: Sequence[Pod]) -> list[Rescheduled]:
    coming = [pod for pod in pods if _RULES.judge(pod).outcome is EvictionOutcome.MOVES]
    ended = [pod for pod in pods if _RULES.judge(pod).outcome is EvictionOutcome.ENDS]
    rescheduled = Rescheduler(sandbox).reschedule(coming) if coming else []
    return rescheduled + [Rescheduled(key_of(pod.metadata), pod.spec.node_name, message=FORCED.why) for pod in ended]
