"""Garbage collection: nothing stays that has no owner left, nothing goes that has one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.reconcile.world import Raw, World
from situate.core.model.stored import Owner, StoredMeta
from situate.core.reconcile.effects import ObjectRef
from situate.core.reconcile.garbage import collect, concerned_uids
from situate.core.reconcile.graph import ObjectGraph, OwnedObject


class Plain(World):
    """ConfigMaps that own each other, in a world that knows their kind."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.graph = ObjectGraph([("v1", "ConfigMap"), ("v1", "Node")])

    def add(self, name: str, *owners: str, block: bool = True, namespace: str = "default") -> Raw:
        references = []
        for owner in owners:
            held = self.find("ConfigMap", owner)
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": held["metadata"]["uid"]}
            references.append({**reference, "blockOwnerDeletion": block})
        meta: Raw = {"name": name, "namespace": namespace}
        if references:
            meta["ownerReferences"] = references
        return self.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})

    def own(self, name: str, *owners: Any) -> None:
        self.patch("ConfigMap", name, {"metadata": {"ownerReferences": list(owners)}})


def chain() -> Plain:
    world = Plain()
    world.add("a")
    world.add("b", "a")
    world.add("c", "b")
    world.settle()
    return world


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_what_is_owned_goes_with_its_owner(policy: str) -> None:
    world = chain()
    world.delete("ConfigMap", "a", propagation=policy)
    world.settle()
    assert world.bodies == {}


def test_in_the_foreground_the_owner_goes_last() -> None:
    world = chain()
    world.delete("ConfigMap", "a", propagation="Foreground")
    world.settle()
    assert world.deleted == ["ConfigMap/c", "ConfigMap/b", "ConfigMap/a"]


def test_in_the_background_the_owner_goes_first() -> None:
    world = chain()
    world.delete("ConfigMap", "a")
    world.settle()
    assert world.deleted == ["ConfigMap/a", "ConfigMap/b", "ConfigMap/c"]


def test_orphans_stay_and_know_their_owner_no_more() -> None:
    world = chain()
    world.delete("ConfigMap", "a", propagation="Orphan")
    world.settle()
    assert world.names("ConfigMap") == ["b", "c"]
    assert "ownerReferences" not in world.find("ConfigMap", "b")["metadata"]
    assert world.find("ConfigMap", "c")["metadata"]["ownerReferences"][0]["name"] == "b"


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_one_owner_that_stays_keeps_it_and_the_other_is_struck_off(policy: str) -> None:
    world = Plain()
    world.add("a")
    world.add("keeper")
    world.add("b", "a", "keeper")
    world.delete("ConfigMap", "a", propagation=policy)
    world.settle()
    assert world.names("ConfigMap") == ["b", "keeper"]
    assert [owner["name"] for owner in world.find("ConfigMap", "b")["metadata"]["ownerReferences"]] == ["keeper"]


def test_an_owner_of_the_same_name_but_another_uid_is_not_the_owner() -> None:
    world = Plain()
    world.add("a")
    world.add("b", "a")
    world.gone(world.find("ConfigMap", "a"))
    world.add("a")
    world.settle()
    assert world.names("ConfigMap") == ["a"]


def test_an_owner_in_another_namespace_is_no_owner() -> None:
    world = Plain()
    world.add("a")
    world.add("b", "a", namespace="elsewhere")
    world.settle()
    assert [place[2] for place in world.bodies] == ["a"]


