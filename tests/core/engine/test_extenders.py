from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import container, node, pod
from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    ExtenderSaid,
    NodeGone,
    NodeSeen,
    ObjectSeen,
    PodGone,
    PodRef,
    PodSeen,
)
from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.contract import Codes
from situate.core.effects import AskExtender, Bind, Effect, Evict, Nominate, Report, SetCondition
from situate.core.engine.consultations import ANSWER_LIMIT_MS, LEFT_OUT
from situate.core.engine.cycle import RACES
from situate.core.engine.engine import Engine
from situate.core.engine.framework import default_framework
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import Pod
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.place.filtering import fits_at
from situate.core.preempt.extender_preemption import MOST_TEXTS
from situate.core.queue.queued_pod import QueueState
from situate.core.state.audit import audit
from situate.core.state.classes import PodClass
from situate.core.state.view import View

FILTERS = {"urlPrefix": "http://a", "filterVerb": "filter"}
SCORES = {"urlPrefix": "http://b", "prioritizeVerb": "prioritize", "weight": 1}
PREEMPTS = {"urlPrefix": "http://c", "preemptVerb": "preempt"}
GPU = "example.com/gpu"
TIMEOUT_MS = 5_000 + ANSWER_LIMIT_MS

Kind = TypeVar("Kind")


def engine(*extenders: dict[str, Any], others: dict[str, type] | None = None, **settings: Any) -> Engine:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = with_defaults(decode({**head, "extenders": list(extenders), **settings}))
    return Engine(config, others)


def nodes(*names: str, cpu: str = "4", **fields: Any) -> list[Change]:
    return [NodeSeen(node(name, cpu=cpu, memory="8Gi", pods="110", **fields)) for name in names]


def waiting(name: str, **fields: Any) -> PodSeen:
    return PodSeen(pod(name, uid=f"uid-{name}", **{"cpu": "1", **fields}))


def bound(name: str, where: str, **fields: Any) -> PodSeen:
    return waiting(name, node_name=where, phase="Running", **fields)


def ref(name: str) -> PodRef:
    return PodRef("default", name, f"uid-{name}")


def of(kind: type[Kind], effects: Iterable[Effect]) -> list[Kind]:
    return [effect for effect in effects if isinstance(effect, kind)]


def the_ask(effects: Iterable[Effect]) -> AskExtender:
    (ask,) = of(AskExtender, effects)
    return ask


def placed(effects: Iterable[Effect]) -> dict[str, str]:
    return {bind.pod.name: bind.node for bind in of(Bind, effects)}


def told(effects: Iterable[Effect]) -> tuple[str, str]:
    (said,) = of(SetCondition, effects)
    return said.reason, said.message


def place_of(world: Engine, name: str) -> QueueState | None:
    entry = world.queue.get(f"default/{name}")
    return None if entry is None else entry.state


# -- filtering ---------------------------------------------------------------------------------------------------------


def test_a_pod_goes_to_a_node_that_the_extender_left() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1", "n2", "n3"), waiting("web")]))
    assert (ask.extender, ask.verb, ask.pod, ask.nodes) == (0, "filter", ref("web"), ("n1", "n2", "n3"))
    assert place_of(world, "web") is QueueState.IN_FLIGHT
    assert placed(world.step(5, [ExtenderSaid(ask.ask, nodes=("n2",))])) == {"web": "n2"}


def test_extenders_are_asked_one_after_another_about_what_is_left_and_the_ignorable_last() -> None:
    world = engine({**FILTERS, "ignorable": True}, {**FILTERS, "urlPrefix": "http://z"})
    first = the_ask(world.step(0, [*nodes("n1", "n2", "n3"), waiting("web")]))
    assert (first.extender, first.nodes) == (1, ("n1", "n2", "n3"))
    second = the_ask(world.step(1, [ExtenderSaid(first.ask, nodes=("n1", "n3"))]))
    assert (second.extender, second.nodes) == (0, ("n1", "n3"))
    assert placed(world.step(2, [ExtenderSaid(second.ask, nodes=("n3",))])) == {"web": "n3"}


def test_an_extender_is_asked_only_about_nodes_that_our_filters_let_through() -> None:
    world = engine(FILTERS)
    small = nodes("small", cpu="500m")
    ask = the_ask(world.step(0, [*small, *nodes("n1"), waiting("web")]))
    assert ask.nodes == ("n1",)


def test_a_pod_that_extenders_refuse_is_told_why_and_parked() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1", "n2", "n3"), *nodes("small", cpu="500m"), waiting("web")]))
    said = ExtenderSaid(ask.ask, nodes=(), refused=(("n1", "no gpu"), ("n3", "no gpu")))
    reason, message = told(world.step(5, [said]))
    assert reason == "Unschedulable"
    assert message.startswith(f"0/4 nodes are available: 1 Insufficient cpu, 1 {LEFT_OUT}, 2 no gpu.")
    assert place_of(world, "web") is QueueState.UNSCHEDULABLE


def test_messages_stay_readable_whatever_an_extender_says() -> None:
    world = engine(FILTERS)
    names = [f"n{number}" for number in range(100)]
    ask = the_ask(world.step(0, [*nodes(*names), waiting("web")]))
    _, message = told(world.step(5, [ExtenderSaid(ask.ask, nodes=(), refused=tuple((name, name) for name in names))]))
    assert message.count("1 n") == MOST_TEXTS
    assert f"{100 - MOST_TEXTS} node(s) were refused by an extender for other reasons" in message


