"""Data derived from the load of each row: computed once, then updated for each row where a pod came or went."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from situate.core.state.cluster import Cluster, Follower
from situate.core.state.view import LOAD, View

A = TypeVar("A", bound=Hashable)
F = TypeVar("F", bound=Follower)

FEW_TOUCHED: Final = 64
"""Followers are updated for up to this many touched rows, or a sixteenth of all; beyond that, they are rebuilt."""


def following(view: View, make: Callable[[View, A], F], about: A) -> F:
    """The follower of a plain view that `make` makes, up to date."""
    view.reads |= LOAD
    cluster = view.cluster
    position = cluster.touched_base + len(cluster.touched)
    if cluster.followed != position:
        _catch_up(cluster, position)
    key = (make, about)
    found: F | None = cluster.followers.get(key)  # type: ignore[assignment]
    if found is None:
        cluster.followers[key] = found = make(View(cluster), about)
    return found


def _catch_up(cluster: Cluster, position: int) -> None:
    behind = position - cluster.followed
    if behind > len(cluster.touched) or behind > max(FEW_TOUCHED, cluster.nodes.size // 16):
        cluster.followers.clear()  # it is cheaper to compute all rows, or not known which were touched
    else:
        rows = cluster.touched[-behind:]
        followers = cluster.followers.values()
        for row in dict.fromkeys(rows) if behind > 1 else rows:
            for follower in followers:
                follower.update(row)
    cluster.followed = position
