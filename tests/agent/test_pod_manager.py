"""The pods of a node, to the second: snapshots, relists, the checkpoint and the fence, in virtual time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent import timed
from agent.timed import TimedAgent, scripted
from agent.world import NODE, pod
from situate.agent import agent, pod_manager
from situate.agent.checkpoint import load, save
from situate.agent.control_plane import ControlPlaneError, LeaseLostError, NotServedError, PodUpdate, SnapshotUpdate
from situate.agent.pod_manager import CHECKPOINT, RETRY_S, PodManager
from situate.agent.worker import PodWorker
from situate.core.reconcile.nodes.fencing import STOP_MS, agent_stops_ms

STAY = scripted("stay")
CLOSES_S = agent_stops_ms(40_000) / 1_000


@pytest.fixture
def here(tmp_path: Path) -> Iterator[TimedAgent]:
    made = TimedAgent(tmp_path)
    yield made
    made.loop.close()


def put(here: TimedAgent, *containers: dict[str, Any], **more: Any) -> Callable[[], None]:
    return lambda: here.plane.put(pod(*(containers or (STAY,)), **more))


def near(*times: float) -> list[Any]:
    return [pytest.approx(at, abs=0.21) for at in times]


def come_back(here: TimedAgent) -> Callable[[], None]:
    def back() -> None:
        here.plane.away = False

    return back


def saved(tmp_path: Path) -> Any:
    return load(tmp_path / CHECKPOINT, NODE)


# -- snapshots and the checkpoint ------------------------------------------------------------------------------------


def test_a_pod_is_started_when_the_snapshot_has_it_and_is_on_disk_then(here: TimedAgent, tmp_path: Path) -> None:
    here.plane.unlisted.append("p")

    def listed() -> None:
        here.plane.unlisted.clear()
        here.plane.tell_snapshot()

    here.play(6, (1, put(here)), (4, listed))
    assert here.runtime.times("start") == near(4)
    found = saved(tmp_path)
    assert ([one["metadata"]["uid"] for one in found.pods], found.versions) == (["uid-p"], {"uid-p": 1})
    assert found.snapshot.version == here.plane.version == here.plane.renewals[-1].acknowledged


def test_a_snapshot_with_a_pod_that_was_not_seen_is_not_acknowledged(here: TimedAgent) -> None:
    given = pod(STAY)

    def only_snapshot() -> None:
        here.plane.pods_held["p"] = given
        here.plane.tell_snapshot()

    here.play(8, (1, only_snapshot), (5, lambda: here.plane.put(given)))
    acknowledged = [at for what, version, at in here.plane.calls if what == "renew" and version != "0"]
    assert acknowledged
    assert min(acknowledged) >= 5


def test_a_node_that_is_not_registered_has_no_snapshot_to_watch(here: TimedAgent) -> None:
    here.plane.refused["register"] = ControlPlaneError("busy")
    here.play(6)
    assert here.plane.asked_since == []


def test_an_older_snapshot_changes_nothing(here: TimedAgent, tmp_path: Path) -> None:
    here.plane.version = 10
    here.play(9, (1, put(here)), (5, lambda: here.plane.tell_snapshot(3)))
    assert saved(tmp_path).snapshot.version > 10
    assert len(here.runtime.times("start")) == 1


def test_a_checkpoint_that_cannot_be_saved_is_not_acknowledged_and_saved_later(
    here: TimedAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = list[float]()

    def full(path: Path, checkpoint: Any) -> None:
        tries.append(here.loop.now)
        if here.loop.now < 4:
            raise OSError(28, "no space left")
        save(path, checkpoint)

    monkeypatch.setattr(pod_manager, "save", full)
    here.plane.put(pod(STAY))
    here.play(8)
    acknowledged = [at for what, version, at in here.plane.calls if what == "renew" and version != "0"]
    assert min(acknowledged) >= 4
    assert saved(tmp_path).snapshot.version == here.plane.version == here.plane.renewals[-1].acknowledged
    gaps = {round(after - before, 1) for before, after in pairwise(tries[:4])}
    assert gaps == {RETRY_S + pod_manager.SAVE_S}


def test_a_watch_of_snapshots_that_breaks_begins_again_from_the_known_version(here: TimedAgent) -> None:
    here.play(12, (1, put(here)), (4, here.plane.cut), (6.5, come_back(here)), (9, put(here, name="q", uid="uid-q")))
    assert here.plane.asked_since[0] == 0
    assert here.plane.asked_since[-1] > 0
    assert len(here.runtime.orders) == 2


def test_on_a_server_without_snapshots_a_pod_starts_when_it_is_seen(
    here: TimedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(node: str = "", since: int = 0) -> AsyncIterator[SnapshotUpdate]:
        if node == NODE:
            raise NotServedError("unknown kind")
        yield SnapshotUpdate(node, since, None)

    monkeypatch.setattr(here.plane, "watch_snapshots", none)
    here.plane.put(pod(STAY))
    here.play(4, (2, put(here, name="q", uid="uid-q")))
    assert here.runtime.times("start") == near(0, 2)
    assert {about.version for _, _, about in here.plane.reports} == {None}


# -- the next agent --------------------------------------------------------------------------------------------------


def test_the_next_agent_goes_on_with_what_runs_although_nobody_answers(here: TimedAgent) -> None:
    here.play(5, (1, put(here, scripted("exit", "1", "7"))))
    here.plane.away = True
    here.play(4)
    assert len(here.runtime.orders) == 2, "it is restarted when it has ended"


def test_the_next_agent_starts_nothing_of_which_nothing_is_left_before_the_pod_is_seen(here: TimedAgent) -> None:
    here.play(5, (1, put(here)))
    here.runtime.held.clear()
    here.plane.away = True
    here.play(10, (8, come_back(here)))
    assert here.runtime.times("start")[1] >= 5 + 8


def test_the_next_agent_stops_what_was_deleted_meanwhile(here: TimedAgent, tmp_path: Path) -> None:
    here.play(5, (1, put(here)), (1, put(here, name="q", uid="uid-q")))
    here.plane.drop("p")
    here.play(5)
    assert here.runtime.times("terminate") == near(5)
    assert sorted(here.runtime.held) == ["uid-q"]
    assert [one["metadata"]["name"] for one in saved(tmp_path).pods] == ["q"]


def test_the_next_agent_stops_what_nobody_knows_also_without_a_checkpoint(here: TimedAgent, tmp_path: Path) -> None:
    here.play(5, (1, put(here)), (1, put(here, name="q", uid="uid-q")))
    (tmp_path / CHECKPOINT).write_text("{")
    here.plane.drop("p")
    here.play(5)
    assert len(here.runtime.times("terminate")) == 1
    assert sorted(here.runtime.held) == ["uid-q"]
    assert len(here.runtime.orders) == 2, "the other one goes on"


def test_an_announced_pod_that_runs_already_is_not_stopped(here: TimedAgent, tmp_path: Path) -> None:
    """The snapshot may come after the list of pods."""
    here.play(5, (1, put(here)))
    (tmp_path / CHECKPOINT).unlink()
    here.plane.unlisted.append("p")

    def listed() -> None:
        here.plane.unlisted.clear()
        here.plane.tell_snapshot()

    here.play(8, (4, listed), (6, lambda: here.plane.ask_to_go("p", 1)))
    assert len(here.runtime.orders) == 1
    assert here.runtime.times("terminate") == near(5 + 6), "it has a worker by then"


def test_an_announced_pod_that_goes_before_its_snapshot_comes_is_stopped(here: TimedAgent, tmp_path: Path) -> None:
    here.play(5, (1, put(here)))
    (tmp_path / CHECKPOINT).unlink()
    here.plane.unlisted.append("p")
    here.play(30, (4, lambda: here.plane.drop("p")), (20, here.plane.cut), (22, come_back(here)))
    assert here.runtime.times("terminate") == near(9)
    assert here.runtime.held == {}
    assert len(here.runtime.times("forget", "uid-p")) == 1, "not again after the next list"


# -- changes ---------------------------------------------------------------------------------------------------------


def test_another_pod_of_the_same_name_replaces_the_first(here: TimedAgent) -> None:
    here.play(9, (1, put(here)), (4, put(here, uid="uid-2")))
    assert here.runtime.times("terminate") == near(4)
    assert sorted(here.runtime.held) == ["uid-2"]


def test_an_older_version_of_a_pod_is_ignored(here: TimedAgent) -> None:
    def version(number: str, **meta: Any) -> Callable[[], None]:
        given = pod(STAY)
        given["metadata"] |= {"resourceVersion": number, **meta}
        return lambda: here.plane.put(given)

    gone = {"deletionTimestamp": "2027-01-15T08:00:00Z"}
    here.play(9, (1, version("10")), (4, version("9", **gone)))
    assert here.runtime.times("terminate") == []


def test_an_update_that_comes_late_is_ignored(here: TimedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(pod(STAY)).encode()

    async def pods(node: str = "") -> AsyncIterator[PodUpdate]:
        for update in (
            PodUpdate("default", "p", body, version=5),
            PodUpdate("", "", None, listed=True),
            PodUpdate("default", "p", None, version=4),
        ):
            yield update
        await asyncio.Event().wait()

    here.plane.pods_held["p"] = pod(STAY)
    here.plane.version = 1
    monkeypatch.setattr(here.plane, "watch_pods", pods)
    here.play(5)
    assert here.runtime.times("terminate") == []
    assert len(here.runtime.orders) == 1


def test_a_pod_that_does_not_fit_is_rejected_and_one_that_ends_makes_room(here: TimedAgent) -> None:
    large = scripted("stay", resources={"requests": {"cpu": "1000"}})
    here.play(5, (1, put(here, large)))
    assert (here.plane.phase(), here.plane.status()["reason"]) == ("Failed", "OutOfcpu")
    assert here.runtime.orders == []
    assert len(here.plane.said("OutOfcpu")) == 1
    assert here.plane.times("get", NODE), "it reads the node again before"


def test_a_pod_that_the_agent_cannot_judge_is_rejected(here: TimedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise LookupError("y" * 2_000)

    monkeypatch.setattr(pod_manager, "rejection", broken)
    here.play(5, (1, put(here)))
    assert here.plane.status()["reason"] == "UnexpectedAdmissionError"
    assert here.plane.status()["message"].startswith("Pod was rejected: LookupError: yyy")
    assert len(here.plane.status()["message"]) <= 1_024
    assert here.runtime.orders == []


def test_a_worker_that_fails_is_started_again(here: TimedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    run, fails = PodWorker.run, [True]

    async def broken(self: PodWorker) -> None:
        if fails:
            fails.clear()
            raise LookupError("broken")
        await run(self)

    monkeypatch.setattr(PodWorker, "run", broken)
    here.play(5, (1, put(here)))
    assert here.runtime.times("start") == near(1 + RETRY_S)


def test_a_worker_of_a_pod_that_is_gone_is_not_started_again(here: TimedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[float]()

    async def broken(self: PodWorker) -> None:
        begun.append(here.loop.now)
        raise LookupError("broken")

    monkeypatch.setattr(PodWorker, "run", broken)
    here.play(6, (1, put(here)), (1.5, lambda: here.plane.drop("p")))
    assert len(begun) == 1


def test_a_watch_of_pods_that_breaks_begins_again(here: TimedAgent) -> None:
    here.play(12, (1, put(here)), (4, here.plane.cut), (6.2, come_back(here)), (9, lambda: here.plane.drop("p")))
    assert here.runtime.times("terminate") == near(9)


def test_a_defect_in_the_watch_ends_the_agent(here: TimedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started it starts it again; one that cannot see its pods must not keep its lease."""

    def broken(_node: str) -> Any:
        raise LookupError("broken")

    monkeypatch.setattr(here.plane, "watch_pods", broken)
    here.play(40)
    assert here.plane.calls
    assert max(at for _, _, at in here.plane.calls) < 1