def test_any_change_wakes_a_pod_that_extenders_refused() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    world.step(5, [ExtenderSaid(ask.ask, nodes=())])
    assert place_of(world, "web") is QueueState.UNSCHEDULABLE
    effects = [*world.step(6, nodes("n1", annotations={"any": "thing"}, labels={"x": "y"})), *world.step(2_000, [])]
    assert the_ask(effects).nodes == ("n1",)


def test_what_happens_while_extenders_are_asked_is_not_missed() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    world.step(1, nodes("n2"))
    effects = [*world.step(2, [ExtenderSaid(ask.ask, nodes=())]), *world.step(2_000, [])]
    assert the_ask(effects).nodes == ("n1", "n2")


def test_what_happens_in_the_step_of_the_answer_is_not_missed() -> None:
    for changes in ([*nodes("n2"), "answer"], ["answer", *nodes("n2")]):
        world = engine(FILTERS)
        ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
        said = ExtenderSaid(ask.ask, nodes=())
        effects = world.step(2, [said if isinstance(change, str) else change for change in changes])
        assert the_ask([*effects, *world.step(2_000, [])]).nodes == ("n1", "n2")


def test_nothing_new_means_no_new_question() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    world.step(2, [ExtenderSaid(ask.ask, nodes=())])
    for now in range(3_000, 200_000, 20_000):
        assert world.step(now, []) == []
    assert place_of(world, "web") is QueueState.UNSCHEDULABLE


def test_a_note_on_a_pod_may_be_what_an_extender_waits_for() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    world.step(5, [ExtenderSaid(ask.ask, nodes=())])
    effects = [*world.step(6, [waiting("web", annotations={"wants": "n1"})]), *world.step(2_000, [])]
    assert the_ask(effects).nodes == ("n1",)


# -- only narrow -------------------------------------------------------------------------------------------------------


def test_an_invented_node_is_passed_over() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), *nodes("small", cpu="100m"), waiting("web")]))
    assert placed(world.step(1, [ExtenderSaid(ask.ask, nodes=("moon", "small", "n1"))])) == {"web": "n1"}


def test_an_extender_that_leaves_only_infeasible_nodes_leaves_none() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), *nodes("small", cpu="100m"), waiting("web")]))
    effects = world.step(1, [ExtenderSaid(ask.ask, nodes=("moon", "small"))])
    assert placed(effects) == {}
    assert told(effects)[0] == "Unschedulable"


def test_a_node_that_is_left_and_refused_in_one_answer_is_refused() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1", "n2"), waiting("web")]))
    assert placed(world.step(1, [ExtenderSaid(ask.ask, nodes=("n1", "n2"), refused=(("n1", "no"),))])) == {"web": "n2"}


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param((("small", 10),), id="the best score for an infeasible node"),
        pytest.param((("moon", 10),), id="a score for an invented node"),
        pytest.param((("n2", 1_000),), id="a score of 1000"),
        pytest.param((("n1", -1_000), ("n2", -(1 << 62))), id="negative scores"),
        pytest.param((("n2", 1 << 62), ("n2", 1 << 62)), id="scores beyond all bounds, twice"),
    ],
)
def test_lies_about_scores_count_for_nothing(scores: tuple[tuple[str, int], ...]) -> None:
    world = engine(SCORES)
    ask = the_ask(world.step(0, [*nodes("n1", "n2"), *nodes("small", cpu="100m"), waiting("web")]))
    assert placed(world.step(1, [ExtenderSaid(ask.ask, scores=scores)])) == {"web": "n1"}


@given(
    left=st.lists(st.sampled_from(["n1", "n2", "full", "tainted", "moon", ""])),
    refused=st.lists(st.tuples(st.sampled_from(["n1", "n2", "full", "moon"]), st.text(max_size=5))),
    scores=st.lists(st.tuples(st.sampled_from(["n1", "full", "tainted", "moon"]), st.integers(-(1 << 63), 1 << 63))),
)
def test_whatever_an_extender_says_the_pod_goes_where_it_fits_or_nowhere(
    left: list[str], refused: list[tuple[str, str]], scores: list[tuple[str, int]]
) -> None:
    world = engine({**FILTERS, **SCORES})
    cordoned = nodes("tainted", unschedulable=True)
    effects = world.step(0, [*nodes("n1", "n2"), *nodes("full", cpu="500m"), *cordoned, waiting("web")])
    now = 0
    while asks := of(AskExtender, effects):
        now += 1
        answers = [ExtenderSaid(ask.ask, tuple(left), tuple(refused), scores=tuple(scores)) for ask in asks]
        effects = world.step(now, answers)
    expected = {name for name in ("n1", "n2") if name in left} - {name for name, _ in refused}
    assert set(placed(effects).values()) <= expected
    assert bool(placed(effects)) is bool(expected)
    assert not audit(world.cluster)


# -- scoring -----------------------------------------------------------------------------------------------------------


def test_scores_are_weighed_and_added_to_our_own() -> None:
    # LeastAllocated prefers the empty node by 25 of 100 for cpu alone, so by 12 in all; 1 of 10 is 10 of 100.
    for weight, best in ((1, "empty"), (100, "busy")):
        world = engine({**SCORES, "weight": weight})
        changes = [*nodes("busy", "empty"), bound("old", "busy", cpu="1", memory="1Gi")]
        ask = the_ask(world.step(0, [*changes, waiting("web")]))
        assert ask.verb == "prioritize"
        assert placed(world.step(1, [ExtenderSaid(ask.ask, scores=(("busy", 1),))])) == {"web": best}


