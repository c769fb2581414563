"""A recorded history stepped through again: the same effects, or where they are not; and what others would choose."""

from pathlib import Path

import pytest

from builders import node, pod
from loop.small_world import record
from situate.core.changes import Change, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Bind, Effect
from situate.core.engine.engine import Engine
from situate.loop.history import History
from situate.loop.journal import Journal, Keep, segment_name
from situate.loop.replay import ChoiceComparison, ChoiceDifference, Difference, Replay
from situate.loop.run import turn
from situate.wire.config import load_config
from situate.wire.journal import StepChanges, decode_record, encode_record

CONFIG = default_configuration()
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MOST_ALLOCATED = load_config(
    f"""{HEAD}profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated}}}}
""".encode()
)
FIVE_RANDOM = load_config(f"{HEAD}profiles: [{{nodeSample: 5}}]\n".encode())


class Nobody:
    """Carries nothing out."""

    def perform(self, effects: object) -> None:
        pass


def replay(folder: Path) -> Replay:
    history = History(folder)
    return Replay(history, Engine(history.header.config, batch=history.header.batch))


def shadowed(folder: Path, other: KubeSchedulerConfiguration) -> ChoiceComparison:
    history = History(folder)
    engine = Engine(history.header.config, batch=history.header.batch)
    replayed = Replay(history, engine)
    shadow = ChoiceComparison(replayed, engine, other, {})
    assert list(replayed) == []
    return shadow


@pytest.mark.parametrize("config", [CONFIG, FIVE_RANDOM], ids=["all nodes", "five random nodes"])
@pytest.mark.parametrize("seed", range(6))
def test_a_random_history_replays_effect_for_effect(
    tmp_path: Path, seed: int, config: KubeSchedulerConfiguration
) -> None:
    world = record(tmp_path, config, seed=seed, segment_bytes=20_000)
    replayed = replay(tmp_path)
    assert list(replayed) == []
    assert (replayed.steps, replayed.unrecorded) == (60, 0)
    assert replayed.effects == sum(map(len, world.sent)) > 50
    assert len(list(tmp_path.iterdir())) > 1
    assert [step.effects for step in History(tmp_path)] == [tuple(effects) for effects in world.sent]


def test_a_digest_is_enough_to_see_that_nothing_differs(tmp_path: Path) -> None:
    record(tmp_path, CONFIG, keep=Keep.DIGEST)
    assert list(replay(tmp_path)) == []


# ── where it is not the same ────────────────────────────────────────────────────────────────────────────────────────


def tampered(folder: Path, step: int, *changes: Change) -> None:
    """Another history of what one step was told, with checksums that are right."""
    file = folder / segment_name(1)
    lines = file.read_bytes().splitlines(keepends=True)
    for at, line in enumerate(lines):
        told = decode_record(line)
        if isinstance(told, StepChanges) and told.step == step:
            lines[at] = encode_record(StepChanges(step, told.now, changes))
    file.write_bytes(b"".join(lines))


def small(folder: Path, *, keep: Keep = Keep.EFFECTS) -> Path:
    """Two nodes, then a pod that goes to the emptier one, then one that fits nowhere."""
    steps: list[list[Change]] = [
        [NodeSeen(node("n1", cpu="2", pods=10)), NodeSeen(node("n2", cpu="4", pods=10))],
        [PodSeen(pod("web", uid="u1", cpu="1"))],
        [PodSeen(pod("big", uid="u2", cpu="9"))],
    ]
    engine = Engine(CONFIG)
    with Journal(folder, CONFIG, keep=keep) as journal:
        for at, changes in enumerate(steps):
            turn(engine, at, changes, Nobody(), journal)
    return folder


def test_one_changed_change_is_found_where_it_first_matters(tmp_path: Path) -> None:
    tampered(small(tmp_path), 1, NodeSeen(node("n1", cpu="8", pods=10)), NodeSeen(node("n2", cpu="4", pods=10)))
    web = PodRef("default", "web", "u1")
    assert list(replay(tmp_path)) == [Difference(2, 1, Bind(web, "n2", 1), Bind(web, "n1", 1))]


def test_an_effect_that_is_missing_is_found(tmp_path: Path) -> None:
    tampered(small(tmp_path), 2)
    web = PodRef("default", "web", "u1")
    assert list(replay(tmp_path)) == [Difference(2, 1, Bind(web, "n2", 1), None)]


def test_an_effect_too_many_is_found(tmp_path: Path) -> None:
    tampered(small(tmp_path), 1, *[NodeSeen(node("n1", cpu="2", pods=10))], PodSeen(pod("more", uid="u9", cpu="1")))
    first = next(iter(replay(tmp_path)))
    assert first == Difference(1, 1, None, Bind(PodRef("default", "more", "u9"), "n1", 1))


def test_with_a_digest_the_step_is_found(tmp_path: Path) -> None:
    tampered(small(tmp_path, keep=Keep.DIGEST), 2, PodSeen(pod("web", uid="u1", cpu="9")))
    assert list(replay(tmp_path)) == [Difference(2, 0)]


