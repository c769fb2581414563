"""Why devices keep a pod waiting: what is said of each, who holds them, and that every way, applied, places the pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from device_builders import (
    DRIVER,
    claim,
    device,
    device_class,
    exactly,
    first_of,
    model,
    node,
    owned_by,
    pod_with,
    slice_of,
)
from situate.core.engine.framework import default_framework
from situate.core.explain.explanation import Explanation, SchedulingState, explain
from situate.core.explain.suggestions import ActionKind, Suggestion
from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.devices import ResourceClaim
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.place.filtering import run_filters
from situate.core.plugins.support.claim_changes import change_claim, released_devices
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

A100 = f'device.attributes["{DRIVER}"].model == "a100"'
TAINT = {"key": "broken", "effect": "NoSchedule"}


def given_to(
    one: ResourceClaim, *devices: str, pool: str, users: tuple[str, ...] = (), request: str = "r"
) -> ResourceClaim:
    """The claim with these devices of a node's pool."""
    here = {"key": "metadata.name", "operator": "In", "values": [pool]}
    status = {
        "allocation": {
            "devices": {
                "results": [{"request": request, "driver": DRIVER, "pool": pool, "device": name} for name in devices]
            },
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in users],
    }
    return msgspec.structs.replace(one, status=msgspec.convert(status, type(one.status)))


def bound(name: str, *claims: str, to: str) -> Pod:
    made = pod_with(name, *claims)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, node_name=to))


def loaded(nodes: list[Node], named: list[NamedObject], pods: list[Pod]) -> Cluster:
    cluster = Cluster()
    cluster.load(nodes, named, pods)
    return cluster


class Scene:
    """Nodes, devices and pods, and what is said of one pod. Every way is applied to the objects and decided anew."""

    def __init__(self, nodes: list[Node], named: Sequence[Any], pods: list[Pod], asked: Pod, **options: Any) -> None:
        self.nodes, self.pods = nodes, pods
        self.named: list[NamedObject] = [*named]
        cluster = loaded(nodes, self.named, pods)
        self.told: Explanation = explain(cluster, default_framework(), asked, **options)
        assert audit(cluster) == []
        assert list(cluster.objects.devices.claims.values()) == [
            one for one in named if isinstance(one, ResourceClaim)
        ], "nothing is left changed"
        for way in self.told.suggestions:
            assert self.fits(way), way.text

    def fits(self, way: Suggestion) -> bool:
        nodes = {one.metadata.name: one for one in self.nodes} | dict(way.nodes)
        left = [one for one in self.pods if f"default/{one.metadata.name}" not in way.evicted]
        cluster = loaded(list(nodes.values()), [*self.named, *way.slices], left)
        for one in self.pods:
            if one not in left:
                for change in released_devices(cluster, one):
                    change_claim(cluster, change)
        for change in way.claims:
            change_claim(cluster, change)
        view = View(cluster)
        return bool(run_filters(default_framework().profile, cluster.class_of(way.pod), view).feasible.any())

    @property
    def details(self) -> list[str]:
        return [one.text for verdict in self.told.verdicts for one in verdict.details]

    @property
    def ways(self) -> list[str]:
        return [one.text for one in self.told.suggestions]

    @property
    def kinds(self) -> set[ActionKind]:
        return {action.kind for one in self.told.suggestions for action in one.actions}


def scene(
    wanted: ResourceClaim, *devices: dict[str, Any], others: tuple[NamedObject, ...] = (), pods: tuple[Pod, ...] = ()
) -> Scene:
    """One node with these devices, and a pod that claims them."""
    named = [device_class(), slice_of("n1", *devices), wanted, *others]
    return Scene([node("n1")], named, list(pods), pod_with("p", wanted.metadata.name))


def test_a_selector_that_selects_nothing_is_named_and_could_be_dropped() -> None:
    told = scene(claim("c", exactly(selector=A100)), device("d0", attributes=model("h100")))
    assert told.details == [
        f"claim c, request r asks for 1 device of class gpu; of 1 such device 1 is not selected by {A100}"
    ]
    assert told.ways[0] == f"drop the selector {A100} of request r of claim c"