def test_a_pod_that_went_while_nobody_watched_is_stopped_by_the_next_list(here: TimedAgent) -> None:
    here.play(12, (1, put(here)), (4, here.plane.cut), (5, here.plane.pods_held.clear), (6.5, come_back(here)))
    (stopped,) = here.runtime.times("terminate")
    assert 6.5 <= stopped <= 6.5 + RETRY_S + 0.2


# -- the fence and the end -------------------------------------------------------------------------------------------


def test_without_its_lease_a_node_stops_its_pods_and_starts_them_when_it_has_listed_them_again(
    here: TimedAgent,
) -> None:
    here.play(60, (1, put(here, scripted("hang"))), (5, here.plane.cut), (45, come_back(here)))
    (asked,), (killed,) = here.runtime.times("terminate"), here.runtime.times("kill")
    renewed = max(at for what, _, at in here.plane.calls if what == "renew" and at < 5)
    assert asked == pytest.approx(renewed + CLOSES_S, abs=0.2)
    assert killed == pytest.approx(renewed + CLOSES_S + STOP_MS / 1_000, abs=0.2)
    assert here.runtime.times("start")[1] >= 45


def test_containers_that_the_fence_stopped_start_at_once_however_often_that_happened(here: TimedAgent) -> None:
    cuts = [(at, here.plane.cut) for at in (5, 65, 125, 185)]
    returns = [(at + 40, come_back(here)) for at in (5, 65, 125, 185)]
    here.play(240, (1, put(here, scripted("stay"))), *cuts, *returns)
    starts = here.runtime.times("start")
    assert len(starts) == 5
    assert all(45 <= at - 60 * number <= 45 + RETRY_S + 0.2 for number, at in enumerate(starts[1:]))
    assert here.plane.said("BackOff") == []


