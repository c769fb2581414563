"""Devices in the engine: no device is given twice, whatever order claims, answers and failures come in."""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from device_builders import claim, device, device_class, exactly, node, owned_by, pod_with, slice_of
from situate.core.changes import (
    BindDone,
    Change,
    ClaimsBound,
    ClaimsFailed,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    Paused,
    PodGone,
    PodSeen,
)
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, BindClaims, Effect, ReleaseClaim, UnreserveClaims
from situate.core.engine.engine import Engine
from situate.core.model.devices import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourceSlice,
)
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import Container, Pod, PodSpec, ResourceRequirements
from situate.core.model.refs import PodRef
from situate.core.queue.queued_pod import QueueState

T = TypeVar("T")


def engine(*changes: Change) -> Engine:
    made = Engine(default_configuration())
    made.step(0, [ObjectSeen(device_class()), *changes])
    return made


def of_kind(effects: list[Effect], kind: type[T]) -> list[T]:
    return [one for one in effects if isinstance(one, kind)]


def pod_and_claim(name: str, count: int = 1) -> list[Change]:
    own = claim(f"{name}-c", exactly(count=count), ownerReferences=owned_by(name))
    return [ObjectSeen(own), PodSeen(pod_with(name, f"{name}-c", generated=True))]


def test_devices_are_written_before_the_bind() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    effects = one.step(1, pod_and_claim("p"))
    [ask] = of_kind(effects, BindClaims)
    assert [(c.name, c.allocation is not None) for c in ask.claims] == [("p-c", True)]
    assert not of_kind(effects, Bind)
    assert of_kind(one.step(2, [ClaimsBound(ask.pod, ask.attempt)]), Bind)


def test_the_next_pod_gets_other_devices_before_anything_is_written() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"), device("h"))))
    asks = of_kind(one.step(1, pod_and_claim("p") + pod_and_claim("q") + pod_and_claim("x")), BindClaims)
    assert [a.claims[0].allocation.devices.results[0].device for a in asks] == ["g", "h"]  # type: ignore[union-attr]


def test_a_failure_gives_the_devices_to_the_next_pod() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    effects = one.step(1, pod_and_claim("p") + pod_and_claim("q"))
    [ask] = of_kind(effects, BindClaims)
    effects = one.step(2, [ClaimsFailed(ask.pod, ask.attempt, "conflict")])
    assert of_kind(effects, UnreserveClaims) == [UnreserveClaims(ask.pod, ("p-c",))]
    effects += one.step(20_000, [])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] in (["q"], ["p"])


def test_a_claim_is_shared_once_its_devices_are_written() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    shared: list[Change] = [ObjectSeen(claim("c", exactly())), PodSeen(pod_with("p", "c")), PodSeen(pod_with("q", "c"))]
    effects = one.step(1, shared)
    [ask] = of_kind(effects, BindClaims)
    effects = one.step(2, [ClaimsBound(ask.pod, ask.attempt)])
    effects += one.step(20_000, [])
    [second] = of_kind(effects, BindClaims)
    assert [(c.name, c.allocation) for c in second.claims] == [("c", None)]


def written(ask: BindClaims, known: ResourceClaim, version: int) -> ResourceClaim:
    """A claim as it is once its devices are written."""
    [wanted] = ask.claims
    status = ResourceClaimStatus(
        allocation=wanted.allocation,
        reserved_for=(ResourceClaimConsumerReference(resource="pods", name=ask.pod.name, uid=ask.pod.uid),),
    )
    return replace(known, metadata=replace(known.metadata, resource_version=str(version)), status=status)


def one_claim(one: Engine, version: int = 3) -> tuple[BindClaims, ResourceClaim, ResourceClaim]:
    """A pod whose devices are being written: the effect, its claim before, and after."""
    changes = pod_and_claim("p")
    known: ResourceClaim = changes[0].item  # type: ignore[union-attr, assignment]
    known = replace(known, metadata=replace(known.metadata, resource_version=str(version)))
    [ask] = of_kind(one.step(1, [ObjectSeen(known), changes[1]]), BindClaims)
    return ask, known, written(ask, known, version + 2)


def test_devices_that_were_written_stay_taken_though_no_watch_has_shown_it() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    ask, known, after = one_claim(one)
    effects = one.step(2, [ClaimsFailed(ask.pod, ask.attempt, "not ready", (after,)), *pod_and_claim("q")])
    older = replace(known, metadata=replace(known.metadata, resource_version="4"))
    effects += one.step(3, [ObjectSeen(older)])  # the watch is behind
    effects += one.step(4, [PodGone(ask.pod)])
    effects += one.step(20_000, [])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] == []
    cleared = replace(known, metadata=replace(known.metadata, resource_version="6"))
    effects = one.step(21_000, [ObjectSeen(cleared)]) + one.step(40_000, [])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] == ["q"]


