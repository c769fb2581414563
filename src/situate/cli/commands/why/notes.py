"""What could not be judged, because it was not there to read: said once, so that nobody trusts more than was looked at.

Only what matters for the pod that is asked about is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from situate.cli.input.cluster import Seen
    from situate.core.model.pod import Pod
    from situate.core.state.cluster import Cluster

__all__ = ["notes_on"]


def notes_on(seen: Seen, cluster: Cluster, pod: Pod) -> list[str]:
    notes = [f"cannot list {name}: {why}" for name, why in sorted(seen.refused.items())]
    missing = [(kind, what) for kind, what in _needed(pod) if kind not in seen.kinds and not seen.refused]
    for what in dict.fromkeys(what for _, what in missing):
        kinds = [kind for kind, told in missing if told == what]
        notes.append(f"no {' and no '.join(kinds)} was given: {what}")
    homeless = sum(len(pods) for pods in cluster.homeless.values())
    if homeless:
        pods, are = ("pod", "is") if homeless == 1 else ("pods", "are")
        notes.append(f"{homeless} bound {pods} {are} on nodes that are not there, and count nowhere")
    return notes


def _needed(pod: Pod) -> list[tuple[str, str]]:
    """Kinds that this pod's answer depends on, and what cannot be judged without them."""
    spec = pod.spec
    needed = [("Node", "there is nowhere to go")]
    if any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes):
        volumes = "its claims are taken for missing, and which nodes reach its volumes cannot be judged"
        needed += [("PersistentVolumeClaim", volumes), ("PersistentVolume", volumes), ("StorageClass", volumes)]
    sides = [] if spec.affinity is None else [spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity]
    terms = [
        term for side in sides if side is not None for term in side.required_during_scheduling_ignored_during_execution
    ]
    if any(term.namespace_selector is not None for term in terms):
        needed.append(("Namespace", "which namespaces its affinity selects cannot be judged"))
    if spec.priority:
        needed.append(("PodDisruptionBudget", "preemption does not know whom budgets protect"))
    return needed