def test_work_that_the_fence_interrupted_is_not_done_even_if_it_exits_with_0(here: TimedAgent) -> None:
    here.play(60, (1, put(here, scripted("obey"), restartPolicy="OnFailure")), (5, here.plane.cut))
    assert here.runtime.times("start") == [1]
    here.plane.away = False
    here.play(20)  # another agent, which must know it, too
    assert len(here.runtime.times("start")) == 2
    assert here.plane.phase() == "Running"
    assert here.plane.state()["lastState"]["terminated"]["reason"] == "Fenced"


def test_an_agent_that_ends_its_pods_kills_those_that_do_not_stop(tmp_path: Path) -> None:
    here = TimedAgent(tmp_path, ends_pods=True)
    here.play(5, (1, put(here, scripted("hang"))), (1, put(here, name="q", uid="uid-q")))
    assert len(here.runtime.times("terminate")) == 2
    assert here.runtime.times("kill")[0] == pytest.approx(5 + agent.SHUT_DOWN_S, abs=0.3)
    assert all(runs[-1].is_over for one in here.runtime.held.values() for runs in one.values())
    assert here.runtime.times("close", "")
    here.loop.close()


def test_an_agent_that_ends_kills_what_never_started_and_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = TimedAgent(tmp_path, ends_pods=True)
    runtime = here.runtime

    def kill(uid: str, name: str) -> None:
        runtime.note("kill", name)
        here.loop.call_later(1, lambda: runtime.end(uid, name, 137))

    monkeypatch.setattr(runtime, "kill", kill)
    monkeypatch.setattr(timed, "START_S", 1_000)
    here.play(5, (1, put(here)))
    (killed,), (closed,) = runtime.times("kill"), runtime.times("close", "")
    assert killed == pytest.approx(5 + agent.SHUT_DOWN_S, abs=0.3)
    assert closed == pytest.approx(killed + 1, abs=0.3)
    assert runtime.held["uid-p"]["c"][-1].is_over
    here.loop.close()


