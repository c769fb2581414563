"""Kept answers of the policies are those of asking afresh, whatever comes and goes meanwhile."""

from __future__ import annotations

import random

import numpy as np
import pytest

from builders import node, pod
from situate.core.engine.framework import default_framework
from situate.core.model.latency import LatencyTable, PlaceLatencies
from situate.core.model.meta import ObjectMeta
from situate.core.place.filtering import run_filters
from situate.core.place.profile import Profile, Weighted
from situate.core.place.scoring import totals
from situate.core.place.verdict_cache import VerdictCache
from situate.core.plugins.bin_pack import BinPack
from situate.core.plugins.cost import Cost
from situate.core.plugins.latency import ZONE, Latency
from situate.core.plugins.support.prices import PriceList
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

PRICE = "example.com/price"


def table(rng: random.Random) -> LatencyTable:
    zones = {zone: rng.randrange(50) for zone in "abc" if rng.random() < 0.8}
    return LatencyTable(metadata=ObjectMeta(name="t"), places={"eu": PlaceLatencies(zones=zones)})


def fresh(cluster: Cluster, profile: Profile, kind: object) -> list[int]:
    view = View(cluster)
    feasible = run_filters(profile, kind, view).feasible  # type: ignore[arg-type]
    if not feasible.any():
        return [-1] * cluster.nodes.size
    found: list[int] = np.where(feasible, totals(profile, kind, view, feasible), -1).tolist()  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_is_what_would_be_said_afresh(seed: int) -> None:
    rng = random.Random(seed)
    cluster = Cluster()
    for at in range(6):
        labels = {ZONE: rng.choice("abc"), PRICE: f"{rng.randrange(1, 99)}"}
        cluster.add_node(node(f"n{at}", labels=labels, cpu=f"{rng.randrange(2, 9)}", memory="16Gi", pods="8"))
    latency = Latency("t", {"eu": PlaceLatencies(zones={"a": 5, "b": 30})})
    scorers = (Weighted(BinPack(), 2), Weighted(Cost(PriceList(label=PRICE)), 3), Weighted(latency, 5))
    profile = Profile("s", (*default_framework().profile.filters, latency), scorers)
    notes = {"situate.dev/latency-to": "eu", "situate.dev/latency-limit-ms": "20"}
    kinds = [cluster.class_of(pod("w", cpu="1", annotations=notes)), cluster.class_of(pod("v", cpu="2"))]
    standings = [VerdictCache(cluster, profile, kind) for kind in kinds]
    bound: list[str] = []
    for step in range(60):
        chance = rng.random()
        if chance < 0.55:
            cluster.add_pod(pod(f"p{step}", node_name=f"n{rng.randrange(6)}", cpu="500m", memory="1Gi"))
            bound.append(f"default/p{step}")
        elif chance < 0.8 and bound:
            cluster.remove_pod(bound.pop(rng.randrange(len(bound))))
        elif chance < 0.9:
            cluster.put_object(table(rng))
        else:
            cluster.add_node(node("n0", labels={ZONE: rng.choice("abc")}, cpu="4", memory="16Gi", pods="8"))
        for standing, kind in zip(standings, kinds, strict=True):
            standing.refresh()
            kept = np.where(standing.feasible, standing.total, -1).tolist()
            assert kept == fresh(cluster, profile, kind), step
