"""What is held: any order of comings and goings gives the same answers as looking at everything."""

from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.managed import ManagedPod
from situate.core.model.stored import Owner, StoredMeta, controller_of
from situate.core.reconcile.objects import ObjectIndex, controller_ref, ref_of

NAMES, SPACES, OWNERS = st.sampled_from("abc"), st.sampled_from(["x", "y"]), st.sampled_from(["", "o1", "o2"])


def pod(namespace: str, name: str, owner: str) -> ManagedPod:
    owners = (Owner(kind="ReplicaSet", uid=owner, controller=True),) if owner else ()
    return ManagedPod(metadata=StoredMeta(name=name, namespace=namespace, owner_references=owners))


@given(st.lists(st.tuples(st.booleans(), SPACES, NAMES, OWNERS), max_size=30))
def test_indexes_answer_as_a_plain_dictionary_would(steps: list[tuple[bool, str, str, str]]) -> None:
    held, plain = ObjectIndex(), dict[tuple[str, str], ManagedPod]()
    for put, space, name, owner in steps:
        if put:
            plain[space, name] = pod(space, name, owner)
            held.put(plain[space, name])
        else:
            plain.pop((space, name), None)
            held.drop(ManagedPod, space, name)
    everything = [plain[key] for key in sorted(plain)]
    assert list(held.among(ManagedPod)) == everything
    for space in "xy":
        here = [one for one in everything if one.metadata.namespace == space]
        assert list(held.among(ManagedPod, space)) == here
        for uid in ("", "o1", "o2"):
            mine = [one for one in here if getattr(controller_of(one.metadata), "uid", "") == uid]
            assert list(held.controlled(ManagedPod, space, uid)) == mine
        for name in "abc":
            assert held.get(ManagedPod, space, name) == plain.get((space, name))


def test_a_controller_reference_says_who_manages_and_that_it_waits() -> None:
    one = ManagedPod(metadata=StoredMeta(name="p", namespace="default", uid="u"))
    owner = controller_ref(one)
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("v1", "Pod", "p", "u")
    assert owner.controller
    assert owner.block_owner_deletion
    assert ref_of(one).kind == "Pod"