def test_who_holds_the_devices_is_named_and_evicting_it_gives_them_back() -> None:
    held = given_to(claim("held", exactly(), ownerReferences=owned_by("old")), "d0", pool="n1", users=("old",))
    told = scene(claim("c", exactly()), device("d0"), others=(held,), pods=(bound("old", "held", to="n1"),))
    assert "of 1 such device 1 is in use (default/old 1)" in told.details[0]
    assert "evict pod default/old from node n1, which gives back claim held" in told.ways


def test_a_claim_that_no_pod_uses_can_be_given_back() -> None:
    told = scene(claim("c", exactly()), device("d0"), others=(given_to(claim("held", exactly()), "d0", pool="n1"),))
    assert "1 is in use (claim default/held, which no pod uses, 1)" in told.details[0]
    assert "give back claim default/held, which no pod uses" in told.ways


def test_a_taint_is_named_and_could_be_tolerated() -> None:
    told = scene(claim("c", exactly()), device("d0", taints=[TAINT]))
    assert "1 is tainted broken:NoSchedule" in told.details[0]
    assert told.ways[0] == "tolerate the taint broken:NoSchedule in request r of claim c"


def test_too_few_devices_are_counted_and_fewer_would_do() -> None:
    told = scene(claim("c", exactly(count=3)), device("d0"), device("d1"))
    assert told.details == ["claim c, request r asks for 3 devices of class gpu; the node has 2 such devices"]
    assert told.ways[0] == "ask for 2 devices instead of 3 in request r of claim c"


def test_a_constraint_that_devices_cannot_meet_together_is_named() -> None:
    same = {"matchAttribute": f"{DRIVER}/model"}
    told = scene(
        claim("c", exactly(count=2), constraints=(same,)),
        device("d0", attributes=model("a100")),
        device("d1", attributes=model("h100")),
    )
    assert told.details == [
        f"constraint matchAttribute {DRIVER}/model: 2 devices need the same value, and at most 1 has one"
    ]
    assert f"drop the constraint matchAttribute {DRIVER}/model of claim c" in told.ways


def test_an_attribute_that_a_constraint_needs_and_a_device_lacks_is_named() -> None:
    distinct = {"distinctAttribute": f"{DRIVER}/model"}
    told = scene(claim("c", exactly(), constraints=(distinct,)), device("d0"))
    assert f"1 is without the attribute {DRIVER}/model of a constraint" in told.details[0]
    assert ActionKind.DROP_DEVICE_CONSTRAINT in told.kinds


def test_capacity_that_is_used_up_is_named_and_less_would_do() -> None:
    shared = device("d0", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}})
    wanted = claim("c", exactly(capacity={"requests": {"memory": "12Gi"}}))
    told = scene(wanted, shared)
    assert "1 is unable to give 12Gi memory" in told.details[0]
    assert "ask for 10Gi memory instead of 12Gi in request r of claim c" in told.ways


def test_counters_that_other_devices_use_up_are_named() -> None:
    whole = {"consumesCounters": [{"counterSet": "s", "counters": {"memory": {"value": "4"}}}]}
    counters = slice_of(
        "n1", name="counters", count=2, sharedCounters=[{"name": "s", "counters": {"memory": {"value": "4"}}}]
    )
    parts = slice_of("n1", device("d0", **whole), device("d1", **whole), name="parts", count=2)
    held = given_to(claim("held", exactly()), "d0", pool="n1")
    named: list[NamedObject] = [device_class(), counters, parts, held, claim("c", exactly())]
    told = Scene([node("n1")], named, [], pod_with("p", "c"))
    assert "short of counters of s, which other devices use up" in told.details[0]
    assert "give back claim default/held, which no pod uses" in told.ways


def test_an_incomplete_pool_is_named() -> None:
    named = [device_class(), slice_of("n1", device("d0"), count=2), claim("c", exactly())]
    told = Scene([node("n1")], named, [], pod_with("p", "c"))
    text = f"nothing is taken from pool {DRIVER}/n1 (incomplete: not all of its slices are there)"
    assert text in told.details
    assert told.ways == []