def test_an_owner_without_a_namespace_owns_in_all() -> None:
    world = Plain()
    node = world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}})
    world.add("b")
    world.own("b", {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"]})
    world.settle()
    assert world.names("ConfigMap") == ["b"]


def test_an_owner_of_a_kind_that_is_not_known_here_is_taken_to_be_there() -> None:
    world = Plain()
    world.add("b")
    world.own("b", {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "u"})
    world.settle()
    assert world.names("ConfigMap") == ["b"]


def test_a_dependent_that_does_not_block_is_not_waited_for() -> None:
    world = Plain()
    world.add("a")
    world.add("b", "a", block=False)
    world.patch("ConfigMap", "b", {"metadata": {"finalizers": ["example.com/held"]}})
    world.delete("ConfigMap", "a", propagation="Foreground")
    world.settle()
    assert world.names("ConfigMap") == ["b"]


def test_a_dependent_that_blocks_is_waited_for() -> None:
    world = chain()
    world.patch("ConfigMap", "b", {"metadata": {"finalizers": ["example.com/held"]}})
    world.delete("ConfigMap", "a", propagation="Foreground")
    world.settle()
    assert "a" in world.names("ConfigMap")
    held = [one for one in world.find("ConfigMap", "b")["metadata"]["finalizers"] if one != "example.com/held"]
    world.patch("ConfigMap", "b", {"metadata": {"finalizers": held or None}})
    world.settle()
    assert world.bodies == {}


def test_two_that_own_each_other_go_when_one_is_deleted() -> None:
    world = Plain()
    first = world.add("a")
    world.add("b", "a")
    second = world.find("ConfigMap", "b")["metadata"]["uid"]
    world.own("a", {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": second, "blockOwnerDeletion": True})
    assert first["metadata"]["uid"] != second
    world.settle()
    assert world.names("ConfigMap") == ["a", "b"]
    world.delete("ConfigMap", "a", propagation="Foreground")
    world.settle()
    assert world.bodies == {}


def test_another_version_of_the_same_group_is_the_same_kind() -> None:
    meta = StoredMeta(name="d", namespace="n", uid="1")
    owner = OwnedObject(ObjectRef("apps/v1", "Deployment", "n", "d", "1"), meta, "deployments")
    reference = Owner(api_version="apps/v1beta1", kind="Deployment", name="d", uid="1")
    held = StoredMeta(name="c", namespace="n", uid="2", owner_references=(reference,))
    item = OwnedObject(ObjectRef("v1", "ConfigMap", "n", "c", "2"), held, "configmaps")
    graph = ObjectGraph([("apps/v1", "Deployment"), ("apps/v1beta1", "Deployment")], [owner, item])
    assert collect(item, graph).effects == ()


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    owners=st.lists(st.sets(st.integers(0, 8), max_size=3), min_size=2, max_size=9),
    deleted=st.lists(st.tuples(st.integers(0, 8), st.sampled_from(["Background", "Foreground", "Orphan"])), max_size=3),
)
def test_what_is_left_is_what_a_simple_rule_says(
    seed: int, owners: list[set[int]], deleted: list[tuple[int, str]]
) -> None:
    """Owners come before what they own. The rule: an object goes if it was deleted, or if it had owners and lost all
    of them without being orphaned."""
    world = Plain(seed)
    plain: dict[str, set[str]] = {}
    for at, above in enumerate(owners):
        names = sorted(f"o{each}" for each in above if each < at)
        world.add(f"o{at}", *names)
        plain[f"o{at}"] = set(names)
    for at, policy in deleted:
        name = f"o{at}"
        if name not in plain:
            continue
        world.delete("ConfigMap", name, propagation=policy)
        world.settle()
        gone = [name]
        while gone:
            leaving = gone.pop()
            plain.pop(leaving, None)
            for other, held in plain.items():
                if leaving in held:
                    held.discard(leaving)
                    if not held and not (policy == "Orphan" and leaving == name):
                        gone.append(other)
        assert world.names("ConfigMap") == sorted(plain)
    assert world.settle() == 0


def test_a_new_object_whose_owner_stays_concerns_nobody_and_one_whose_owner_waits_concerns_both() -> None:
    world = Plain()
    owner = world.add("a")["metadata"]["uid"]
    b = world.item(world.add("b", "a"))
    assert list(concerned_uids(None, b, world.graph)) == []
    world.delete("ConfigMap", "a", propagation="Foreground")
    assert list(concerned_uids(None, b, world.graph)) == [b.ref.uid, owner]
    assert list(concerned_uids(b, None, world.graph)) == [owner]
    world.graph.drop(owner)
    assert list(concerned_uids(None, b, world.graph)) == [b.ref.uid]