@pytest.mark.parametrize("seed", range(4))
def test_a_random_history_with_one_pod_left_out_differs(tmp_path: Path, seed: int) -> None:
    world = record(tmp_path, CONFIG, seed=seed, steps=30)
    bound = next((at, one) for at, sent in enumerate(world.sent, 1) for one in sent if isinstance(one, Bind))
    told = next(step for step in History(tmp_path) if any(_brings(change, bound[1]) for change in step.changes))
    tampered(tmp_path, told.number, *(change for change in told.changes if not _brings(change, bound[1])))
    first = next(iter(replay(tmp_path)))
    assert told.number <= first.step <= bound[0]


def _brings(change: Change, bind: Bind) -> bool:
    return isinstance(change, PodSeen) and change.pod.metadata.uid == bind.pod.uid


def test_a_step_whose_answer_was_not_written_is_stepped_and_not_compared(tmp_path: Path) -> None:
    small(tmp_path)
    file = tmp_path / segment_name(1)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    replayed = replay(tmp_path)
    assert list(replayed) == []
    assert (replayed.steps, replayed.unrecorded) == (3, 1)


# ── what another configuration would have chosen ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("config", [CONFIG, FIVE_RANDOM], ids=["all nodes", "five random nodes"])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_configuration_would_have_put_no_pod_elsewhere(
    tmp_path: Path, seed: int, config: KubeSchedulerConfiguration
) -> None:
    world = record(tmp_path, config, seed=seed)
    shadow = shadowed(tmp_path, config)
    decided = {one.pod.uid for sent in world.sent for one in sent if isinstance(one, Bind)}
    assert shadow.pods >= len(decided) > 10
    assert shadow.differences == []


def test_another_configuration_is_asked_about_the_same_cluster(tmp_path: Path) -> None:
    """Packing would have filled n1. The third pod is asked about with the first two where they really went."""
    engine = Engine(CONFIG)
    told: list[list[Change]] = [
        [NodeSeen(node("n1", cpu="4", pods=10)), NodeSeen(node("n2", cpu="4", pods=10))],
    ]
    told += [[PodSeen(pod(f"p{at}", uid=f"u{at}", cpu="1"))] for at in range(3)]
    with Journal(tmp_path, CONFIG) as journal:
        sent: list[Effect] = []
        for at, changes in enumerate(told):
            sent += turn(engine, at, changes, Nobody(), journal)
    assert [one.node for one in sent if isinstance(one, Bind)] == ["n1", "n2", "n1"]
    shadow = shadowed(tmp_path, MOST_ALLOCATED)
    # p0: both empty, the first wins; p1: n1 is fuller; p2: both hold one, so the first wins again.
    assert shadow.differences == [ChoiceDifference(PodRef("default", "p1", "u1"), 3, "n2", "n1")]
    assert shadow.pods == 3


def test_a_pod_that_was_refused_may_have_had_a_place(tmp_path: Path) -> None:
    lenient = load_config(
        f"{HEAD}profiles: [{{plugins: {{filter: {{disabled: [{{name: NodeResourcesFit}}]}}}}}}]\n".encode()
    )
    shadow = shadowed(small(tmp_path), lenient)
    assert [(one.pod.name, one.recorded, one.step) for one in shadow.differences] == [("big", "", 3)]
    assert shadow.differences[0].other in ("n1", "n2")


def test_a_profile_that_the_other_does_not_have_places_nobody(tmp_path: Path) -> None:
    named = load_config(f"{HEAD}profiles: [{{schedulerName: another}}]\n".encode())
    shadow = shadowed(small(tmp_path), named)
    note = "has no profile default-scheduler"
    assert shadow.differences == [ChoiceDifference(PodRef("default", "web", "u1"), 2, "n2", "", note)]


def test_a_plugin_that_raises_has_no_answer_and_changes_nothing(tmp_path: Path) -> None:
    class Broken:
        def check_one(self, pod: object, node: object) -> None:
            raise RuntimeError("out of order")

    config = load_config(f'{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: "x:Broken"}}]}}}}}}]\n'.encode())
    history = History(small(tmp_path))
    engine = Engine(history.header.config, batch=history.header.batch)
    replayed = Replay(history, engine)
    shadow = ChoiceComparison(replayed, engine, config, {"x:Broken": Broken})
    assert list(replayed) == []
    (web,) = shadow.differences
    assert (web.recorded, web.other) == ("n2", "")
    assert "out of order" in web.note


def test_a_pod_that_comes_again_under_its_name_is_another_pod(tmp_path: Path) -> None:
    engine = Engine(CONFIG)
    told: list[list[Change]] = [
        [NodeSeen(node("n1", cpu="4", pods=10)), NodeSeen(node("n2", cpu="4", pods=10))],
        [PodSeen(pod("there", uid="t", cpu="1", node_name="n1"))],
        [PodSeen(pod("web", uid="u1", cpu="1"))],
        [PodGone(PodRef("default", "web", "u1"))],
        [PodSeen(pod("web", uid="u2", cpu="1"))],
    ]
    with Journal(tmp_path, CONFIG) as journal:
        for at, changes in enumerate(told):
            turn(engine, at, changes, Nobody(), journal)
    shadow = shadowed(tmp_path, MOST_ALLOCATED)
    assert [(one.pod.uid, one.step) for one in shadow.differences] == [("u1", 3), ("u2", 5)]