def test_an_absurd_weight_still_gives_a_place() -> None:
    world = engine({**SCORES, "weight": (1 << 63) - 1}, {**SCORES, "urlPrefix": "http://d", "weight": (1 << 63) - 1})
    asks = of(AskExtender, world.step(0, [*nodes("n1", "n2"), waiting("web")]))
    answers = [ExtenderSaid(ask.ask, scores=(("n2", 10),)) for ask in asks]
    assert placed(world.step(1, answers)) == {"web": "n2"}


def test_all_that_score_are_asked_at_once_and_who_fails_does_not_count() -> None:
    world = engine(SCORES, {**SCORES, "urlPrefix": "http://d", "weight": 5})
    first, second = of(AskExtender, world.step(0, [*nodes("n1", "n2", "n3"), waiting("web")]))
    assert (first.extender, second.extender) == (0, 1)
    assert world.step(1, [ExtenderSaid(second.ask, problem="is ill")]) == []
    assert placed(world.step(2, [ExtenderSaid(first.ask, scores=(("n3", 10),))])) == {"web": "n3"}


def test_among_one_node_there_is_nothing_to_score() -> None:
    world = engine(FILTERS, SCORES)
    ask = the_ask(world.step(0, [*nodes("n1", "n2"), waiting("web")]))
    assert placed(world.step(1, [ExtenderSaid(ask.ask, nodes=("n2",))])) == {"web": "n2"}


def test_our_own_scores_are_those_of_the_cluster_as_it_is_when_the_answer_comes() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1", "n2"), waiting("web")]))
    effects = world.step(1, [bound("other", "n1", cpu="2"), ExtenderSaid(ask.ask, nodes=ask.nodes)])
    assert placed(effects) == {"web": "n2"}


# -- failing -----------------------------------------------------------------------------------------------------------


def test_an_extender_that_fails_costs_the_pod_a_retry() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    assert told(world.step(5, [ExtenderSaid(ask.ask, problem="is ill")])) == ("SchedulerError", "is ill")
    assert place_of(world, "web") is QueueState.BACKOFF
    again = the_ask(world.step(2_000, []))
    assert again.ask != ask.ask
    assert placed(world.step(2_001, [ExtenderSaid(again.ask, nodes=("n1",))])) == {"web": "n1"}


def test_an_extender_that_may_be_ignored_is() -> None:
    world = engine({**FILTERS, "ignorable": True})
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    assert placed(world.step(5, [ExtenderSaid(ask.ask, problem="is ill")])) == {"web": "n1"}


@pytest.mark.parametrize("timeout, after_ms", [("5s", 6_000), ("250ms", 1_250), ("0s", 6_000), ("-1s", 6_000)])
def test_silence_is_a_failure_after_the_timeout(timeout: str, after_ms: int) -> None:
    world = engine({**FILTERS, "urlPrefix": "http://me:secret@a/x", "httpTimeout": timeout})
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    assert world.next_due_ms(0) == after_ms
    assert world.step(after_ms - 1, []) == []
    reason, message = told(world.step(after_ms, []))
    assert (reason, message) == ("SchedulerError", 'extender "http://a/x" did not answer in time')
    assert placed(world.step(after_ms, [ExtenderSaid(ask.ask, nodes=("n1",))])) == {}


def test_an_answer_counts_once() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    said = ExtenderSaid(ask.ask, nodes=("n1",))
    assert len(of(Bind, world.step(1, [said, said]))) == 1
    assert world.step(2, [said, ExtenderSaid(999, nodes=("n1",))]) == []


def test_other_pods_do_not_wait_while_an_extender_hangs() -> None:
    world = engine({**FILTERS, "managedResources": [{"name": GPU}]})
    gpus = {"requests": {GPU: 1}}
    changes = nodes(*(f"n{number}" for number in range(50)), cpu="64", allocatable={GPU: 4})
    slow = [waiting(f"slow{number}", **gpus) for number in range(100)]
    effects = world.step(0, [*changes, *slow, *(waiting(f"fast{number}") for number in range(500))])
    assert len(of(AskExtender, effects)) == 100
    assert len(placed(effects)) == 500
    effects = world.step(1, [waiting(f"later{number}") for number in range(500)])
    assert len(placed(effects)) == 500
    effects = world.step(TIMEOUT_MS, [waiting("last")])
    assert list(placed(effects)) == ["last"]
    assert {said.reason for said in of(SetCondition, effects)} == {"SchedulerError"}


# -- the pod and the cluster move on -----------------------------------------------------------------------------------


def test_a_node_that_has_filled_up_meanwhile_is_not_taken() -> None:
    world = engine({**FILTERS, "managedResources": [{"name": GPU}]})
    gpu = nodes("n1", "n2", cpu="1", allocatable={GPU: 1})
    ask = the_ask(world.step(0, [*gpu, waiting("web", requests={GPU: 1})]))
    taken = world.step(1, [bound("other", "n1")])
    assert placed(taken) == {}
    assert placed(world.step(2, [ExtenderSaid(ask.ask, nodes=("n1", "n2"))])) == {"web": "n2"}