@pytest.mark.parametrize("late", [ClaimsBound, ClaimsFailed])
def test_an_answer_that_is_older_than_what_was_seen_takes_no_devices(late: type[ClaimsBound | ClaimsFailed]) -> None:
    """The claim was written, used, and given back or deleted before the answer came."""
    for gone in (False, True):
        one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
        ask, known, after = one_claim(one)
        cleared = replace(known, metadata=replace(known.metadata, resource_version="9"))
        last: Change = ObjectGone(after) if gone else ObjectSeen(cleared)
        one.step(2, [ObjectSeen(after), last, PodGone(ask.pod)])
        answer = (
            ClaimsBound(ask.pod, ask.attempt, (after,))
            if late is ClaimsBound
            else ClaimsFailed(ask.pod, ask.attempt, "lost", (after,))
        )
        effects = one.step(3, [answer, *pod_and_claim("q")]) + one.step(20_000, [])
        assert [again.pod.name for again in of_kind(effects, BindClaims)] == ["q"]


def test_pods_with_an_extended_resource_each_get_their_own_claim() -> None:
    served = device_class(extendedResourceName="example.com/gpu")
    room: list[Change] = [NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"), device("h"), device("i")))]
    one = engine(ObjectSeen(served), *room)
    pods = [PodSeen(extended_pod(name)) for name in ("p", "q")]
    asks = of_kind(one.step(1, pods), BindClaims)
    assert [ask.pod.name for ask in asks] == ["p", "q"]
    assert all(ask.create is not None for ask in asks)
    made = [created(ask, 5) for ask in asks]
    answers: list[Change] = [ClaimsBound(ask.pod, ask.attempt, (claim,)) for ask, claim in zip(asks, made, strict=True)]
    assert len(of_kind(one.step(2, answers), Bind)) == 2
    effects = one.step(3, [PodSeen(extended_pod("x")), PodSeen(extended_pod("y"))]) + one.step(20_000, [])
    assert [ask.pod.name for ask in of_kind(effects, BindClaims)] == ["x"], "one device is left"


def test_a_class_that_comes_later_serves_the_pods_that_wait() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"), device("h"))))
    effects = one.step(1, [PodSeen(extended_pod(name)) for name in ("p", "q")])
    assert not of_kind(effects, BindClaims)
    effects = one.step(2, [ObjectSeen(device_class(extendedResourceName="example.com/gpu"))]) + one.step(20_000, [])
    assert sorted(ask.pod.name for ask in of_kind(effects, BindClaims)) == ["p", "q"]


def test_a_claim_that_an_earlier_scheduler_left_for_one_pod_is_deleted_and_others_are_not_held_up() -> None:
    served = ObjectSeen(device_class(extendedResourceName="example.com/gpu"))
    room: list[Change] = [NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"), device("h")))]
    before = engine(served, *room)
    [ask] = of_kind(before.step(1, [PodSeen(extended_pod("p"))]), BindClaims)
    left = created(ask, 5)
    one = engine(served, *room, ObjectSeen(left))
    effects = one.step(1, [PodSeen(extended_pod("q")), PodSeen(extended_pod("p"))])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] == ["q"]
    [release] = of_kind(effects, ReleaseClaim)
    assert (release.pod.name, release.claim, release.delete) == ("p", left.metadata.name, True)
    effects = one.step(2, [ObjectGone(left)]) + one.step(20_000, [])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] == ["p"]


