"""Which member owns a pod: rendezvous hashing. Members that know the same membership agree.

Each member has a number for each key, and the highest owns the key. When a member leaves, only its keys move, each to
the next number; when one joins, it takes the same share from each of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from math import log
from typing import Final

from situate.core.gang.naming import gang_of
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod

_BITS: Final = 64


def number(one: str, key: str) -> int:
    """The same on every machine and in every process."""
    return int.from_bytes(blake2b(f"{one}\0{key}".encode(), digest_size=_BITS // 8).digest(), "big")


def ranked(key: str, names: Iterable[str]) -> list[str]:
    """The members in the order in which they own a key: the owner, who would be without it, and so on."""
    return sorted(names, key=lambda name: (-number(name, key), name))


def weighed(key: str, weights: Mapping[str, int]) -> list[str]:
    """The same, where each is first in proportion to its weight."""

    def worth(name: str) -> float:
        share = (number(name, key) + 1) / ((1 << _BITS) + 1)  # never 0, never 1
        return -max(weights[name], 1) / log(share)

    return sorted(weights, key=lambda name: (-worth(name), name))


def key_of(pod: Pod) -> str:
    """Pods with the same key have the same owner.

    A gang is decided as a whole. Pods of one workload with rules about other pods mostly have rules about each other,
    and two members that place two of them at once would not see that they are too near.
    """
    gang = gang_of(pod)
    if gang is not None:
        return f"gang {gang.id}"
    owner = controller_of(pod.metadata)
    if owner is not None and _has_rules(pod):
        return f"owner {owner.uid}"
    return pod.metadata.uid or f"{pod.metadata.namespace}/{pod.metadata.name}"


def _has_rules(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    near = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    return near or bool(pod.spec.topology_spread_constraints)


def pools_dealt(pools: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The owners of each pool. Pools are spread evenly, and every member has at least one: if there are more members
    than pools, several share one."""
    if not pools or not names:
        return dict.fromkeys(pools, ())
    if len(pools) >= len(names):
        return {pool: (name,) for pool, name in _dealt(pools, names).items()}
    dealt = _dealt(names, pools)
    return {pool: tuple(sorted(name for name in names if dealt[name] == pool)) for pool in pools}


def _dealt(cards: Sequence[str], hands: Sequence[str]) -> dict[str, str]:
    """Deal each card to the hand that ranks first for it and is not full. Hands fill evenly."""
    found: dict[str, str] = {}
    least, extra = divmod(len(cards), len(hands))
    held = dict.fromkeys(sorted(hands), 0)
    for card in sorted(cards):
        for hand in ranked(card, held):
            if held[hand] < least or (held[hand] == least and extra):
                extra -= held[hand] == least
                held[hand] += 1
                found[card] = hand
                break
    return found
