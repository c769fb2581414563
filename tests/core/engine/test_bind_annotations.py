"""What plugins write on a pod travels with its bind, and is counted from the moment that it is decided."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from builders import pod
from gang_world import World, member, of
from gpu_builders import gpu_config, gpu_node, share, whole
from situate.core.changes import BindDone, BindFailed, NodeSeen, PodSeen
from situate.core.config.defaults import with_defaults
from situate.core.effects import Bind, Evict
from situate.core.engine.engine import Engine
from situate.core.engine.framework import build_frameworks
from situate.core.model.annotations import GPU_DEVICES, GPU_MILLI
from situate.core.model.gpu import GPU_RESOURCE
from situate.core.model.pod import Pod
from situate.core.place.bind_annotations import bind_annotations, with_annotations
from situate.core.plugins.support.errors import PluginError
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.loop.history import History
from situate.loop.journal import Journal
from situate.loop.replay import Replay
from situate.loop.run import turn
from situate.wire.config import load_config

CONFIG = load_config(gpu_config(), "test.yaml")


def world(*gpus: int, enabled: str = "GpuShare, Fragmentation") -> World:
    nodes = [gpu_node(f"n{at}", gpus=count) for at, count in enumerate(gpus)]
    return World(*nodes, engine=Engine(load_config(gpu_config(enabled), "test.yaml")))


def given(effects: list[object]) -> dict[str, str]:
    """Pod -> devices."""
    return {one.pod.name: dict(one.annotations).get(GPU_DEVICES, "") for one in of(Bind, effects)}  # type: ignore[arg-type]


def test_the_device_arrives_in_the_bind_and_the_next_pod_gets_another() -> None:
    found = given(list(world(2).run(share("a", 600), share("b", 600), whole("c"))))
    assert found == {"a": "0", "b": "1"}, "and for the third there is no device left"


def test_a_pod_that_asks_for_no_gpu_has_nothing_written_on_it() -> None:
    (bind,) = of(Bind, world(2).arrive(pod("web", uid="web", cpu="1")))
    assert bind.annotations == ()


def test_when_the_pod_is_seen_bound_nothing_changes() -> None:
    here = world(2)
    effects = here.arrive(share("a", 600))
    before = here.engine.cluster.touched[:]
    here.carry_out(effects)
    assert here.engine.cluster.touched == before
    assert audit(here.engine.cluster) == []


def test_a_bind_that_is_asked_for_again_names_the_same_device() -> None:
    here = world(2)
    (bind,) = of(Bind, here.arrive(share("a", 600)))
    again = of(Bind, here.step(BindFailed(bind.pod, bind.attempt, "no")) + here.step(after_ms=60_000))
    assert [one.annotations for one in again] == [bind.annotations] == [((GPU_DEVICES, "0"),)]


def test_a_bind_that_came_to_nothing_gives_its_device_back() -> None:
    here = world(1)
    (bind,) = of(Bind, here.arrive(share("a", 600)))
    here.step(BindFailed(bind.pod, bind.attempt, "no", final=True))
    assert View(here.engine.cluster).devices(GPU_RESOURCE).largest.tolist()[0] == 1000


def test_the_pods_of_a_gang_get_devices_side_by_side() -> None:
    """Decided together with their nodes: the order in which they are bound does not matter."""
    here = world(2, 2)
    notes = [{GPU_MILLI: str(milli)} for milli in (300, 700, 300, 700, 1000)]
    pods = [member(f"t{at}", 5, annotations=one, cpu="1") for at, one in enumerate(notes)]
    effects = here.run(*pods)
    binds = of(Bind, effects)
    assert len(binds) == 5
    used: dict[tuple[str, str], int] = {}
    for bind in binds:
        place = bind.node, dict(bind.annotations)[GPU_DEVICES]
        used[place] = used.get(place, 0) + int(notes[int(bind.pod.name[1:])][GPU_MILLI])
    assert all(milli <= 1000 for milli in used.values()), used
    assert audit(here.engine.cluster) == []


def test_a_gang_of_which_one_would_have_to_share_two_devices_is_not_placed() -> None:
    here = world(2)
    pods = [member(f"t{at}", 3, annotations={GPU_MILLI: "600"}, cpu="1") for at in range(3)]
    assert of(Bind, here.run(*pods)) == []
    assert "node(s) didn't have enough room on a single GPU" in here.message("t0")


def test_preemption_frees_a_device_and_the_pod_gets_that_one() -> None:
    here = world(2)
    here.run(share("a", 600), share("b", 600))
    effects = here.run(share("x", 700, priority=10))
    assert len(of(Evict, effects)) == 1
    (victim,) = of(Evict, effects)
    assert given(list(effects)) == {"x": {"a": "0", "b": "1"}[victim.victim.name]}


def test_a_pod_that_is_promised_a_device_keeps_it_from_others() -> None:
    """While its victim takes its time to leave, nobody of lower priority gets what it will leave."""
    here = world(1)
    here.run(share("a", 600))
    here.slow_to_leave = True
    here.run(share("x", 700, priority=10))
    assert of(Bind, here.run(share("y", 400))) == []


@pytest.mark.parametrize(
    "enabled, expected",
    [
        pytest.param("GpuShare, Fragmentation", "1", id="the later has the say"),
        pytest.param("Fragmentation, GpuShare", "0", id="whichever it is"),
        pytest.param("GpuShare", "0", id="the only one has it"),
    ],
)
def test_of_two_that_choose_a_device_the_later_has_the_say(enabled: str, expected: str) -> None:
    """Best fit is device 0, which would then be of no use to anybody who asks for 500."""
    cluster = Cluster()
    bound = [share("a", 350, devices="0", node_name="n1"), share("b", 150, devices="1", node_name="n1")]
    cluster.load([gpu_node("n1", cpu="8")], (), bound)
    arguments = "[{name: Fragmentation, args: {typicalPods: [{gpuMilli: 500}], packing: 0}}]"
    config = load_config(gpu_config(enabled, arguments if "Frag" in enabled else "[]"), "test.yaml")
    profile = build_frameworks(config)["default-scheduler"].profile
    kind = cluster.class_of(share("x", 300))
    assert dict(bind_annotations(profile, kind, View(cluster), 0)) == {GPU_DEVICES: expected}


def test_a_history_with_devices_is_replayed_as_it_was(tmp_path: Path) -> None:
    class Nobody:
        def perform(self, effects: object) -> None: ...

    pods = [share("a", 600), share("b", 600)]
    with Journal(tmp_path / "journal", CONFIG) as journal:
        engine = Engine(CONFIG)
        effects = turn(engine, 0, [NodeSeen(gpu_node("n1")), *map(PodSeen, pods)], Nobody(), journal)
        binds = of(Bind, effects)
        seen: list[Pod] = [with_annotations(one, bind.annotations) for one, bind in zip(pods, binds, strict=True)]
        changes = [BindDone(bind.pod, bind.attempt) for bind in binds]
        turn(engine, 1_000, [*changes, *map(PodSeen, seen)], Nobody(), journal)
    assert given(list(effects)) == {"a": "0", "b": "1"}
    history = History(tmp_path / "journal")
    assert list(Replay(history, Engine(history.header.config))) == []
    assert of(Bind, [effect for step in History(tmp_path / "journal") for effect in step.effects or ()]) == binds


# ── plugins of others ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Stamp:
    said: object = None

    def assign(self, kind: object, view: object, row: int) -> object:
        return {"example.com/row": str(row)} if self.said is None else self.said


def stamped(said: object = None) -> dict[str, str]:
    arguments = "[]" if said is None else f"[{{name: 'x:Stamp', args: {{said: {said}}}}}]"
    config = with_defaults(load_config(gpu_config("'x:Stamp'", arguments), "test.yaml"))
    profile = build_frameworks(config, {"x:Stamp": Stamp})["default-scheduler"].profile
    cluster = Cluster()
    cluster.add_node(gpu_node("n1"))
    return dict(bind_annotations(profile, cluster.class_of(pod("web")), View(cluster), 0))


def test_a_plugin_of_others_may_write_on_pods_too() -> None:
    assert stamped() == {"example.com/row": "0"}


@pytest.mark.parametrize(
    "said, problem",
    [
        ("[1]", "assign gave list, not a mapping of annotations"),
        ("{example.com/row: 1}", "assign gave 'example.com/row': 1, which is no annotation"),
        ("{'not a name': x}", "assign gave 'not a name': 'x', which is no annotation"),
    ],
)
def test_what_is_no_annotation_is_refused_by_name(said: str, problem: str) -> None:
    with pytest.raises(PluginError, match="x:Stamp") as raised:
        stamped(said)
    assert problem in str(raised.value)