def test_a_class_that_goes_lets_a_device_plugin_serve_a_pod_whose_earlier_claim_was_in_the_way() -> None:
    """Kubernetes has no hint for this, and finds out after five minutes."""
    served = ObjectSeen(device_class(extendedResourceName="example.com/gpu"))
    slices: list[Change] = [NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g")))]
    [ask] = of_kind(engine(served, *slices).step(1, [PodSeen(extended_pod("p"))]), BindClaims)
    plugin = NodeSeen(node("n2", **{"example.com/gpu": "1"}))
    one = engine(served, plugin, ObjectSeen(device_class("other")), ObjectSeen(created(ask, 5)))
    assert of_kind(one.step(1, [PodSeen(extended_pod("p"))]), ReleaseClaim), "the answer never comes"
    entry = one.queue.get("default/p")
    assert entry is not None
    one.step(20_000, [ObjectGone(device_class("other"))])
    assert (entry.state, entry.attempts) == (QueueState.UNSCHEDULABLE, 1)
    [bind] = of_kind(one.step(20_001, [ObjectGone(device_class(extendedResourceName="example.com/gpu"))]), Bind)
    assert bind.node == "n2"


def test_of_two_claims_that_were_left_for_one_pod_both_are_deleted() -> None:
    """A scheduler was killed after its request was sent; the next one made a claim, too, and failed."""
    served = ObjectSeen(device_class(extendedResourceName="example.com/gpu"))
    room: list[Change] = [NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g")))]
    [ask] = of_kind(engine(served, *room).step(1, [PodSeen(extended_pod("p"))]), BindClaims)
    newer = created(ask, 6)
    meta = replace(newer.metadata, name="p-extended-resources-y", resource_version="5")
    older = replace(newer, metadata=meta, status=ResourceClaimStatus())
    one = engine(served, *room, ObjectSeen(older), ObjectSeen(newer))
    one.step(1, [PodSeen(extended_pod("p"))])
    effects = one.step(2, [ObjectGone(newer)]) + one.step(20_000, [])
    assert [release.claim for release in of_kind(effects, ReleaseClaim)] == [older.metadata.name]
    effects = one.step(20_001, [ObjectGone(older)]) + one.step(40_000, [])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] == ["p"]


@pytest.mark.parametrize("by", ["us", "another scheduler"])
def test_a_pod_for_all_devices_that_are_not_used_up_is_woken_when_a_share_is_taken(by: str) -> None:
    """The device of which it gets a share itself counts no longer among those of which it must have everything."""
    memory = {"memory": {"value": "2"}}
    shared = [device(name, allowMultipleAllocations=True, capacity=memory) for name in ("g", "h")]
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", *shared)))
    share = exactly(capacity={"requests": {"memory": "1"}})
    own = [ObjectSeen(claim("p-share", share)), ObjectSeen(claim("p-all", exactly(count=0, allocationMode="All")))]
    assert not of_kind(one.step(1, [*own, PodSeen(pod_with("p", "p-share", "p-all"))]), BindClaims)
    theirs, user = ObjectSeen(claim("q-c", share)), PodSeen(pod_with("q", "q-c"))
    if by == "us":
        effects = one.step(2, [theirs, user])
    else:
        elsewhere = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", *shared)))
        [ask] = of_kind(elsewhere.step(1, [theirs, user]), BindClaims)
        one.step(2, [theirs])
        effects = one.step(3, [ObjectSeen(written(ask, claim("q-c", share), 9))])
    effects += one.step(20_000, [])
    assert [ask.pod.name for ask in of_kind(effects, BindClaims)] == (["q", "p"] if by == "us" else ["p"])


NEWER = slice_of("n1", device("new"), name="new", pool="b", generation=2, count=2)
OLDER = slice_of("n1", device("h"), name="old", pool="b")
TWINS = [slice_of("n1", device("h"), name=name, pool="b", count=2) for name in ("one", "other")]
USED = slice_of("n1", device("g"), name="used", pool="a")


@pytest.mark.parametrize(
    "gone, stay, asks, tries",
    [
        pytest.param(NEWER, OLDER, exactly(), True, id="the older generation counts again"),
        pytest.param(TWINS[0], TWINS[1], exactly(), False, id="the pool is incomplete now"),
        pytest.param(USED, OLDER, exactly(count=2), False, id="fewer devices"),
        pytest.param(USED, OLDER, exactly(count=0, allocationMode="All"), True, id="all devices are free now"),
    ],
)
def test_a_slice_that_goes(gone: ResourceSlice, stay: ResourceSlice, asks: dict[str, Any], tries: bool) -> None:
    """Kubernetes has no hint for this, and finds out after five minutes."""
    other, theirs = ObjectSeen(claim("c", exactly())), PodSeen(pod_with("q", "c"))
    elsewhere = engine(NodeSeen(node("n1")), ObjectSeen(USED))
    [ask] = of_kind(elsewhere.step(1, [other, theirs]), BindClaims)
    taken = ObjectSeen(written(ask, claim("c", exactly()), 9))
    one = engine(NodeSeen(node("n1")), ObjectSeen(gone), ObjectSeen(stay), taken)
    one.step(1, [ObjectSeen(claim("p-c", asks)), PodSeen(pod_with("p", "p-c"))])
    entry = one.queue.get("default/p")
    assert entry is not None
    assert (entry.state, entry.attempts) == (QueueState.UNSCHEDULABLE, 1)
    effects = one.step(20_000, [ObjectGone(gone)])
    assert [ask.pod.name for ask in of_kind(effects, BindClaims)] == (["p"] if tries else [])


def test_a_claim_that_replaces_one_that_could_not_be_served_wakes_its_pods() -> None:
    """It was deleted and made anew while no watch showed that."""
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    one.step(1, [ObjectSeen(claim("c", exactly(count=2), uid="before")), PodSeen(pod_with("p", "c"))])
    effects = one.step(2, [ObjectSeen(claim("c", exactly(), uid="after"))]) + one.step(20_000, [])
    assert [ask.pod.name for ask in of_kind(effects, BindClaims)] == ["p"]


def test_pods_that_share_a_claim_are_not_tried_again_before_its_devices_are_written() -> None:
    shared = device("g", allowMultipleAllocations=True, capacity={"memory": {"value": "2"}})
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", shared)))
    claims = [ObjectSeen(claim("c", exactly())), ObjectSeen(claim("large", exactly(count=5)))]
    one.step(1, [*claims, PodSeen(pod_with("q", "c", "large"))])
    [ask] = of_kind(one.step(2, [PodSeen(pod_with("p", "c"))]), BindClaims)
    waiting = one.queue.get("default/q")
    assert waiting is not None
    assert (waiting.state, waiting.attempts) == (QueueState.UNSCHEDULABLE, 1)
    one.step(3, [ClaimsBound(ask.pod, ask.attempt)])
    assert (waiting.state, waiting.attempts) == (QueueState.UNSCHEDULABLE, 2)


def test_a_late_answer_shares_no_claim_whose_devices_are_on_their_way_to_another_pod() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    known = claim("c", exactly())
    [first] = of_kind(one.step(1, [ObjectSeen(known), PodSeen(pod_with("p", "c"))]), BindClaims)
    cleared = replace(known, metadata=replace(known.metadata, resource_version="9"))
    seen = [ObjectSeen(written(first, known, 5)), ObjectSeen(cleared)]
    [second] = of_kind(one.step(2, [*seen, PodSeen(pod_with("q", "c")), PodSeen(pod_with("r", "c"))]), BindClaims)
    assert second.pod.name == "q"
    late = one.step(3, [ClaimsBound(first.pod, first.attempt)]) + one.step(20_000, [])
    assert not of_kind(late, BindClaims)
    effects = one.step(20_001, [ClaimsBound(second.pod, second.attempt)]) + one.step(40_000, [])
    assert [(ask.pod.name, ask.claims[0].allocation) for ask in of_kind(effects, BindClaims)] == [("r", None)]


def test_a_claim_that_another_scheduler_gives_other_devices_frees_those_that_we_chose() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    _, known, _ = one_claim(one)
    elsewhere = engine(NodeSeen(node("n2")), ObjectSeen(slice_of("n2", device("h"))))
    _, _, theirs = one_claim(elsewhere)
    assert not of_kind(one.step(2, pod_and_claim("q")), BindClaims)
    meta = replace(known.metadata, resource_version="9")
    effects = one.step(3, [ObjectSeen(replace(theirs, metadata=meta))]) + one.step(20_000, [])
    assert [ask.pod.name for ask in of_kind(effects, BindClaims)] == ["q"]


def test_a_claim_that_another_scheduler_made_for_extended_resources_does_not_free_what_we_chose() -> None:
    served = ObjectSeen(device_class(extendedResourceName="example.com/gpu"))
    one = engine(served, NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    elsewhere = engine(served, NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("h"))))
    [ask] = of_kind(one.step(1, [PodSeen(extended_pod("p"))]), BindClaims)
    [asked] = of_kind(elsewhere.step(1, [PodSeen(extended_pod("p"))]), BindClaims)
    effects = one.step(2, [ObjectSeen(created(asked, 5)), PodSeen(extended_pod("q"))]) + one.step(20_000, [])
    assert not of_kind(effects, BindClaims), "g may be written for p at any moment"
    pod = extended_pod("p")
    one.step(20_001, [PodSeen(replace(pod, spec=replace(pod.spec, node_name="n1")))])
    effects = one.step(20_002, [ClaimsFailed(ask.pod, ask.attempt, "the pod has a node")]) + one.step(40_000, [])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] == ["q"]


