"""Pods that ended long ago, and leases of nodes that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from core.reconcile.nodes.cases import T0, node, patched, pod, seen
from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.effects import BURST, DeleteObject
from situate.core.reconcile.nodes.cleanup import PERIOD_MS, clean_up
from situate.core.reconcile.nodes.fencing import KUBERNETES
from situate.core.reconcile.objects import ObjectIndex

T = TypeVar("T")
LATE = T0 + 200 * SECOND


def test_of_pods_that_have_ended_the_oldest_go_when_there_are_too_many() -> None:
    ended = [pod(f"p{at}", phase="Succeeded", created=T0 + at * SECOND) for at in range(5)]
    evicted = pod("thrown-out", phase="Failed", created=T0 + 99 * SECOND, reason="Evicted")
    heartbeats = seen(profile=replace(KUBERNETES, finished_pods=4))
    heartbeats.finished = 6
    outcome = clean_up(ObjectIndex([*ended, evicted, pod("runs")]), heartbeats, LATE)
    assert patched(outcome.effects) == ["DeleteObject thrown-out", "DeleteObject p0"]
    assert all(isinstance(each, DeleteObject) and each.grace_s == 0 for each in outcome.effects)
    assert outcome.requeue_at == LATE + PERIOD_MS


def test_pods_are_not_looked_through_while_there_are_few() -> None:
    class Untouched(ObjectIndex):
        def among(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
            raise AssertionError("looked through")

    assert clean_up(Untouched(), seen(), LATE).effects == ()


def test_a_pod_without_a_node_whose_deletion_was_begun_is_deleted() -> None:
    heartbeats = seen()
    heartbeats.stranded = 1
    held = [pod(f"held{at}", on="", deleted=True, finalizers=("example.com/hold",)) for at in range(BURST)]
    pods = [*held, pod("waits", on=""), pod("marked", on="", deleted=True), pod("stops", deleted=True)]
    (effect,) = clean_up(ObjectIndex(pods), heartbeats, LATE).effects
    assert isinstance(effect, DeleteObject)
    assert (effect.ref.name, effect.grace_s) == ("marked", 0)


def test_a_lease_goes_when_its_node_is_gone_and_nobody_renews_it() -> None:
    heartbeats = seen(node("stays"))
    for name in ("stays", "gone"):
        heartbeats.lease_seen(name, f"uid-{name}", "1", "5", T0)
    objects = ObjectIndex([node("stays")])
    assert clean_up(objects, heartbeats, T0 + 49 * SECOND).effects == ()
    (effect,) = clean_up(objects, heartbeats, T0 + 50 * SECOND).effects
    assert isinstance(effect, DeleteObject)
    assert (effect.ref.namespace, effect.ref.name, effect.resource_version) == ("kube-node-lease", "gone", "5")
    heartbeats.lease_seen("gone", "uid-gone", "2", "6", T0 + 50 * SECOND)
    assert clean_up(objects, heartbeats, T0 + 60 * SECOND).effects == ()


def test_a_lease_that_is_gone_is_forgotten() -> None:
    heartbeats = seen()
    heartbeats.lease_seen("gone", "u", "1", "5", T0)
    heartbeats.lease_gone("gone")
    assert clean_up(ObjectIndex(), heartbeats, LATE).effects == ()