def test_requests_that_want_the_same_devices_are_told_together() -> None:
    told = scene(claim("c", exactly("a"), exactly("b")), device("d0"))
    assert told.details == ["its requests together need 2 devices, and 1 is usable"]


def test_each_alternative_is_told() -> None:
    told = scene(claim("c", first_of("r", {"name": "many", "count": 4}, {"name": "few", "count": 2})), device("d0"))
    assert [text.partition(" asks")[0] for text in told.details] == [
        "claim c, request r/many",
        "claim c, request r/few",
    ]
    assert ActionKind.FEWER_DEVICES in told.kinds


def test_devices_elsewhere_are_named_with_their_users() -> None:
    shared = given_to(claim("shared", exactly()), "d0", pool="n1", users=("old",))
    full = msgspec.structs.replace(node("n1"), spec=msgspec.structs.replace(node("n1").spec, unschedulable=True))
    named = [device_class(), slice_of("n1", device("d0")), slice_of("n2", device("d0")), shared]
    told = Scene([full, node("n2")], named, [bound("old", "shared", to="n1")], pod_with("p", "shared"))
    assert "claim default/shared has n1/d0, which cannot be reached from here; used by old" in told.details
    assert any("give back the devices that it has elsewhere" in way for way in told.ways)
    assert "uncordon node n1" in told.ways


def test_a_claim_that_only_this_pod_uses_gives_its_devices_back() -> None:
    shared = given_to(claim("shared", exactly()), "d0", pool="gone")
    told = Scene([node("n1")], [device_class(), slice_of("n1", device("d0")), shared], [], pod_with("p", "shared"))
    assert told.ways[0] == "let claim shared give back the devices that it has elsewhere"


def test_a_class_that_does_not_exist_could_be_another() -> None:
    wanted = claim("c", {"name": "r", "exactly": {"deviceClassName": "none"}})
    told = scene(wanted, device("d0"))
    assert told.told.message.startswith("0/1 nodes are available: request r: device class none does not exist.")
    assert told.ways == ["ask for device class gpu instead of none in request r of claim c"]


def test_one_more_node_brings_the_devices_of_the_node_that_it_is_like() -> None:
    held = given_to(claim("held", exactly()), "d0", pool="n1", users=("a", "b"))
    told = scene(claim("c", exactly()), device("d0"), others=(held,))
    (way,) = told.told.suggestions
    assert way.text == f"add a node like n1 (8 cpu, 16Gi memory, 110 pods, 1 device of {DRIVER})"


def test_a_selector_that_fails_is_named_and_could_be_dropped() -> None:
    failing = f'device.attributes["{DRIVER}"].cores > 3'
    told = scene(claim("c", exactly(selector=failing)), device("d0"))
    assert told.told.message.endswith("claim default/c: selector #0: CEL runtime error: no such key: cores")
    assert told.ways[0] == f"drop the selector {failing} of request r of claim c"


def test_an_extended_resource_is_told_by_its_name_and_less_would_do() -> None:
    asked = pod_with("p", requests={"example.com/gpu": "3"})
    named = [device_class(extendedResourceName="example.com/gpu"), slice_of("n1", device("d0"), device("d1"))]
    told = Scene([node("n1")], named, [], asked)
    assert told.details == [
        "the request for example.com/gpu asks for 3 devices of class gpu; the node has 2 such devices"
    ]
    assert told.ways[0] == "ask for 1 less example.com/gpu (2 instead of 3)"