def test_devices_on_their_way_to_a_pod_stay_taken_when_another_pod_of_its_name_gets_some() -> None:
    served = ObjectSeen(device_class(extendedResourceName="example.com/gpu"))
    one = engine(served, NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"), device("h"))))
    [first] = of_kind(one.step(1, [PodSeen(extended_pod("p"))]), BindClaims)
    pod = extended_pod("p")
    again = replace(pod, metadata=replace(pod.metadata, uid="uid-p-again"))
    [second] = of_kind(one.step(2, [PodGone(first.pod), PodSeen(again)]), BindClaims)
    assert second.pod.uid == "uid-p-again"
    effects = one.step(3, [PodSeen(extended_pod("q"))]) + one.step(20_000, [])
    assert not of_kind(effects, BindClaims), "one device may be written for either pod at any moment"
    effects = one.step(20_001, [ClaimsFailed(first.pod, first.attempt, "the pod is gone")]) + one.step(40_000, [])
    assert [ask.pod.name for ask in of_kind(effects, BindClaims)] == ["q"]


def extended_pod(name: str) -> Pod:
    asked = ResourceRequirements(requests={"example.com/gpu": "1"})
    spec = PodSpec(scheduler_name="default-scheduler", containers=(Container(name="c", resources=asked),))
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"), spec=spec)


def created(ask: BindClaims, version: int) -> ResourceClaim:
    """The claim that was made for a pod's extended resources."""
    assert ask.create is not None
    made = claim(
        f"{ask.pod.name}-extended-resources-x",
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        ownerReferences=owned_by(ask.pod.name),
        resourceVersion=str(version),
    )
    return replace(made, status=ResourceClaimStatus(allocation=ask.create.allocation))


def test_a_pod_whose_claim_is_missing_waits_outside_the_queue_and_nobody_is_told() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    assert one.step(1, [PodSeen(pod_with("p", "c"))]) == []
    entry = one.queue.get("default/p")
    assert entry is not None
    assert (entry.state, entry.attempts) == (QueueState.GATED, 0)
    assert one.step(2, [ObjectSeen(claim("other", exactly()))]) == []
    assert of_kind(one.step(3, [ObjectSeen(claim("c", exactly()))]), BindClaims)


def test_a_pod_whose_claim_goes_while_it_waits_is_not_tried_again() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(claim("c", exactly())))
    one.step(1, [PodSeen(pod_with("p", "c"))])
    entry = one.queue.get("default/p")
    assert entry is not None
    assert (entry.state, entry.attempts) == (QueueState.UNSCHEDULABLE, 1)
    one.step(2, [ObjectGone(claim("c", exactly()))])
    assert one.step(20_000, [ObjectSeen(slice_of("n1", device("g")))]) == []
    assert (entry.state, entry.attempts) == (QueueState.GATED, 1)
    assert of_kind(one.step(20_001, [ObjectSeen(claim("c", exactly()))]), BindClaims)