def test_a_pod_whose_nodes_are_all_taken_is_decided_anew_and_in_the_end_rests() -> None:
    world = engine(FILTERS)
    effects = world.step(0, [*nodes("n1", "n2", cpu="1"), waiting("web")])
    for attempt in range(RACES + 1):
        ask = the_ask(effects)
        here = "n1" if attempt % 2 == 0 else "n2"
        theft: list[Change] = [bound(f"thief{attempt}", here)]
        if attempt:
            theft.append(PodGone(ref(f"thief{attempt - 1}")))
        effects = world.step(attempt + 1, [*theft, ExtenderSaid(ask.ask, nodes=(here,))])
        assert placed(effects) == {}
    assert told(effects)[0] == "SchedulerError"
    assert place_of(world, "web") is QueueState.BACKOFF


def test_a_node_that_was_promised_to_another_meanwhile_is_not_taken() -> None:
    world = engine({**FILTERS, "managedResources": [{"name": GPU, "ignoredByScheduler": True}]})
    gpu = {"priority": 50, "requests": {GPU: 1}}
    changes = [*nodes("n1", "n2", cpu="1"), waiting("web", **gpu)]
    ask = the_ask(world.step(0, changes))
    # Both nodes fill up, n1 is promised to somebody more important, and its victim leaves.
    full = [bound("one", "n1", priority=1), bound("two", "n2", priority=60)]
    assert evicted(world.step(1, [*full, waiting("urgent", priority=100)])) == ["one"]
    effects = world.step(2, [PodGone(ref("one")), ExtenderSaid(ask.ask, nodes=("n1", "n2"))])
    assert placed(effects) == {"urgent": "n1"}


@pytest.mark.parametrize(
    "field, told_of_room",
    [("refused", "No preemption victims found for incoming pod"), ("refused_for_good", "Preemption is not helpful")],
)
def test_an_extender_says_whether_evictions_could_help(field: str, told_of_room: str) -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    refusal: dict[str, Any] = {field: (("n1", "no gpu"),)}
    _, message = told(world.step(1, [ExtenderSaid(ask.ask, nodes=(), **refusal)]))
    assert message.startswith("0/1 nodes are available: 1 no gpu.")
    assert f"preemption: 0/1 nodes are available: 1 {told_of_room}" in message


def test_a_node_that_has_gone_meanwhile_is_not_taken() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1", "n2"), waiting("web")]))
    again = the_ask(world.step(1, [NodeGone("n1"), ExtenderSaid(ask.ask, nodes=("n1",))]))
    assert again.nodes == ("n2",)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"annotations": {"a": "b"}}, id="its annotations"),
        pytest.param({"labels": {"a": "b"}}, id="its labels"),
        pytest.param({"cpu": "2"}, id="what it asks for"),
    ],
)
def test_a_pod_that_changes_while_it_is_asked_about_is_asked_about_again(change: dict[str, Any]) -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    assert world.step(1, [waiting("web", **change)]) == []
    again = the_ask(world.step(2, [ExtenderSaid(ask.ask, nodes=("n1",))]))
    assert placed(world.step(3, [ExtenderSaid(again.ask, nodes=("n1",))])) == {"web": "n1"}


def test_a_pod_whose_status_alone_changes_is_not_asked_about_again() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    world.step(1, [waiting("web", phase="Pending")])
    assert placed(world.step(2, [ExtenderSaid(ask.ask, nodes=("n1",))])) == {"web": "n1"}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(PodGone(ref("web")), id="is gone"),
        pytest.param(waiting("web", deletion_timestamp="2026-01-01T00:00:00Z"), id="is being deleted"),
        pytest.param(bound("web", "n1"), id="was bound by somebody else"),
    ],
)
def test_an_answer_about_a_pod_that_does_not_wait_any_more_is_old_news(end: Change) -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    world.step(1, [end])
    assert world.step(2, [ExtenderSaid(ask.ask, nodes=("n1",))]) == []
    assert world.step(TIMEOUT_MS, []) == []
    assert place_of(world, "web") is None


def test_an_answer_about_a_pod_is_not_taken_for_one_about_its_successor() -> None:
    world = engine(FILTERS)
    ask = the_ask(world.step(0, [*nodes("n1", "n2"), waiting("web")]))
    successor = PodSeen(pod("web", uid="another", cpu="1"))
    again = the_ask(world.step(1, [successor]))
    assert world.step(2, [ExtenderSaid(ask.ask, nodes=("n1",))]) == []
    assert placed(world.step(3, [ExtenderSaid(again.ask, nodes=("n2",))])) == {"web": "n2"}


def test_an_engine_that_starts_anew_asks_anew() -> None:
    engine(FILTERS).step(0, [*nodes("n1"), waiting("web")])
    world = engine(FILTERS)
    assert the_ask(world.step(1, [*nodes("n1"), waiting("web")])).nodes == ("n1",)


class Moody:
    """Answers the first two times, and raises the third: when the extenders have been asked."""

    name = "Moody"
    asked = 0

    def check(self, pod: PodClass, view: View) -> Codes | None:
        Moody.asked += 1
        if Moody.asked > 1:
            raise RuntimeError("not again")
        return None


def test_a_plugin_that_raises_when_the_answer_has_come_costs_the_pod_a_retry() -> None:
    Moody.asked = 0
    plugins = {"multiPoint": {"enabled": [{"name": "Moody"}]}}
    world = engine(FILTERS, others={"Moody": Moody}, profiles=[{"plugins": plugins}])
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web")]))
    reason, message = told(world.step(1, [ExtenderSaid(ask.ask, nodes=("n1",))]))
    assert reason == "SchedulerError"
    assert "Moody" in message


