"""The revisions of a Deployment: numbers, history and clean-up of its ReplicaSets."""

from collections.abc import Mapping, Sequence

from situate.core.model.apps import Deployment, ManagedReplicaSet
from situate.core.model.integers import next_int64, parse_count
from situate.core.reconcile.rollout import DESIRED, MAXIMUM, max_surge

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
HISTORY_MAX = 2_000
"""The length limit of the revision history."""
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)


def revision_of(annotations: Mapping[str, str]) -> int:
    return parse_count(annotations.get(REVISION, "")) or 0


def replica_annotations(one: Deployment) -> dict[str, str]:
    """The Deployment's size in the ReplicaSet's annotations, to detect later changes."""
    return {DESIRED: str(one.spec.replicas), MAXIMUM: str(one.spec.replicas + max_surge(one))}


def new_annotations(one: Deployment, new: ManagedReplicaSet | None, old: Sequence[ManagedReplicaSet]) -> dict[str, str]:
    """The annotations to change on the newest ReplicaSet, existing or new.

    A ReplicaSet that becomes the newest again is a rollback: it gets a new number, and keeps the old one in its
    history.
    """
    held: Mapping[str, str] = {} if new is None else new.metadata.annotations
    wanted = {key: value for key, value in one.metadata.annotations.items() if key not in _NOT_COPIED}
    number = next_int64(max((revision_of(each.metadata.annotations) for each in old), default=0))
    if revision_of(held) < number:
        wanted[REVISION] = str(number)
        if held.get(REVISION):
            wanted[HISTORY] = _history(held.get(HISTORY, ""), held[REVISION])
    return {key: value for key, value in wanted.items() if held.get(key) != value}


def _history(past: str, revision: str) -> str:
    parts = [*past.split(","), revision] if past else [revision]
    while len(parts) > 1 and len(",".join(parts)) > HISTORY_MAX:
        parts.pop(0)
    return ",".join(parts)


def forgotten(one: Deployment, old: Sequence[ManagedReplicaSet]) -> list[ManagedReplicaSet]:
    """Empty old ReplicaSets beyond the history limit."""
    alive = [each for each in old if each.metadata.deletion_timestamp is None]
    alive.sort(key=lambda each: (revision_of(each.metadata.annotations), each.metadata.creation_timestamp or ""))
    excess = max(len(alive) - one.spec.revision_history_limit, 0)
    return [
        each
        for each in alive[:excess]
        if not each.spec.replicas
        and not each.status.replicas
        and each.metadata.generation <= each.status.observed_generation
    ]