def test_a_pod_that_waits_for_a_claim_may_go() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    one.step(1, [PodSeen(pod_with("p", "c"))])
    one.step(2, [PodGone(PodRef("default", "p", "uid-p"))])
    assert one.queue.awaiting_claims.of(("default", "c")) == []
    assert one.step(3, [ObjectSeen(claim("c", exactly()))]) == []


@pytest.mark.parametrize("seed", range(12))
def test_no_device_is_given_twice(seed: int) -> None:
    """Random pods, answers, failures and deletions against a store of claims, seen late."""
    rng = Random(seed)
    one = engine(
        *(NodeSeen(node(f"n{at}")) for at in range(3)),
        *(ObjectSeen(slice_of(f"n{at}", *(device(f"g{k}") for k in range(3)))) for at in range(3)),
    )
    store: dict[str, ResourceClaim] = {}
    asked: list[BindClaims | Bind] = []
    alive: dict[str, bool] = {}
    now = 1
    for number in range(60):
        changes: list[Change] = []
        if rng.random() < 0.6:
            name = f"p{number}"
            changes += pod_and_claim(name, rng.randint(1, 2))
            store[f"{name}-c"] = changes[0].item  # type: ignore[union-attr, assignment]
            alive[name] = True
        for ask in [ask for ask in asked if rng.random() < 0.6]:
            asked.remove(ask)
            if not alive.get(ask.pod.name):
                continue
            if isinstance(ask, Bind):
                changes.append(BindDone(ask.pod, ask.attempt))
            elif rng.random() < 0.3:
                changes.append(ClaimsFailed(ask.pod, ask.attempt, "conflict"))
            else:
                for wanted in ask.claims:
                    status = ResourceClaimStatus(allocation=wanted.allocation or store[wanted.name].status.allocation)
                    store[wanted.name] = replace(store[wanted.name], status=status)
                    assert_no_device_twice(store)
                    if rng.random() < 0.7:
                        changes.append(ObjectSeen(store[wanted.name]))
                changes.append(ClaimsBound(ask.pod, ask.attempt))
        if rng.random() < 0.2 and (living := [name for name, lives in alive.items() if lives]):
            name = rng.choice(living)
            alive[name] = False
            changes.append(PodGone(PodRef("default", name, f"uid-{name}")))
            store[f"{name}-c"] = replace(store[f"{name}-c"], status=ResourceClaimStatus())
            changes.append(ObjectSeen(store[f"{name}-c"]))
        now += rng.choice((1, 2_000))
        asked += [e for e in one.step(now, changes) if isinstance(e, BindClaims | Bind)]
        assert_no_device_twice({f"{a}/{b}": found for (a, b), found in one.cluster.objects.devices.claims.items()})


