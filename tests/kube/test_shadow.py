"""Looking on while another scheduler binds: what is compared, on which state, and what is said of it."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from builders import node, pod
from situate.core.changes import Change, Millis, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect
from situate.core.engine.engine import Engine
from situate.core.model.pod import Pod
from situate.kube.shadow import DIFFERENCES, WINDOW, WINDOW_S, Shadow, ShadowReport
from situate.loop.drive import Drive
from situate.loop.metrics import Metrics

FOUR = [NodeSeen(node(f"n{at}", cpu="4", memory="4Gi", pods=20)) for at in range(4)]


class Stepping(Drive):
    """A drive at time 0 that keeps what the engine asks for."""

    def __init__(self) -> None:
        self.wanted: list[Effect] = []
        super().__init__(Engine(default_configuration()), clock=lambda: 0, observers=[self])

    def before(self, engine: Engine, now: Millis, changes: Sequence[Change]) -> None:
        pass

    def after(self, engine: Engine, now: Millis, effects: Sequence[Effect], seconds: float) -> None:
        self.wanted += effects


class LookingOn:
    """A shadow with all around it, and a clock that is set by hand."""

    def __init__(self, *changes: Change) -> None:
        self.drive = Stepping()
        self.report = ShadowReport()
        self.metrics = Metrics()
        self.now_s = 0.0
        self.shadow = Shadow(self.drive, self.report, self.metrics, clock=lambda: self.now_s)
        self.shadow.tell(changes)

    def tell(self, *changes: Change) -> None:
        self.shadow.tell(changes)

    def results(self) -> dict[str, int]:
        self.shadow.finish()
        return {result: count for result, count in self.report.counts.items() if count}


def seen(name: str, node_name: str = "", **fields: Any) -> PodSeen:
    asked = {"cpu": "1", "memory": "1Gi", **fields}
    return PodSeen(pod(name, uid=f"uid-{name}", node_name=node_name, **asked))


# -- what is compared ------------------------------------------------------------------------------------------------


def test_a_bind_is_judged_on_what_was_there_just_before_it() -> None:
    looking = LookingOn(*FOUR[:2])
    # Both are bound in one breath: the second on a cluster with the first, where the other node is the better one.
    looking.tell(seen("a"), seen("b"), seen("a", "n0"), seen("b", "n1"))
    assert looking.results() == {"same": 2}


def test_a_node_of_the_same_score_is_equal() -> None:
    looking = LookingOn(*FOUR)
    looking.tell(seen("a"), seen("a", "n3"))
    assert looking.results() == {"equal": 1}


def test_a_worse_node_is_told_of_by_name_and_by_how_much() -> None:
    looking = LookingOn(*FOUR[:2], seen("running", "n1"))
    looking.tell(seen("a"), seen("a", "n1"))
    assert looking.results() == {"worse": 1}
    (difference,) = looking.report.differences
    assert (difference.pod, difference.theirs, difference.ours) == ("default/a", "n1", "n0")
    assert difference.our_score is not None
    assert difference.their_score is not None
    assert looking.report.gap_most == difference.our_score - difference.their_score > 0


def test_a_node_where_the_pod_does_not_fit_is_told_of_with_the_reason() -> None:
    looking = LookingOn(*FOUR[:2])
    looking.tell(seen("a", cpu="5"), seen("a", "n1", cpu="5"))
    assert looking.results() == {"infeasible": 1}
    (difference,) = looking.report.differences
    assert difference.text == ("default/a went to n1, we would have chosen none: NodeResourcesFit: Insufficient cpu")


def test_pods_that_were_bound_before_we_came_are_nobodys_decision() -> None:
    looking = LookingOn(*FOUR, seen("a", "n0"), seen("b", "n0"))
    looking.tell(seen("a", "n0", labels={"seen": "again"}))
    assert looking.results() == {}


def test_pods_of_schedulers_that_we_have_no_profile_for_are_left_alone() -> None:
    looking = LookingOn(*FOUR)
    looking.tell(seen("a", scheduler_name="other"), seen("a", "n3", scheduler_name="other"))
    assert looking.results() == {}


def test_a_pod_is_compared_once_however_often_it_is_seen_bound() -> None:
    looking = LookingOn(*FOUR)
    looking.tell(seen("a"), seen("a", "n0"), seen("a", "n0", labels={"x": "y"}))
    looking.tell(seen("a", "n0", phase="Running"))
    assert looking.results() == {"same": 1}


def test_another_pod_of_the_same_name_is_another_decision() -> None:
    looking = LookingOn(*FOUR)
    looking.tell(seen("a"), seen("a", "n0"), PodGone(PodRef("default", "a", "uid-a")))
    looking.tell(seen("a"), seen("a", "n0"))
    assert looking.results() == {"same": 2}


def test_a_pod_that_left_unbound_is_forgotten() -> None:
    looking = LookingOn(*FOUR)
    looking.tell(seen("a"), PodGone(PodRef("default", "a", "uid-a")), seen("a", "n0"))
    assert looking.results() == {}


def test_nothing_is_wanted_done_of_anybody() -> None:
    looking = LookingOn(*FOUR[:1])
    looking.tell(seen("a"), seen("large", cpu="8"), seen("a", "n0"), seen("b", priority=9, cpu="4"))
    looking.results()
    assert looking.drive.wanted == []


# -- the order of binds ----------------------------------------------------------------------------------------------


def test_a_choice_made_before_the_last_bind_was_is_explained() -> None:
    looking = LookingOn(*FOUR[:2], seen("running", "n1", cpu="500m", memory="100Mi"))
    # First `a` was decided, for n0, and then `b`, for n1; but b's bind was carried out first.
    looking.tell(seen("a"), seen("b"))
    looking.tell(seen("b", "n1"))
    looking.tell(seen("a", "n0"))
    assert looking.results() == {"same": 1, "explained_by_order": 1}


def test_a_choice_made_after_a_bind_that_is_yet_to_come_is_explained_when_it_comes() -> None:
    looking = LookingOn(*FOUR[:2])
    looking.tell(seen("a"), seen("b", cpu="3"), seen("c", cpu="100m"))
    # `b` was decided first, for n0, so that `a` went to n1 and `c` too; but a's and c's binds came first.
    looking.tell(seen("c", "n1", cpu="100m"), seen("a", "n1"))
    assert looking.report.counts["worse"] == 0
    looking.tell(seen("b", "n0", cpu="3"))
    assert looking.results() == {"equal": 1, "explained_by_order": 1, "same": 1}


def test_a_choice_that_no_order_explains_is_counted_when_enough_binds_went_by() -> None:
    looking = LookingOn(*FOUR[:2], *(seen(f"running-{at}", "n1") for at in range(2)))
    looking.tell(seen("a", cpu="100m"), seen("a", "n1", cpu="100m"))
    for at in range(WINDOW + 2):
        assert looking.report.counts["worse"] == (at == WINDOW + 1)
        looking.tell(seen(f"b-{at}", cpu="1m", memory="1Mi"), seen(f"b-{at}", "n0", cpu="1m", memory="1Mi"))
    assert looking.report.counts["worse"] >= 1


def test_a_choice_is_not_in_doubt_for_longer_than_binds_may_take() -> None:
    looking = LookingOn(*FOUR[:2], seen("running", "n1"))
    looking.tell(seen("a"), seen("a", "n1"))
    assert looking.report.compared == 0
    looking.now_s = WINDOW_S + 1
    looking.tell(FOUR[0])
    assert looking.report.counts["worse"] == 1


def test_what_is_in_doubt_when_we_stop_is_counted_as_it_stands() -> None:
    looking = LookingOn(*FOUR[:2])
    for name in ("a", "b", "c"):
        looking.tell(seen(name, cpu="10"), seen(name, "n1", cpu="10"))
    assert looking.report.compared == 0
    assert looking.results() == {"infeasible": 3}


class Peer:
    """Another scheduler: decides one pod after another, and carries its binds out in an order of its own."""

    def __init__(self, seed: int, nodes: Sequence[Change]) -> None:
        self.dice = random.Random(seed)
        self.engine = Engine(default_configuration())
        self.engine.step(0, nodes)

    def decide(self, wanted: Pod) -> Change:
        (bind,) = (one for one in self.engine.step(0, [PodSeen(wanted)]) if isinstance(one, Bind))
        return PodSeen(replace(wanted, spec=replace(wanted.spec, node_name=bind.node)))

    def swapped(self, binds: list[Change]) -> list[Change]:
        """Neighbours change places now and then."""
        at = 0
        while at + 1 < len(binds):
            if self.dice.random() < 0.3:
                binds[at], binds[at + 1] = binds[at + 1], binds[at]
                at += 1
            at += 1
        return binds


@pytest.mark.parametrize("seed", range(8), ids=lambda seed: f"seed {seed}")
def test_a_peer_that_decides_as_we_do_never_differs_whatever_order_neighbours_are_bound_in(seed: int) -> None:
    dice = random.Random(seed)
    peer = Peer(seed, FOUR)
    pods = [
        pod(f"p{at}", uid=f"u{at}", cpu=f"{dice.choice([100, 250, 400])}m", memory=f"{dice.choice([64, 128])}Mi")
        for at in range(30)
    ]
    binds = peer.swapped([peer.decide(one) for one in pods])
    looking = LookingOn(*FOUR, *(PodSeen(one) for one in pods))
    while binds:
        count = dice.randrange(1, 5)
        looking.tell(*binds[:count])
        del binds[:count]
    found = looking.results()
    assert sum(found.values()) == 30
    assert set(found) <= {"same", "equal", "explained_by_order"}


def test_without_looking_at_the_order_that_peer_would_seem_to_differ() -> None:
    """So the test above could fail."""
    found: set[str] = set()
    for seed in range(8):
        peer = Peer(seed, FOUR)
        pods = [pod(f"p{at}", uid=f"u{at}", cpu="400m", memory=f"{64 << at % 4}Mi") for at in range(30)]
        looking = LookingOn(*FOUR, *(PodSeen(one) for one in pods))
        looking.tell(*peer.swapped([peer.decide(one) for one in pods]))
        found |= set(looking.results())
    assert "explained_by_order" in found


# -- what is said ----------------------------------------------------------------------------------------------------


def test_the_summary_is_a_table_for_people() -> None:
    looking = LookingOn(*FOUR[:2], seen("running", "n1"))
    looking.tell(seen("a"), seen("a", "n0"), seen("b"), seen("b", "n1"), seen("c", cpu="9"), seen("c", "n0", cpu="9"))
    looking.shadow.finish()
    lines = looking.report.text().splitlines()
    assert lines[0].startswith("3 pods were bound")
    assert any(line.split()[:3] == ["same", "node", "1"] for line in lines)
    assert any("default/c went to n0, we would have chosen none" in line for line in lines)


def test_a_summary_of_nothing_says_so() -> None:
    assert ShadowReport().text() == "No pod was bound while the shadow watched.\n"


def test_the_summary_is_json_for_programs() -> None:
    looking = LookingOn(*FOUR[:2], seen("running", "n1"))
    looking.tell(seen("a"), seen("a", "n1"))
    looking.shadow.finish()
    said = msgspec.json.decode(looking.report.json())
    assert (said["compared"], said["agreed"], said["results"]["worse"]) == (1, 0, 1)
    assert said["differences"][0]["ours"] == "n0"
    assert said["worseBy"]["most"] == said["differences"][0]["ourScore"] - said["differences"][0]["theirScore"]


def test_only_the_last_differences_are_kept_by_name() -> None:
    looking = LookingOn(*FOUR[:1])
    for at in range(DIFFERENCES + 5):
        looking.tell(seen(f"a-{at}", cpu="9"), seen(f"a-{at}", "n0", cpu="9"))
        looking.shadow.finish()  # a window of one: comparing takes the square of the binds in it
    assert looking.report.counts["infeasible"] == DIFFERENCES + 5
    assert [len(looking.report.differences), looking.report.differences[-1].pod] == [
        DIFFERENCES,
        f"default/a-{DIFFERENCES + 4}",
    ]


def test_results_are_metrics_too() -> None:
    looking = LookingOn(*FOUR[:2], seen("running", "n1"))
    looking.tell(seen("a"), seen("a", "n0"), seen("b", cpu="9"), seen("b", "n0", cpu="9"))
    looking.shadow.finish()
    text = looking.metrics.render().decode()
    assert 'situate_shadow_decisions_total{result="same"} 1.0' in text
    assert 'situate_shadow_decisions_total{result="infeasible"} 1.0' in text
    assert "situate_shadow_score_gap_count 1.0" in text