# -- who is asked about whom -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields, asked",
    [
        pytest.param({"requests": {GPU: 1}}, True, id="requests one"),
        pytest.param({"limits": {GPU: 1}}, True, id="is limited to one"),
        pytest.param({"init_containers": (container("i", requests={GPU: 1}),)}, True, id="needs one to begin with"),
        pytest.param({"requests": {"example.com/other": 1}}, False, id="requests something else"),
        pytest.param({}, False, id="requests nothing of the kind"),
    ],
)
def test_an_extender_that_manages_resources_is_asked_about_pods_that_ask_for_them(
    fields: dict[str, Any], asked: bool
) -> None:
    world = engine({**FILTERS, "managedResources": [{"name": GPU}]})
    room = nodes("n1", allocatable={GPU: 4, "example.com/other": 4})
    assert bool(of(AskExtender, world.step(0, [*room, waiting("web", **fields)]))) is asked


def test_a_resource_that_the_extender_looks_after_is_not_checked_here() -> None:
    managed = [{"name": GPU, "ignoredByScheduler": True}]
    world = engine({**FILTERS, "managedResources": managed})
    ask = the_ask(world.step(0, [*nodes("n1"), waiting("web", requests={GPU: 1})]))
    assert placed(world.step(1, [ExtenderSaid(ask.ask, nodes=("n1",))])) == {"web": "n1"}


def test_a_profile_that_draws_nodes_asks_about_those_it_drew() -> None:
    world = engine(FILTERS, profiles=[{"nodeSample": 2}])
    ask = the_ask(world.step(0, [*nodes(*(f"n{number}" for number in range(20))), waiting("web")]))
    assert len(ask.nodes) == 2
    assert place_of(world, "web") is QueueState.IN_FLIGHT
    world.step(1, [ExtenderSaid(ask.ask, nodes=())])
    again = the_ask(world.step(2_000, []))
    assert again.nodes != ask.nodes


# -- binding -----------------------------------------------------------------------------------------------------------


def test_an_extender_binds_the_pods_it_is_interested_in() -> None:
    world = engine({"urlPrefix": "http://b", "bindVerb": "bind", "managedResources": [{"name": GPU}]})
    changes = [*nodes("n1", allocatable={GPU: 1}), waiting("gpu", requests={GPU: 1}), waiting("web")]
    binds = {bind.pod.name: bind.extender for bind in of(Bind, world.step(0, changes))}
    assert binds == {"gpu": 0, "web": None}


def test_a_binder_that_may_be_ignored_and_fails_leaves_the_bind_to_us() -> None:
    world = engine({"urlPrefix": "http://b", "bindVerb": "bind", "ignorable": True})
    (bind,) = of(Bind, world.step(0, [*nodes("n1"), waiting("web")]))
    assert bind.extender == 0
    (again,) = of(Bind, world.step(1, [BindFailed(bind.pod, bind.attempt, "is ill", final=True)]))
    assert again == Bind(bind.pod, "n1", bind.attempt + 1, None)
    assert of(Bind, world.step(2, [BindFailed(again.pod, again.attempt, "conflict")])) == []
    (third,) = of(Bind, world.step(600, []))
    assert third.extender is None
    (event,) = of(Report, world.step(601, [BindDone(third.pod, third.attempt)]))
    assert event.reason == "Scheduled"


def test_a_binder_s_failure_that_is_told_twice_is_not_ours_too() -> None:
    world = engine({"urlPrefix": "http://b", "bindVerb": "bind", "ignorable": True})
    (bind,) = of(Bind, world.step(0, [*nodes("n1"), waiting("web")]))
    failed = BindFailed(bind.pod, bind.attempt, "is ill")
    (again,) = of(Bind, world.step(1, [failed, failed]))
    world.step(2, [BindFailed(again.pod, again.attempt, "denied", final=True)])
    assert place_of(world, "web") is QueueState.BACKOFF


@pytest.mark.parametrize("final", [pytest.param(False, id="that may pass"), pytest.param(True, id="for good")])
def test_a_binder_s_failure_that_is_told_again_when_our_own_bind_is_under_way_is_old_news(final: bool) -> None:
    world = engine({"urlPrefix": "http://b", "bindVerb": "bind", "ignorable": True})
    (bind,) = of(Bind, world.step(0, [*nodes("n1"), waiting("web")]))
    failed = BindFailed(bind.pod, bind.attempt, "is ill", final)
    (ours,) = of(Bind, world.step(1, [failed]))
    assert ours.extender is None
    world.step(2, [failed])
    assert place_of(world, "web") is QueueState.RESERVED
    (event,) = of(Report, world.step(3, [BindDone(ours.pod, ours.attempt)]))
    assert event.reason == "Scheduled"


def test_a_binder_that_may_not_be_ignored_is_asked_again() -> None:
    world = engine({"urlPrefix": "http://b", "bindVerb": "bind"})
    (bind,) = of(Bind, world.step(0, [*nodes("n1"), waiting("web")]))
    assert of(Bind, world.step(1, [BindFailed(bind.pod, bind.attempt, "is ill")])) == []
    (again,) = of(Bind, world.step(600, []))
    assert again == Bind(bind.pod, "n1", bind.attempt + 1, bind.extender)
    world.step(601, [BindFailed(again.pod, again.attempt, "refuses", final=True)])
    assert place_of(world, "web") is QueueState.BACKOFF


# -- making room -------------------------------------------------------------------------------------------------------

HIGH: dict[str, Any] = {"priority": 100}


