"""Whose a pod is: exactly one member's, the same to everybody, and moved by nothing but its owner's leaving or a better
one's coming."""

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import pod, selector
from situate.core.fleet.ranking import key_of, pools_dealt, ranked, weighed
from situate.core.model.meta import OwnerReference
from situate.core.model.pod import Affinity, PodAffinity, PodAffinityTerm

NAMES = st.lists(st.text("abcdefgh", min_size=1, max_size=4), min_size=1, max_size=7, unique=True)
KEYS = st.text(min_size=1, max_size=12)


@given(KEYS, NAMES)
def test_everybody_who_knows_the_same_members_comes_to_the_same_line(key: str, names: list[str]) -> None:
    assert ranked(key, names) == ranked(key, sorted(names, reverse=True))
    assert sorted(ranked(key, names)) == sorted(names)


@given(st.lists(KEYS, min_size=1, max_size=30), NAMES, st.data())
def test_when_a_member_goes_only_its_keys_move_and_each_to_the_next_in_line(
    keys: list[str], names: list[str], data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(names))
    left = [name for name in names if name != gone]
    for key in keys:
        before = ranked(key, names)
        assert ranked(key, left) == [name for name in before if name != gone]


def test_the_work_is_divided_alike() -> None:
    names = ["one", "two", "three"]
    firsts = [ranked(f"pod-{number}", names)[0] for number in range(9_000)]
    for name in names:
        assert 2_800 < firsts.count(name) < 3_200


def test_the_hash_is_the_same_in_every_process_and_release() -> None:
    assert ranked("0a1b", ["one", "two", "three"]) == ["one", "three", "two"]


def test_a_pool_is_first_in_proportion_to_its_nodes() -> None:
    firsts = [weighed(f"pod-{number}", {"large": 900, "small": 100})[0] for number in range(5_000)]
    assert 4_350 < firsts.count("large") < 4_650


@given(NAMES, NAMES)
@settings(max_examples=100)
def test_pools_are_dealt_evenly_and_nobody_is_without_one(pools: list[str], names: list[str]) -> None:
    dealt = pools_dealt(pools, names)
    assert sorted(dealt) == sorted(pools)
    held = {name: sum(name in owners for owners in dealt.values()) for name in names}
    if len(pools) >= len(names):
        assert all(len(owners) == 1 for owners in dealt.values())
        assert max(held.values()) - min(held.values()) <= 1
    else:
        assert set(held.values()) == {1}
        sizes = [len(owners) for owners in dealt.values()]
        assert max(sizes) - min(sizes) <= 1
    assert min(held.values()) >= 1


def test_pods_of_a_gang_have_one_key() -> None:
    labels = {"situate.dev/gang": "train", "situate.dev/gang-size": "2"}
    assert key_of(pod("a", uid="1", labels=labels)) == key_of(pod("b", uid="2", labels=labels))
    assert key_of(pod("a", uid="1")) != key_of(pod("b", uid="2"))


def test_pods_of_a_workload_have_one_key_if_they_have_rules_about_each_other() -> None:
    owner = (OwnerReference(kind="ReplicaSet", name="web", uid="9", controller=True),)
    term = PodAffinityTerm(label_selector=selector(app="web"), topology_key="zone")
    apart = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))
    ruled = [pod(name, uid=name, owner_references=owner, affinity=apart) for name in ("a", "b")]
    plain = [pod(name, uid=name, owner_references=owner) for name in ("a", "b")]
    assert key_of(ruled[0]) == key_of(ruled[1])
    assert key_of(plain[0]) != key_of(plain[1])
