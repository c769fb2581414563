"""What losing a part of a cluster would do: the nodes are gone, their pods look for others, and who finds none is told.

Each loss is tried by itself, on the cluster as it is, and undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.plan.ground import Ground
from situate.core.plan.movable import FORCED, Fate, Rules, node_own
from situate.core.plan.settling import Settled, Settling

NODE: Final = "node"
"""Each node is a domain by itself; any other word is the key of a label."""
_RULES: Final = Rules(force=True, delete_emptydir_data=True)


@dataclass(frozen=True, slots=True)
class Loss:
    """One domain, and what its loss would do."""

    by: str
    domain: str
    nodes: tuple[str, ...]
    moved: tuple[Settled, ...]
    """The pods that find a node elsewhere, those driven out by others among them."""
    lost: tuple[Settled, ...]
    """The pods that do not."""


def domains(ground: Ground, by: str) -> dict[str, list[str]]:
    """The domains of a kind, in order of their names, and the nodes of each."""
    if by == NODE:
        return {node.metadata.name: [node.metadata.name] for node in ground.nodes()}
    found: dict[str, list[str]] = {}
    for node in ground.nodes():
        value = node.metadata.labels.get(by)
        if value is not None:
            found.setdefault(value, []).append(node.metadata.name)
    return dict(sorted(found.items()))


def losses(ground: Ground, by: str, *, nodes_stay: bool = False) -> Iterator[Loss]:
    """Lose each domain of a kind in turn.

    `nodes_stay`: the nodes stay registered and take nobody, as they do until somebody deletes them; then spread
    constraints still count their domains.
    """
    for domain, nodes in domains(ground, by).items():
        yield lose(ground, by, domain, nodes, nodes_stay=nodes_stay)


def lose(ground: Ground, by: str, domain: str, nodes: Sequence[str], *, nodes_stay: bool = False) -> Loss:
    """Lose these nodes together."""
    mark = ground.mark()
    try:
        gone = [ground.pods[key] for name in nodes for key in ground.on(name)]
        # The last row first: rows are used again lowest first, so that undone, all nodes are where they were.
        for name in sorted(nodes, key=ground.row, reverse=True):
            if nodes_stay:
                for key in ground.on(name):
                    ground.take(key)
                ground.cordon(name)
            else:
                ground.remove(name)
        told = _settled(ground, [pod for pod in gone if node_own(pod) is None])
    finally:
        ground.back_to(mark)
    moved = tuple(one for one in told if one.node)
    return Loss(by, domain, tuple(nodes), moved, tuple(one for one in told if not one.node))


def _settled(ground: Ground, pods: Sequence[Pod]) -> list[Settled]:
    coming = [pod for pod in pods if _RULES.judge(pod).fate is Fate.MOVES]
    ended = [pod for pod in pods if _RULES.judge(pod).fate is Fate.ENDS]
    told = Settling(ground).settle(coming) if coming else []
    return told + [Settled(key_of(pod.metadata), pod.spec.node_name, message=FORCED.why) for pod in ended]