def crowded(*extenders: dict[str, Any], **fields: Any) -> tuple[Engine, AskExtender]:
    """Three full nodes; the pod on n1 matters least. A more important pod waits, and extenders are asked."""
    world = engine(*extenders)
    changes = [*nodes("n1", "n2", "n3", cpu="1")]
    changes += [bound(f"old{number}", f"n{number}", priority=number) for number in (1, 2, 3)]
    return world, the_ask(world.step(0, [*changes, waiting("urgent", **HIGH, **fields)]))


def agreed(ask: AskExtender, *names: str) -> ExtenderSaid:
    victims = tuple((one.node, tuple(pod.uid for pod in one.pods)) for one in ask.victims if one.node in names)
    return ExtenderSaid(ask.ask, victims=victims)


def evicted(effects: Iterable[Effect]) -> list[str]:
    return [evict.victim.name for evict in of(Evict, effects)]


def test_extenders_are_asked_about_every_node_where_room_can_be_made() -> None:
    world, ask = crowded(PREEMPTS)
    assert (ask.verb, ask.pod, ask.nodes) == ("preempt", ref("urgent"), ("n1", "n2", "n3"))
    assert [(one.node, [pod.name for pod in one.pods], one.violations) for one in ask.victims] == [
        ("n1", ["old1"], 0),
        ("n2", ["old2"], 0),
        ("n3", ["old3"], 0),
    ]
    assert place_of(world, "urgent") is QueueState.IN_FLIGHT


def test_they_are_told_how_many_budgets_would_break() -> None:
    world = engine(PREEMPTS)
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="b", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "db"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=0),
    )
    changes: Sequence[Change] = [
        *nodes("n1", "n2", cpu="1"),
        ObjectSeen(budget),
        bound("db", "n1", labels={"app": "db"}),
        bound("old", "n2"),
    ]
    ask = the_ask(world.step(0, [*changes, waiting("urgent", **HIGH)]))
    assert {one.node: one.violations for one in ask.victims} == {"n1": 1, "n2": 0}
    assert ask.nodes[0] == "n2"


@pytest.mark.parametrize("left, victim", [(("n1", "n2", "n3"), "old1"), (("n3", "n2"), "old2"), (("n3",), "old3")])
def test_of_the_nodes_that_extenders_leave_the_least_harmful_is_taken(left: tuple[str, ...], victim: str) -> None:
    world, ask = crowded(PREEMPTS)
    effects = world.step(1, [agreed(ask, *left)])
    assert evicted(effects) == [victim]
    assert [made.node for made in of(Nominate, effects)] == [f"n{victim[-1]}"]
    assert place_of(world, "urgent") is QueueState.UNSCHEDULABLE


def test_if_extenders_leave_no_node_nobody_is_evicted() -> None:
    world, ask = crowded(PREEMPTS)
    effects = world.step(1, [agreed(ask)])
    assert evicted(effects) == []
    reason, message = told(effects)
    assert reason == "Unschedulable"
    assert message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert message.endswith("preemption: no candidate node for preemption")
    assert place_of(world, "urgent") is QueueState.UNSCHEDULABLE


def test_a_pod_to_whom_room_was_denied_is_woken_by_any_change() -> None:
    world, ask = crowded(PREEMPTS)
    world.step(1, [agreed(ask)])
    effects = [*world.step(2, nodes("n1", cpu="1", labels={"any": "thing"})), *world.step(2_000, [])]
    assert the_ask(effects).verb == "preempt"


def test_lies_about_victims_evict_nobody_else() -> None:
    world, ask = crowded(PREEMPTS)
    lies = (("n1", ("uid-old2", "uid-urgent")), ("moon", ("uid-old1",)), ("n2", ()), ("n3", ("uid-old3", "uid-old1")))
    assert evicted(world.step(1, [ExtenderSaid(ask.ask, victims=lies)])) == ["old3"]


def test_room_is_asked_for_from_one_extender_after_another() -> None:
    world, ask = crowded(PREEMPTS, {**PREEMPTS, "urlPrefix": "http://d"})
    second = the_ask(world.step(1, [agreed(ask, "n2", "n3")]))
    assert (second.extender, second.nodes) == (1, ("n2", "n3"))
    assert [one.node for one in second.victims] == ["n2", "n3"]
    assert evicted(world.step(2, [agreed(second, "n3")])) == ["old3"]


def test_an_extender_that_fails_to_answer_about_room_costs_a_retry_and_evicts_nobody() -> None:
    world, ask = crowded(PREEMPTS)
    effects = world.step(1, [ExtenderSaid(ask.ask, problem="is ill")])
    assert evicted(effects) == []
    assert told(effects) == ("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu. preemption: is ill")
    assert place_of(world, "urgent") is QueueState.BACKOFF
    assert the_ask(world.step(2_000, [])).verb == "preempt"


def test_an_extender_that_may_be_ignored_does_not_stop_evictions() -> None:
    world, ask = crowded({**PREEMPTS, "ignorable": True})
    assert evicted(world.step(1, [ExtenderSaid(ask.ask, problem="is ill")])) == ["old1"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda ask: agreed(ask, "n1", "n3"), id="agrees to evictions elsewhere"),
        pytest.param(agreed, id="agrees to nothing"),
        pytest.param(lambda ask: ExtenderSaid(ask.ask, problem="is ill"), id="fails"),
    ],
)
def test_if_room_came_meanwhile_nobody_is_evicted_and_the_pod_is_placed_though_the_extender(
    answer: Callable[[AskExtender], ExtenderSaid],
) -> None:
    world, ask = crowded(PREEMPTS)
    effects = world.step(1, [PodGone(ref("old2")), answer(ask)])
    assert (evicted(effects), of(SetCondition, effects)) == ([], [])
    assert placed(effects) == {"urgent": "n2"}


