"""What must hold of gangs: all or nothing, in one domain if they say so, and evicted whole if they say that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from situate.core.changes import PodRef
from situate.core.gang.members import Demands, Gang, demands_of
from situate.core.gang.naming import GangName, gang_of
from situate.core.gang.plan import Member, Planner, plan_enough
from situate.core.gang.topology import Domain, domains, taken
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.place.filtering import fits_at
from situate.core.place.profile import Profile
from situate.core.place.selecting import NOWHERE
from situate.core.state.classes import PodClass
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.core.state.view import View
from situate.sim.expected_state import ExpectedState


def gang_in(expected: ExpectedState, name: GangName) -> tuple[Gang, Demands]:
    """A gang as it was told of: all its pods that have not finished."""
    members = {
        key: pod
        for key, pod in expected.pods.items()
        if gang_of(pod) == name and pod.status.phase not in FINISHED_PHASES
    }
    gang = Gang(name, members)
    return gang, demands_of(gang, expected.cluster.objects)


def placed(expected: ExpectedState, gang: Gang) -> list[str]:
    """Those that are bound, or have a node, and are not leaving."""
    return [
        key
        for key, pod in gang.members.items()
        if pod.metadata.deletion_timestamp is None and (pod.spec.node_name or key in expected.pending_binds)
    ]


def decided_together(
    expected: ExpectedState, profile: Profile, keys: Mapping[str, bool], name: GangName
) -> Iterator[str]:
    """Some pods of a gang were given nodes at once: they must be enough, and each must fit beside the others.

    They were put there in an order that is not known. Who does not fit beside those before it in `keys` may want to be
    near one that comes after, and so must fit beside all.
    """
    gang, demands = gang_in(expected, name)
    if len(placed(expected, gang)) < demands.min_count:
        yield f"gang by halves: {len(placed(expected, gang))} of {name} have nodes, and it needs {demands.min_count}"
    nodes = {key: expected.pending_binds[key].node for key in keys}
    if demands.topology_key:
        values = {expected.nodes[node].metadata.labels.get(demands.topology_key) for node in nodes.values()}
        if len(values) > 1 or None in values:
            yield f"gang torn apart: {name} must keep to one {demands.topology_key}, and has {sorted(map(str, values))}"
    cluster = expected.cluster
    for key, fits in keys.items():
        if fits:
            continue
        pod_row = cluster.pods.rows[key]
        view = View(cluster).without([cluster.pods.bound(pod_row)])
        if not fits_at(profile.filters, cluster.pods.kind(pod_row), view, cluster.pods.node_rows[pod_row]):
            yield f"not eligible: {key} of gang {name} on {nodes[key]}"


def evicted_whole(expected: ExpectedState, victims: Iterable[PodRef]) -> Iterator[str]:
    """Who evicts one pod of a gang that goes as a whole, evicts all of it that is bound."""
    names = dict.fromkeys(gang_of(pod) for ref in victims if (pod := expected.find(ref)) is not None)
    for name in names:
        if name is None:
            continue
        gang, demands = gang_in(expected, name)
        if not demands.disrupted_whole:
            continue
        for pod in gang.members.values():
            stays = pod.metadata.deletion_timestamp is None and pod.metadata.uid not in expected.asked
            if pod.spec.node_name in expected.nodes and stays:
                yield f"gang evicted by halves: {key_of(pod.metadata)} of {name} stays"


def gangs_that_fit(
    expected: ExpectedState,
    profile_of: Callable[[Pod], Profile],
    arrived: Callable[[Pod], tuple[int, int]],
    fresh: Cluster,
) -> Iterator[str]:
    """Gangs of which as many as are needed fit, in one domain if they say so, and are not placed."""
    for name in dict.fromkeys(gang_of(pod) for pod in expected.waiting()):
        if name is None:
            continue
        gang, demands = gang_in(expected, name)
        waiting = sorted(_can_be_placed(expected, gang), key=arrived)
        if not waiting or demands.missing or any(map(expected.extender_calls.has_say, waiting)):
            continue
        if len({pod.spec.scheduler_name for pod in waiting}) > 1 or not all(map(expected.is_ours, waiting)):
            continue
        needed = demands.min_count - len(placed(expected, gang))
        if len(waiting) < needed:
            continue
        members = [Member(key_of(pod.metadata), fresh.class_of(pod), NOWHERE) for pod in waiting]
        planner = Planner(profile_of(waiting[0]), fresh, _promised(expected, gang, waiting, fresh))
        least = max(1, needed)
        count = _most(planner, members, least, _domains(expected, gang, demands, fresh))
        if count >= least:
            yield f"not bound: gang {name} needs {needed} more, and {count} fit"


def _promised(
    expected: ExpectedState, gang: Gang, waiting: Sequence[Pod], fresh: Cluster
) -> list[tuple[PodClass, int]]:
    """Others who were promised a node, and whom the least of the gang does not outrank."""
    least = min(fresh.class_of(pod).priority for pod in waiting)
    found = []
    for key, (ref, node) in expected.nominated.items():
        pod = expected.find(ref)
        if key in gang.members or pod is None or node not in fresh.nodes.rows:
            continue
        kind = fresh.class_of(pod)
        if kind.priority >= least:
            found.append((kind, fresh.nodes.rows[node]))
    return found


def _domains(expected: ExpectedState, gang: Gang, demands: Demands, fresh: Cluster) -> list[Domain | None]:
    """Where the gang may go: anywhere (None), or in one of these."""
    if not demands.topology_key:
        return [None]
    view = View(fresh)
    nodes = [gang.members[key].spec.node_name or expected.pending_binds[key].node for key in placed(expected, gang)]
    where = taken(view, demands.topology_key, nodes)
    if len(where) > 1:
        return []  # it is torn apart already, by others: nobody can put that right
    return [one for one in domains(view, demands.topology_key) if not where or one.value == where[0]]


def _most(planner: Planner, members: Sequence[Member], least: int, within: Sequence[Domain | None]) -> int:
    """The most pods that fit in any of these."""
    rows_of = [None if one is None else one.rows for one in within]
    counts = [plan_enough(planner, members, least, rows)[0].count for rows in rows_of]
    return max(counts, default=0)


def _can_be_placed(expected: ExpectedState, gang: Gang) -> list[Pod]:
    return [
        pod
        for key, pod in gang.members.items()
        if pod.metadata.deletion_timestamp is None
        and not pod.spec.node_name
        and key not in expected.pending_binds
        and not pod.spec.scheduling_gates
    ]
