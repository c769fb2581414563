"""A claim that is hard to satisfy, or a selector that is expensive, costs its own pod's attempts, and those little."""

from __future__ import annotations

from device_builders import DRIVER, claim, device, device_class, exactly, model, node, owned_by, pod_with, slice_of
from situate.core.changes import Change, NodeSeen, ObjectSeen, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.contract import NodeFailures
from situate.core.devices.budget import WORK_PER_NODE, WORK_PER_SECOND
from situate.core.devices.selectors import REMEMBERED_TEXT
from situate.core.effects import BindClaims
from situate.core.engine.engine import Engine
from situate.core.model.devices import ResourceClaim
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

UNLIKE = ({"distinctAttribute": f"{DRIVER}/model"},)
MODELS = "abcdefghi"
LOOP = "[0,1,2,3,4,5,6,7,8,9]"
MOST = 10 * WORK_PER_SECOND


def hard(name: str, **meta: object) -> ResourceClaim:
    """Twelve devices of different models, where there are nine: the search tries nearly all orders of them. It skips no
    dead ends, because with 1.36 this constraint does not undo what was tried."""
    return claim(name, *(exactly(f"r{at}") for at in range(12)), constraints=UNLIKE, **meta)


def expensive(loops: int) -> str:
    """Ten times as expensive with each loop; three cost 3,441."""
    expression = "true"
    for at in range(loops):
        expression = f"{LOOP}.all(v{at}, {expression})"
    return expression


def cluster_of(nodes: int) -> Cluster:
    """Nodes that all differ: what was found for one says nothing about the next."""
    cluster = Cluster()
    cluster.put_object(device_class())
    for at in range(nodes):
        cluster.add_node(node(f"n{at}"))
        models = [f"{kind}-{at}" for kind in MODELS for _ in range(3)]
        cluster.put_object(
            slice_of(f"n{at}", *(device(f"g{number}", attributes=model(one)) for number, one in enumerate(models)))
        )
    return cluster


def failures(cluster: Cluster, wanted: ResourceClaim) -> list[str]:
    cluster.put_object(wanted)
    codes = DynamicResources().check(cluster.class_of(pod_with("p", wanted.metadata.name)), View(cluster))
    return list(codes.texts.values()) if isinstance(codes, NodeFailures) else []


def test_an_attempt_is_limited_over_all_nodes() -> None:
    cluster = cluster_of(20)
    found = failures(cluster, hard("c"))
    assert found[0] == "node n0: timed out trying to allocate devices"
    assert len(found) == 20
    assert cluster.objects.devices.work <= MOST + 20 * WORK_PER_NODE + 2 * 20


def test_what_was_too_much_work_is_not_tried_again() -> None:
    cluster = cluster_of(1)
    wanted = hard("c")
    assert failures(cluster, wanted)
    failures(cluster, wanted)  # the first attempt had to ask the selector of the class; this one did not
    before = cluster.objects.devices.work
    assert failures(cluster, wanted) == ["node n0: timed out trying to allocate devices"]
    assert cluster.objects.devices.work == before


def test_an_expensive_selector_gets_further_with_every_attempt() -> None:
    """The 81 models cost nearly two attempts."""
    cluster = cluster_of(9)
    wanted = claim("c", exactly(count=27, selector=expensive(3)))
    attempts = 0
    while failures(cluster, wanted):
        attempts += 1
    assert 1 <= attempts <= 3


def test_a_selector_that_no_attempt_can_pay_for_is_asked_once() -> None:
    cluster = cluster_of(1)
    wanted = claim("c", exactly(selector=expensive(5)))
    assert failures(cluster, wanted)
    before = cluster.objects.devices.work
    assert failures(cluster, wanted)
    assert cluster.objects.devices.work - before < WORK_PER_NODE


def test_the_answers_of_forgotten_expressions_do_not_pile_up() -> None:
    cluster = cluster_of(1)
    for at in range(300):
        text = "x" * 9_000
        assert not failures(cluster, claim("c", exactly(selector=f'"{text}{at}" != ""')))
    answers = cluster.objects.devices._answers
    assert answers is not None
    assert sum(map(len, answers._answers)) <= REMEMBERED_TEXT


def pod_and_claim(name: str, wanted: ResourceClaim) -> list[Change]:
    return [ObjectSeen(wanted), PodSeen(pod_with(name, wanted.metadata.name, generated=True))]


def test_a_step_ends_after_a_hard_pod_and_the_next_one_goes_on() -> None:
    engine = Engine(default_configuration())
    models = [kind for kind in MODELS for _ in range(3)]
    devices = [device(f"g{at}", attributes=model(one)) for at, one in enumerate(models)]
    engine.step(0, [ObjectSeen(device_class()), NodeSeen(node("n")), ObjectSeen(slice_of("n", *devices))])
    changes = [
        change
        for name in ("one", "two")
        for change in pod_and_claim(name, hard(f"{name}-c", ownerReferences=owned_by(name)))
    ]
    easy = claim("easy-c", exactly(), ownerReferences=owned_by("easy"))
    effects = engine.step(1, [*changes, *pod_and_claim("easy", easy)])
    assert not [one for one in effects if isinstance(one, BindClaims)]
    assert engine.next_due_ms(1) == 1
    now = 1
    while not (bound := [one for one in engine.step(now, []) if isinstance(one, BindClaims)]):
        now += 1
        assert now < 5
    assert [one.pod.name for one in bound] == ["easy"]
