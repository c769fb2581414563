"""Schedulers that race for the same room: on situate's own server nobody can overfill a node, whoever asks.

kube-apiserver checks no room, so there the same race puts more on nodes than they have: the test of the witness.
racing.py is the race, for sizes of your own.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from kubernetes import racing
from kubernetes.cluster import Cluster
from kubernetes.racing import Outcome, Sizes, Version

SIZES = Sizes(nodes=60, slots=5, within_s=120.0)
KUBE_S = 15.0
"""Long enough to see it; to wait until it comes to rest takes several times as long."""
KUBE_RACES = 5


def check(outcome: Outcome) -> None:
    """No more than fits, not even for a moment; no less either; and everybody else knows why."""
    print(outcome.text())
    assert outcome.moved == []
    assert outcome.overfull == []
    assert outcome.bound == outcome.sizes.capacity
    assert outcome.told == outcome.sizes.pods - outcome.sizes.capacity
    assert outcome.refused > 0, "nobody got in anybody's way: this was no race"
    assert outcome.calm, "somebody goes on asking for what is refused"


@pytest.mark.parametrize("apart", [False, True], ids=["one queue for all", "a queue for each"])
def test_three_schedulers_fill_every_node_and_overfill_none(
    control_plane: Cluster, tmp_path: Path, apart: bool
) -> None:
    check(racing.on_situate(tmp_path / "own", SIZES, apart=apart))


def test_schedulers_inside_two_servers_and_over_http_on_one_etcd_overfill_no_node(
    control_plane: Cluster, tmp_path: Path
) -> None:
    check(racing.on_etcd(tmp_path, SIZES))


def test_the_same_race_on_kube_apiserver_overfills_nodes(cluster: Cluster) -> None:
    """It need not, each time: that depends on who is awake when. One race in four was without harm."""
    for _ in range(KUBE_RACES):
        cluster.wipe()
        cluster.namespace = "default"
        outcome = racing.on_kube(cluster, replace(SIZES, within_s=KUBE_S))
        print(outcome.text())
        assert outcome.moved == []
        assert len(outcome.overfull) >= outcome.bound - SIZES.capacity
        if outcome.bound > SIZES.capacity:
            return
    pytest.fail(f"{KUBE_RACES} races on kube-apiserver overfilled nothing: is the witness blind?")


# ── the witness ─────────────────────────────────────────────────────────────────────────────────────────────────────


def history(*placed: tuple[str, str]) -> list[Version]:
    """A node with room for one; then pods, where they were seen."""
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}}
    made: list[Version] = [(1, "/objects/core/nodes/n", node)]
    for revision, (name, where) in enumerate(placed, start=2):
        spec = {"nodeName": where} if where else {}
        made.append((revision, f"/objects/core/pods/default/{name}", {"spec": spec, "status": {"phase": "Pending"}}))
    return made


def test_the_witness_sees_a_node_that_was_overfull_for_a_moment() -> None:
    versions = history(("a", ""), ("b", ""), ("a", "n"), ("b", "n"))
    versions.append((9, "/objects/core/pods/default/a", None))
    found = racing.judge(Outcome("", SIZES, bound=1), versions)
    assert found.overfull == ["n was overfull with /objects/core/pods/default/b at 5"]


def test_the_witness_sees_a_pod_that_moved() -> None:
    found = racing.judge(Outcome("", SIZES, bound=1), history(("a", ""), ("a", "n"), ("a", "m")))
    assert found.moved == ["/objects/core/pods/default/a went from n to m at 4"]


def test_a_witness_that_saw_not_all_says_so() -> None:
    with pytest.raises(AssertionError, match="before it was bound"):
        racing.judge(Outcome("", SIZES, bound=1), history(("a", "n")))
    with pytest.raises(AssertionError, match="saw 0 pods bound, and there are 1"):
        racing.judge(Outcome("", SIZES, bound=1), history(("a", "")))