def test_a_pod_for_which_room_came_while_an_extender_was_silent_is_placed() -> None:
    world, _ = crowded(PREEMPTS)
    world.step(1, [PodGone(ref("old2"))])
    assert placed(world.step(TIMEOUT_MS, [])) == {"urgent": "n2"}


def test_if_other_pods_would_have_to_go_by_now_extenders_are_asked_again() -> None:
    world, ask = crowded(PREEMPTS)
    effects = world.step(1, [PodGone(ref("old1")), bound("new1", "n1", priority=1), agreed(ask, "n1")])
    assert evicted(effects) == []
    again = the_ask(effects)
    assert evicted(world.step(2, [agreed(again, "n1")])) == ["new1"]


def test_two_pods_that_are_asked_about_at_once_do_not_evict_for_one_place() -> None:
    world = engine(PREEMPTS)
    changes = [*nodes("n1", "n2", cpu="1"), bound("old1", "n1"), bound("old2", "n2")]
    first, second = of(AskExtender, world.step(0, [*changes, waiting("one", **HIGH), waiting("two", **HIGH)]))
    effects = world.step(1, [agreed(first, "n1", "n2"), agreed(second, "n1", "n2")])
    while asks := of(AskExtender, effects):
        effects = [*of(Evict, effects), *of(Nominate, effects), *world.step(2, [agreed(ask, "n2") for ask in asks])]
    assert sorted(evicted(effects)) == ["old1", "old2"]
    assert {made.pod.name: made.node for made in of(Nominate, effects)} == {"one": "n1", "two": "n2"}


def test_a_filter_and_room_are_asked_about_in_one_attempt() -> None:
    world = engine({**FILTERS, "preemptVerb": "preempt"})
    changes = [*nodes("n1", cpu="1"), *nodes("n2"), bound("old", "n1")]
    ask = the_ask(world.step(0, [*changes, waiting("urgent", **HIGH)]))
    assert (ask.verb, ask.nodes) == ("filter", ("n2",))
    room = the_ask(world.step(1, [ExtenderSaid(ask.ask, nodes=(), refused_for_good=(("n2", "no gpu"),))]))
    assert (room.verb, room.nodes) == ("preempt", ("n1",))
    effects = world.step(2, [agreed(room, "n1")])
    assert evicted(effects) == ["old"]
    assert told(effects)[1].startswith("0/2 nodes are available: 1 Insufficient cpu, 1 no gpu.")


def test_what_happens_while_a_filter_is_asked_is_not_missed_if_room_is_asked_about_next() -> None:
    world = engine({**FILTERS, "preemptVerb": "preempt"})
    changes = [*nodes("n1", cpu="1"), *nodes("n2"), bound("old", "n1")]
    ask = the_ask(world.step(0, [*changes, waiting("urgent", **HIGH)]))
    world.step(1, nodes("n2", labels={"any": "thing"}))
    room = the_ask(world.step(2, [ExtenderSaid(ask.ask, nodes=())]))
    effects = [*world.step(3, [agreed(room)]), *world.step(2_000, [])]
    assert the_ask(effects).verb == "filter"


def test_the_node_that_is_held_for_a_pod_is_asked_about_alone_and_then_the_others() -> None:
    world = engine({**FILTERS, "managedResources": [{"name": GPU, "ignoredByScheduler": True}]})
    gpu = {**HIGH, "requests": {GPU: 1}}
    effects = world.step(0, [*nodes("n1", cpu="1"), bound("old", "n1"), waiting("urgent", **gpu)])
    assert evicted(effects) == ["old"]
    effects = [*world.step(1, [PodGone(ref("old")), *nodes("n2")]), *world.step(2_000, [])]
    ask = the_ask(effects)
    assert ask.nodes == ("n1",)
    then = the_ask(world.step(2_001, [ExtenderSaid(ask.ask, nodes=())]))
    assert then.nodes == ("n1", "n2")
    assert placed(world.step(2_002, [ExtenderSaid(then.ask, nodes=("n2",))])) == {"urgent": "n2"}


def test_nobody_is_lost_whatever_is_said_about_room() -> None:
    world, ask = crowded(PREEMPTS)
    urgent: Pod = pod("urgent", uid="uid-urgent", cpu="1", **HIGH)
    world.step(1, [PodSeen(urgent), NodeGone("n1"), agreed(ask, "n1")])
    assert place_of(world, "urgent") is QueueState.IN_FLIGHT
    world.step(TIMEOUT_MS + 1, [])
    assert place_of(world, "urgent") is QueueState.BACKOFF
    assert not audit(world.cluster)


# -- over time ---------------------------------------------------------------------------------------------------------


