"""Questions to extenders: who is asked what, and which answers still count."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from builders import node, pod
from situate.core.changes import Change, ExtenderSaid, NodeSeen, PodSeen
from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.contract import Scores
from situate.core.effects import AskExtender, Bind, Effect, SetCondition
from situate.core.engine.consultations import LEFT_OUT
from situate.core.engine.engine import Engine
from situate.core.queue.queued_pod import QueueState
from situate.core.state.classes import PodClass
from situate.core.state.view import View

FILTERS = {"urlPrefix": "http://a", "filterVerb": "filter"}
SCORES = {"urlPrefix": "http://b", "prioritizeVerb": "prioritize", "weight": 1}
GANG = {"situate.dev/gang": "train", "situate.dev/gang-size": "1"}


def engine(*extenders: dict[str, Any], others: dict[str, type] | None = None, **settings: Any) -> Engine:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return Engine(with_defaults(decode({**head, "extenders": list(extenders), **settings})), others)


def nodes(*names: str) -> list[Change]:
    return [NodeSeen(node(name, cpu="4", memory="8Gi", pods="110")) for name in names]


def waiting(name: str, **fields: Any) -> PodSeen:
    return PodSeen(pod(name, uid=name, **{"cpu": "1", **fields}))


def asks(effects: Iterable[Effect]) -> list[AskExtender]:
    return [effect for effect in effects if isinstance(effect, AskExtender)]


def placed(effects: Iterable[Effect]) -> list[tuple[str, str]]:
    return [(effect.pod.name, effect.node) for effect in effects if isinstance(effect, Bind)]


def test_pods_that_are_asked_about_the_same_nodes_share_the_list() -> None:
    world = engine(FILTERS)
    first, second = asks(world.step(0, [*nodes("n1", "n2"), waiting("a"), waiting("b")]))
    assert first.nodes is second.nodes


def test_every_question_has_a_number_of_its_own() -> None:
    world = engine(SCORES, {**SCORES, "urlPrefix": "http://d"})
    found = asks(world.step(0, [*nodes("n1", "n2"), waiting("a"), waiting("b")]))
    assert len({ask.ask for ask in found}) == 4


def test_answers_to_questions_from_before_the_pod_changed_do_not_count() -> None:
    world = engine(SCORES, {**SCORES, "urlPrefix": "http://d"})
    first, second = asks(world.step(0, [*nodes("n1", "n2", "n3"), waiting("web")]))
    effects = world.step(1, [waiting("web", labels={"a": "b"}), ExtenderSaid(first.ask, scores=(("n3", 10),))])
    again = asks(effects)
    assert len(again) == 2
    assert world.step(2, [ExtenderSaid(second.ask, scores=(("n3", 10),))]) == []
    assert world.step(3, [ExtenderSaid(again[0].ask, scores=(("n2", 10),))]) == []
    assert placed(world.step(4, [ExtenderSaid(again[1].ask)])) == [("web", "n2")]


def test_an_answer_from_before_the_pod_was_held_for_a_while_does_not_count() -> None:
    world = engine(FILTERS)
    (first,) = asks(world.step(0, [*nodes("n1", "n2"), waiting("web")]))
    world.step(1, [waiting("web", labels=GANG)])
    entry = world.queue.get("default/web")
    assert entry is not None
    assert entry.state is QueueState.GATED
    (again,) = asks(world.step(2, [waiting("web")]))
    assert again.ask != first.ask
    assert world.step(4, [ExtenderSaid(first.ask, nodes=("n1",))]) == []
    assert placed(world.step(5, [ExtenderSaid(again.ask, nodes=("n2",))])) == [("web", "n2")]


def test_an_answer_about_a_pod_that_is_held_does_not_let_it_go() -> None:
    world = engine(FILTERS)
    (ask,) = asks(world.step(0, [*nodes("n1"), waiting("web")]))
    world.step(1, [waiting("web", labels=GANG)])
    assert world.step(2, [ExtenderSaid(ask.ask, nodes=("n1",))]) == []
    entry = world.queue.get("default/web")
    assert entry is not None
    assert entry.state is QueueState.GATED


def test_evictions_do_not_help_on_a_node_that_an_extender_leaves_out_without_a_reason() -> None:
    world = engine(FILTERS)
    (ask,) = asks(world.step(0, [*nodes("n1"), waiting("web")]))
    (said,) = [one for one in world.step(1, [ExtenderSaid(ask.ask, nodes=())]) if isinstance(one, SetCondition)]
    assert said.message.startswith(f"0/1 nodes are available: 1 {LEFT_OUT}.")
    assert "preemption: 0/1 nodes are available: 1 Preemption is not helpful" in said.message


class Prefers:
    """The first node is worth ten to us, all others nothing."""

    name = "Prefers"

    def score(self, pod: PodClass, view: View) -> Scores:
        scores = np.zeros(view.size, np.int64)
        scores[0] = 10
        return scores


@pytest.mark.parametrize(
    "scores, best",
    [
        pytest.param(((("n2", 1),), ()), "n1", id="one point is ten of ours: the first of two equals wins"),
        pytest.param(((("n2", 1),), (("n2", 1),)), "n2", id="points of several extenders add up"),
        pytest.param(((("n2", 0),), ()), "n1", id="no point"),
        pytest.param(((("n2", 10),), ()), "n2", id="as many as there are"),
        pytest.param(((("n2", 11),), ()), "n1", id="more than there are count for nothing"),
        pytest.param(((("n2", -1),), ()), "n1", id="fewer than none count for nothing"),
    ],
)
def test_points_of_extenders_are_added_to_ours(scores: tuple[tuple[tuple[str, int], ...], ...], best: str) -> None:
    plugins = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "Prefers", "weight": 1}]}}
    world = engine(
        SCORES, {**SCORES, "urlPrefix": "http://d"}, others={"Prefers": Prefers}, profiles=[{"plugins": plugins}]
    )
    found = asks(world.step(0, [*nodes("n1", "n2"), waiting("web")]))
    answers = [ExtenderSaid(ask.ask, scores=said) for ask, said in zip(found, scores, strict=True)]
    assert placed(world.step(1, answers)) == [("web", best)]
