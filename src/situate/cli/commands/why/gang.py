"""What `situate why` says of a pod's gang: what it waits for, and what its PodGroup asks for without effect."""

from situate.cli.input.cluster import ClusterObjects
from situate.cli.input.notes import ignored_field_notes
from situate.core.gang.members import Gang, demands_of, group_of, too_few
from situate.core.gang.naming import gang_of
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.state.cluster import FINISHED_PHASES, Cluster


def gang_notes(pod: Pod, objects: ClusterObjects, cluster: Cluster) -> list[str]:
    """Nothing for a pod that is in no gang."""
    name = gang_of(pod)
    if name is None:
        return []
    pods = (one for one in objects.pods if gang_of(one) == name and one.status.phase not in FINISHED_PHASES)
    gang = Gang(name, {key_of(one.metadata): one for one in (pod, *pods)})
    group = group_of(gang, cluster.objects)
    ignored = [] if group is None else ignored_field_notes([group])
    demands = demands_of(gang, cluster.objects)
    if pod.spec.node_name or not demands.min_count:
        return ignored
    if demands.missing:
        return [f"waiting for {demands.missing}", *ignored]
    members = gang.members.values()
    here = sum(one.metadata.deletion_timestamp is None and not one.spec.scheduling_gates for one in members)
    enough = f"gang {name} is complete: its {demands.min_count} pods are placed together or not at all"
    return [too_few(name, demands, here) or enough, *ignored]