TEMPLATE = msgspec.convert(
    {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": {"devices": {"requests": [exactly()]}}}},
    ResourceClaimTemplate,
)


def unmade(name: str) -> Pod:
    made = pod_with(name, "gpu", generated=True)
    return msgspec.structs.replace(made, status=type(made.status)())


@pytest.mark.parametrize("taints, also", [([], ""), ([TAINT], ", and tolerate the taint broken:NoSchedule")])
def test_a_claim_that_is_not_made_yet_is_needed_in_any_case(taints: list[Any], also: str) -> None:
    named = [device_class(), slice_of("n1", device("d0", taints=taints))]
    told = Scene([node("n1")], named, [], unmade("p"), templates={("default", "t"): TEMPLATE})
    assert told.told.waiting_claims == ('claim "gpu" comes from template t: a controller has not made it yet',)
    assert told.ways[0].startswith(f"make the claim p-gpu from its template{also}")


def test_a_template_that_is_missing_is_named() -> None:
    told = Scene([node("n1")], [device_class(), slice_of("n1", device("d0"))], [], unmade("p"))
    assert told.told.waiting_claims == ('claim "gpu" comes from template t: ResourceClaimTemplate t is not there',)
    assert told.ways == []


def test_a_bound_pod_is_explained_without_its_own_devices() -> None:
    own = given_to(claim("c", exactly(), ownerReferences=owned_by("p")), "d0", pool="n1", users=("p",))
    here = bound("p", "c", to="n1")
    named = [device_class(), slice_of("n1", device("d0")), slice_of("n2", device("d0")), own]
    told = Scene([node("n1"), node("n2")], named, [here], here)
    assert (told.told.state, told.told.rank, told.told.feasible) == (SchedulingState.BOUND, 1, 2)


def test_on_many_nodes_a_few_lines_say_it_all() -> None:
    names = [f"n{at}" for at in range(400)]
    held = [
        given_to(
            claim(f"held-{name}", exactly(), ownerReferences=owned_by(f"old-{name}")),
            "d0",
            pool=name,
            users=(f"old-{name}",),
        )
        for name in names
    ]
    pods = [bound(f"old-{name}", f"held-{name}", to=name) for name in names]
    slices = [slice_of(name, device("d0"), device("d1", taints=[TAINT])) for name in names]
    told = Scene(
        [node(name) for name in names],
        [device_class(), *slices, *held, claim("c", exactly())],
        pods,
        pod_with("p", "c"),
    )
    (text,) = told.details
    assert (
        "of 800 such devices 400 are in use (default/old-n0 1, default/old-n1 1, default/old-n10 1 and 397 more)"
        in text
    )
    assert len(text) < 400


# -- on any cluster ----------------------------------------------------------------------------------------------------

ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={"model": st.sampled_from(["a100", "h100"]).map(lambda one: {"string": one})}
)
DEVICES = st.lists(
    st.fixed_dictionaries({"attributes": ATTRIBUTES, "taints": st.sampled_from([[], [], [TAINT]])}), max_size=4
)
REQUESTS = st.lists(
    st.fixed_dictionaries(
        {"count": st.integers(1, 3), "selector": st.sampled_from(["", "", A100, "true", "device.driver == 'x'"])}
    ),
    min_size=1,
    max_size=2,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(DEVICES, min_size=1, max_size=3),
    st.lists(REQUESTS, min_size=1, max_size=2),
    st.sampled_from([(), ({"matchAttribute": f"{DRIVER}/model"},), ({"distinctAttribute": f"{DRIVER}/model"},)]),
    st.data(),
)
def test_every_way_applied_places_the_pod(
    there: list[list[Any]], asked: list[list[Any]], constraints: tuple[Any, ...], data: st.DataObject
) -> None:
    names = [f"n{at}" for at in range(len(there))]
    named: list[NamedObject] = [device_class()]
    pods: list[Pod] = []
    for name, devices in zip(names, there, strict=True):
        named.append(slice_of(name, *[device(f"d{at}", **one) for at, one in enumerate(devices)]))
        for at in range(len(devices)):
            if data.draw(st.booleans()):
                used = data.draw(st.booleans())
                one = claim(f"held-{name}-{at}", exactly())
                named.append(given_to(one, f"d{at}", pool=name, users=(f"old-{name}-{at}",) if used else ()))
                if used:
                    pods.append(bound(f"old-{name}-{at}", one.metadata.name, to=name))
    wanted = [
        claim(f"c{number}", *[exactly(f"r{at}", **one) for at, one in enumerate(requests)], constraints=constraints)
        for number, requests in enumerate(asked)
    ]
    Scene(
        [node(name) for name in names], [*named, *wanted], pods, pod_with("p", *[one.metadata.name for one in wanted])
    )
