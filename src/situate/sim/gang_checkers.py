"""Invariants of gangs: all or nothing, in one topology domain if required, and evicted as a whole if required."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

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
    """The gang: all its pods that have not finished."""
    members = {
        key: pod
        for key, pod in expected.pods.items()
        if gang_of(pod) == name and pod.status.phase not in FINISHED_PHASES
    }
    gang = Gang(name, members)
    return gang, demands_of(gang, expected.cluster.objects)


def placed(expected: ExpectedState, gang: Gang) -> list[str]:
    """The pods that are bound or have a node, and are not being deleted."""
    return [
        key
        for key, pod in gang.members.items()
        if pod.metadata.deletion_timestamp is None and (pod.spec.node_name or key in expected.pending_binds)
    ]


def decided_together(
    expected: ExpectedState, profile: Profile, keys: Mapping[str, bool], name: GangName
) -> Iterator[str]:
    """Pods of a gang that got nodes together must be enough, and each must fit next to the others.

    The order of the decisions is unknown. A pod that does not fit next to those before it in `keys` may need a later
    one, so it must fit next to all.
    """
    gang, demands = gang_in(expected, name)
    if len(placed(expected, gang)) < demands.min_count:
        yield f"gang placed in part: {len(placed(expected, gang))} of {name} have nodes, of {demands.min_count}"
    nodes = {key: expected.pending_binds[key].node for key in keys}
    if demands.topology_key:
        values = {expected.nodes[node].metadata.labels.get(demands.topology_key) for node in nodes.values()}
        if len(values) > 1 or None in values:
            yield f"gang split: {name} must stay in one {demands.topology_key}, and has {sorted(map(str, values))}"
    cluster = expected.cluster
    for key, fits in keys.items():
        if fits:
            continue
        pod_row = cluster.pods.rows[key]
        view = View(cluster).without([cluster.pods.bound(pod_row)])
        if not fits_at(profile.filters, cluster.pods.kind(pod_row), view, cluster.pods.node_rows[pod_row]):
            yield f"not eligible: {key} of gang {name} on {nodes[key]}"


def evicted_whole(expected: ExpectedState, victims: Iterable[PodRef]) -> Iterator[str]:
    """An eviction from a gang that is disrupted as a whole must take all its bound pods."""
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
                yield f"gang evicted in part: {key_of(pod.metadata)} of {name} stays"


def gangs_that_fit(
    expected: ExpectedState,
    profile_of: Callable[[Pod], Profile],
    arrived: Callable[[Pod], tuple[int, int]],
    drawing: Container[str],
    fresh: Cluster,
) -> Iterator[str]:
    """Gangs that fit, in one domain if required, and are not placed.

    `drawing`: pods that may still draw the right node, if they are decided by themselves. A plan looks at all nodes.
    """
    for name in dict.fromkeys(gang_of(pod) for pod in expected.waiting()):
        if name is None:
            continue
        gang, demands = gang_in(expected, name)
        waiting = sorted(_can_be_placed(expected, gang), key=arrived)
        if not waiting or demands.missing or any(map(expected.extender_calls.has_say, waiting)):
            continue
        if len({pod.spec.scheduler_name for pod in waiting}) > 1 or not all(map(expected.is_ours, waiting)):
            continue
        needed = max(0, demands.min_count - len(placed(expected, gang)))
        if not demands.min_count or not (needed or demands.topology_key):
            waiting = [pod for pod in waiting if key_of(pod.metadata) not in drawing]
        if not waiting or len(waiting) < needed:
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
    """Nominated pods of other gangs with at least the lowest priority of this gang."""
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
    """The domains for the gang; None: anywhere."""
    if not demands.topology_key:
        return [None]
    view = View(fresh)
    nodes = [gang.members[key].spec.node_name or expected.pending_binds[key].node for key in placed(expected, gang)]
    where = taken(view, demands.topology_key, nodes)
    if len(where) > 1:
        return []  # others have split it: nobody can repair that
    return [one for one in domains(view, demands.topology_key) if not where or one.value == where[0]]


def _most(planner: Planner, members: Sequence[Member], least: int, within: Sequence[Domain | None]) -> int:
    """The most pods that fit in one of the domains."""
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
