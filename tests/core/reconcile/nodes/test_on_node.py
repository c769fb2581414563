"""Pods by node: what is kept is what looking through all of them would find."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.reconcile.nodes.cases import pod
from situate.core.model.managed import ManagedPod
from situate.core.model.stored import Owner, StoredMeta
from situate.core.reconcile.objects import ObjectIndex

STEPS = st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from(["", "a", "b", "gone"]), st.sampled_from("xy")))


@given(STEPS)
def test_pods_of_a_node_are_those_that_are_bound_to_it(steps: list[tuple[str, str, str]]) -> None:
    held, known = ObjectIndex(), dict[str, ManagedPod]()
    for name, on, owner in steps:
        if on == "gone":
            held.drop(ManagedPod, "default", name)
            known.pop(name, None)
            continue
        made = pod(name, on=on)
        meta = StoredMeta(name=name, namespace="default", owner_references=(Owner(uid=owner, controller=True),))
        known[name] = ManagedPod(metadata=meta, spec=made.spec)
        held.put(known[name])
    for node in "ab":
        expected = [known[name] for name in sorted(known) if known[name].spec.node_name == node]
        assert list(held.on_node(node)) == expected