def test_what_is_left_of_a_pod_that_is_gone_is_ended_once(here: TimedAgent) -> None:
    here.play(5, (1, put(here)))
    del here.plane.pods_held["p"]
    here.play(60, (20, here.plane.cut), (25, come_back(here)))
    assert len(here.runtime.times("terminate")) == 1
    assert len(here.runtime.times("forget", "uid-p")) == 1, "not again after the next list"


def test_an_agent_whose_node_another_has_taken_ends_and_its_containers_with_it(here: TimedAgent) -> None:
    def take() -> None:
        here.plane.refused["renew"] = LeaseLostError("another agent")

    here.play(60, (1, put(here)), (5, take))
    (closed,) = here.runtime.times("close", "")
    assert closed < 30
    assert len(here.runtime.times("terminate")) == 1
    assert here.runtime.held["uid-p"]["c"][-1].is_over


def test_an_agent_that_leaves_its_pods_alone_asks_none_to_stop(here: TimedAgent) -> None:
    here.play(5, (1, put(here)))
    assert here.runtime.times("terminate") == []
    assert here.runtime.times("close", "")


def test_the_configuration_of_the_snapshot_is_used_and_outlives_the_agent(here: TimedAgent) -> None:
    here.plane.configuration = {"leaseDurationSeconds": 20, "renewIntervalSeconds": 4}
    here.play(20, (1, put(here)))
    assert here.plane.renewals[-1].lease_s == 20
    assert here.plane.lease_s == 20
    here.play(1)
    assert here.plane.lease_s == 20, "of the next agent's first request, too"


def test_containers_that_run_are_named(here: TimedAgent) -> None:
    found: list[list[tuple[str, str]]] = []

    def look() -> None:
        assert here.agent is not None
        manager: PodManager = here.agent.pods
        found.append(manager.running_containers())

    inits = [scripted("exit", "0", "2", name="i")]
    here.play(8, (1, put(here, initContainers=inits)), (2, look), (6, look))
    assert found == [[("uid-p", "i")], [("uid-p", "c")]]
