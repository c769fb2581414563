"""Counts of a controller's pods: after any history they are what looking at every pod would give."""

from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.managed import ManagedPod, ManagedPodStatus
from situate.core.model.stored import Condition, Owner, StoredMeta, controller_of
from situate.core.reconcile.objects import ObjectIndex
from situate.core.reconcile.pods import is_active, is_ready, is_terminating, ready_condition

NAMES, OWNERS = st.sampled_from("abcd"), st.sampled_from(["", "o1", "o2"])
LABELS = st.sampled_from([{}, {"app": "x"}, {"app": "y", "tier": "z"}])
PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])
READY = st.sampled_from([None, ("True", "2026-01-01T00:00:00Z"), ("True", None), ("False", "2026-01-01T00:00:01Z")])


@st.composite
def pods(draw: st.DrawFn) -> ManagedPod:
    owner, ready = draw(OWNERS), draw(READY)
    meta = StoredMeta(
        name=draw(NAMES),
        namespace="x",
        labels=draw(LABELS),
        deletion_timestamp=draw(st.sampled_from([None, "2026-01-01T00:00:00Z"])),
        owner_references=(Owner(kind="ReplicaSet", uid=owner, controller=True),) if owner else (),
    )
    said = () if ready is None else (Condition(type="Ready", status=ready[0], last_transition_time=ready[1]),)
    return ManagedPod(metadata=meta, status=ManagedPodStatus(phase=draw(PHASES), conditions=said))


def since(pod: ManagedPod) -> str:
    ready = ready_condition(pod)
    return "" if ready is None else ready.last_transition_time or ""


@given(st.lists(pods() | NAMES, max_size=40))
def test_counts_are_what_looking_at_every_pod_would_give(steps: list[ManagedPod | str]) -> None:
    held, plain = ObjectIndex(), dict[str, ManagedPod]()
    for step in steps:
        if isinstance(step, str):
            plain.pop(step, None)
            held.drop(ManagedPod, "x", step)
        else:
            plain[step.metadata.name] = step
            held.put(step)
        for uid in ("", "o1", "o2"):
            mine = [one for one in plain.values() if getattr(controller_of(one.metadata), "uid", "") == uid]
            counts = held.pod_counts("x", uid)
            assert sum(one.total for one in counts.by_labels()) == len(mine)
            for one in counts.by_labels():
                same = [pod for pod in mine if pod.metadata.labels == one.labels]
                active = [pod for pod in same if is_active(pod)]
                ready = [pod for pod in active if is_ready(pod)]
                assert one.total == len(same)
                assert one.staying == sum(pod.metadata.deletion_timestamp is None for pod in same)
                assert one.active == len(active)
                assert one.terminating == sum(map(is_terminating, same))
                assert one.ready == len(ready)
                times = [since(pod) for pod in ready]
                assert one.ready_since == {at: times.count(at) for at in times}
            assert counts.staying_where(lambda labels: "app" in labels) == any(
                "app" in pod.metadata.labels and pod.metadata.deletion_timestamp is None for pod in mine
            )