class Chaos:
    """A small world with extenders that lie, fail, stay silent, answer late and twice; until they stop that."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.world = engine(
            {**FILTERS, "preemptVerb": "preempt"},
            {**SCORES, "filterVerb": "filter", "ignorable": True},
            {**PREEMPTS, "managedResources": [{"name": GPU, "ignoredByScheduler": True}]},
        )
        self.now = 0
        self.faults = True
        self.pods: dict[str, Pod] = {}
        self.later: list[tuple[int, Change]] = []
        self.made = 0
        self.evictions: list[str] = []

    def step(self, changes: Sequence[Change]) -> None:
        due = [change for at, change in self.later if at <= self.now]
        self.later = [(at, change) for at, change in self.later if at > self.now]
        for effect in self.world.step(self.now, [*changes, *due]):
            match effect:
                case AskExtender():
                    self.answer(effect)
                case Bind(pod_ref, where, attempt):
                    self.bind(pod_ref, where, attempt)
                case Evict(victim):
                    self.evictions.append(victim.uid)
                    self.later.append((self.now + self.dice.randint(1, 500), PodGone(victim)))
                    self.pods.pop(victim.uid, None)
                case _:
                    pass

    def bind(self, pod_ref: PodRef, where: str, attempt: int) -> None:
        waits = self.pods.get(pod_ref.uid)
        if waits is None or (self.faults and self.dice.random() < 0.1):
            self.later.append((self.now + 1, BindFailed(pod_ref, attempt, "is ill")))
            return
        seen = replace(waits, spec=replace(waits.spec, node_name=where))
        self.pods[pod_ref.uid] = seen
        self.later += [(self.now + 1, BindDone(pod_ref, attempt)), (self.now + 2, PodSeen(seen))]

    def answer(self, ask: AskExtender) -> None:
        """Honestly, nodes whose number is even are good for pods whose number is even, and odd ones for odd ones."""
        dice, parity = self.dice, ask.pod.name[-1] in "02468"
        good = tuple(name for name in ask.nodes if (name[-1] in "02468") is parity)
        said = ExtenderSaid(ask.ask, nodes=good)
        if ask.verb == "preempt":
            said = agreed(ask, *good)
        elif ask.verb == "prioritize":
            said = ExtenderSaid(ask.ask, scores=tuple((name, dice.randint(0, 10)) for name in good))
        delay = dice.randint(1, 50)
        if self.faults and dice.random() < 0.4:
            lie = ExtenderSaid(
                ask.ask,
                nodes=tuple(dice.sample(["n0", "n1", "n2", "full0", "full1", "moon"], 3)),
                scores=(("n1", dice.randint(-20, 20)), ("full1", 10)),
                victims=(("n1", ("uid-pod0", "uid-pod1")), ("moon", ("uid-pod2",))),
            )
            fate = dice.choice([lie, ExtenderSaid(ask.ask, problem="is ill"), said, None])
            if fate is None:
                return
            said, delay = fate, dice.randint(1, 9_000)
            self.later.append((self.now + delay + dice.randint(0, 10), said))
        self.later.append((self.now + delay, said))

    def happen(self) -> list[Change]:
        dice = self.dice
        if dice.random() < 0.5 and self.made < 30:
            name = f"pod{self.made}"
            self.made += 1
            made = pod(name, uid=f"uid-{name}", cpu=dice.choice(["500m", "1"]), priority=dice.choice([0, 0, 100]))
            self.pods[made.metadata.uid] = made
            return [PodSeen(made)]
        if dice.random() < 0.2 and self.pods:
            gone = self.pods.pop(dice.choice(sorted(self.pods)))
            return [PodGone(PodRef("default", gone.metadata.name, gone.metadata.uid))]
        if dice.random() < 0.2:
            return nodes(f"n{dice.randint(0, 3)}", cpu="3", labels={"turn": str(self.now)})
        return []

    def run(self) -> None:
        self.step([*nodes("n0", "n1", "n2", "n3", cpu="3"), *nodes("full0", "full1", cpu="100m")])
        for _ in range(120):
            self.now += self.dice.randint(1, 400)
            self.step(self.happen())
            self.check()
        self.faults = False
        until = self.now + 60_000
        while self.now < until:
            due = [at for at, _ in self.later]
            soon = self.world.next_due_ms(self.now)
            self.now = max(self.now + 1, min([*due, until, *([] if soon is None else [soon])]))
            self.step([])
            self.check()

    def check(self) -> None:
        assert not audit(self.world.cluster)
        used: dict[str, int] = {}
        for one in self.pods.values():
            if one.spec.node_name:
                asked = one.spec.containers[0].resources.requests["cpu"]
                used[one.spec.node_name] = used.get(one.spec.node_name, 0) + (500 if asked == "500m" else 1_000)
        assert all(name in ("n0", "n1", "n2", "n3") and amount <= 3_000 for name, amount in used.items())
        assert len(self.evictions) == len(set(self.evictions))

    def fitting(self) -> list[str]:
        """The waiting pods that would fit where the extenders, being honest, let them go."""
        cluster, found = self.world.cluster, []
        for one in self.pods.values():
            parity = one.metadata.name[-1] in "02468"
            rows = [row for name, row in cluster.nodes.rows.items() if (name[-1] in "02468") is parity]
            kind, view = cluster.class_of(one), View(cluster)
            profile = default_framework().profile
            if not one.spec.node_name and any(fits_at(profile.filters, kind, view, row) for row in rows):
                found.append(one.metadata.name)
        return found


@pytest.mark.parametrize("seed", range(40))
def test_whatever_extenders_do_nothing_breaks_and_when_they_behave_all_that_fits_is_placed(seed: int) -> None:
    chaos = Chaos(seed)
    chaos.run()
    assert chaos.fitting() == []
    assert chaos.world.queue.flushed == 0
    waiting_pods = {uid for uid, one in chaos.pods.items() if not one.spec.node_name}
    assert {entry.ref.uid for entry in chaos.world.queue.values()} == waiting_pods