def assert_no_device_twice(claims: dict[str, ResourceClaim]) -> None:
    given = [
        (result.pool, result.device)
        for one in claims.values()
        if one.status.allocation is not None
        for result in one.status.allocation.devices.results
    ]
    assert len(given) == len(set(given))


def test_devices_of_a_pod_that_went_stay_taken_until_it_is_known_what_was_written() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    ask, _, after = one_claim(one)
    effects = one.step(2, [PodGone(ask.pod), *pod_and_claim("q")]) + one.step(5_000, [])
    assert of_kind(effects, UnreserveClaims)
    assert not of_kind(effects, BindClaims), "the write is under way"
    effects = one.step(6_000, [ClaimsFailed(ask.pod, ask.attempt, "the pod is decided again")]) + one.step(25_000, [])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] == ["q"]
    assert after.status.allocation is not None


def test_devices_that_were_written_for_a_pod_that_went_are_not_given_again() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    ask, _, after = one_claim(one)
    one.step(2, [PodGone(ask.pod), *pod_and_claim("q")])
    effects = one.step(3, [ClaimsFailed(ask.pod, ask.attempt, "the pod is decided again", (after,))])
    effects += one.step(60_000, [])
    assert not of_kind(effects, BindClaims)


def test_devices_are_free_again_if_nobody_says_what_was_written() -> None:
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    ask, _, _ = one_claim(one)
    one.step(2, [PodGone(ask.pod), *pod_and_claim("q")])
    effects = one.step(31_000, []) + one.step(60_000, [])
    assert [again.pod.name for again in of_kind(effects, BindClaims)] == ["q"]


def test_a_node_is_held_for_a_nominated_pod_once_its_claim_is_seen() -> None:
    """A scheduler that starts may see a pod before its claim: the nomination of an earlier one must not be lost."""
    claimed, seen = pod_and_claim("p")
    assert isinstance(seen, PodSeen)
    pod = seen.pod
    one = engine(NodeSeen(node("n1")))
    one.step(1, [PodSeen(replace(pod, status=replace(pod.status, nominated_node_name="n1")))])
    assert one.state.nominations.get("default/p") is None, "it is gated"
    one.step(2, [Paused(paused=True), claimed])
    held = one.state.nominations.get("default/p")
    assert held is not None
    assert held.node == "n1"


def test_a_node_is_held_again_once_a_claim_is_back_that_went_before_the_bind() -> None:
    claimed, seen = pod_and_claim("p")
    assert isinstance(seen, PodSeen)
    assert isinstance(claimed, ObjectSeen)
    nominated = replace(seen.pod, status=replace(seen.pod.status, nominated_node_name="n1"))
    one = engine(NodeSeen(node("n1")), ObjectSeen(slice_of("n1", device("g"))))
    [ask] = of_kind(one.step(2, [claimed, PodSeen(nominated)]), BindClaims)
    assert one.state.nominations.get("default/p") is None, "it has the node"
    one.step(3, [ObjectGone(claimed.item), ClaimsFailed(ask.pod, ask.attempt, "the claim is gone")])
    one.step(20_000, [])
    entry = one.queue.get("default/p")
    assert entry is not None
    assert entry.state is QueueState.GATED
    assert one.state.nominations.get("default/p") is None
    one.step(20_001, [Paused(paused=True), claimed])
    held = one.state.nominations.get("default/p")
    assert held is not None
    assert held.node == "n1"
