"""InterPodAffinity over columns against the same rules written pod by pod and node by node."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.model.labels import LabelSelector, parse_selector
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodAffinityTerm
from situate.core.model.policy import Namespace
from situate.core.plugins.inter_pod_affinity import InterPodAffinity
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

Labels = dict[str, str]
Placed = tuple[Pod, int]
"""A bound pod and the number of its node."""

KEYS = ("host", "zone", "rack")
REASONS = (
    "",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't match pod affinity rules",
)


class World(NamedTuple):
    nodes: list[Labels]
    namespaces: dict[str, Labels]
    bound: list[Placed]


# -- the twin --------------------------------------------------------------------------------------------------------


def labels_match(selector: LabelSelector | None, labels: Labels) -> bool:
    return parse_selector(selector).matches(labels)


def speaks_of(owner: Pod, term: PodAffinityTerm, other: Pod, world: World, *, waiting: bool) -> bool:
    """Whether a term of `owner`, who is waiting or bound, speaks of `other`."""
    namespace = other.metadata.namespace
    if not term.namespaces and term.namespace_selector is None:
        there = namespace == owner.metadata.namespace
    else:
        there = namespace in term.namespaces
    there = there or labels_match(term.namespace_selector, world.namespaces.get(namespace, {}))
    if waiting:
        there = there or labels_match(term.namespace_selector, {})
    return there and labels_match(term.label_selector, dict(other.metadata.labels))


def terms_of(pod: Pod, side: str) -> tuple[tuple[PodAffinityTerm, ...], tuple[tuple[int, PodAffinityTerm], ...]]:
    """Required terms, and preferred ones with their weight."""
    affinity = getattr(pod.spec.affinity, side) if pod.spec.affinity is not None else None
    if affinity is None:
        return (), ()
    return affinity.required_during_scheduling_ignored_during_execution, tuple(
        (one.weight, one.pod_affinity_term) for one in affinity.preferred_during_scheduling_ignored_during_execution
    )


def together(world: World, one: int, other: int, key: str) -> bool:
    there = world.nodes[one].get(key)
    return there is not None and there == world.nodes[other].get(key)


def code_of(pod: Pod, node: int, world: World) -> int:
    near, _ = terms_of(pod, "pod_affinity")
    apart, _ = terms_of(pod, "pod_anti_affinity")
    if near:
        wanted = [at for other, at in world.bound if all(speaks_of(pod, t, other, world, waiting=True) for t in near)]
        labelled = all(term.topology_key in world.nodes[node] for term in near)
        counted = any(term.topology_key in world.nodes[at] for at in wanted for term in near)
        alone = not counted and all(speaks_of(pod, term, pod, world, waiting=True) for term in near)
        met = all(any(together(world, at, node, term.topology_key) for at in wanted) for term in near)
        if not labelled or not (met or alone):
            return 3
    for term in apart:
        for other, at in world.bound:
            if speaks_of(pod, term, other, world, waiting=True) and together(world, at, node, term.topology_key):
                return 2
    for other, at in world.bound:
        for term in terms_of(other, "pod_anti_affinity")[0]:
            if speaks_of(other, term, pod, world, waiting=False) and together(world, at, node, term.topology_key):
                return 1
    return 0


def scores_of(pod: Pod, world: World, feasible: list[int], plugin: InterPodAffinity) -> dict[int, int] | None:
    own = [(weight, term) for weight, term in terms_of(pod, "pod_affinity")[1]]
    own += [(-weight, term) for weight, term in terms_of(pod, "pod_anti_affinity")[1]]
    if plugin.ignore_preferred_terms_of_existing_pods and not own:
        return None
    votes: list[tuple[int, str, int]] = []
    for other, at in world.bound:
        hard, soft = terms_of(other, "pod_affinity")
        theirs = [(weight, term) for weight, term in soft]
        theirs += [(-weight, term) for weight, term in terms_of(other, "pod_anti_affinity")[1]]
        theirs += [(plugin.hard_pod_affinity_weight, term) for term in hard if plugin.hard_pod_affinity_weight > 0]
        said = [(weight, term) for weight, term in own if speaks_of(pod, term, other, world, waiting=True)]
        said += [(weight, term) for weight, term in theirs if speaks_of(other, term, pod, world, waiting=False)]
        votes += [(weight, t.topology_key, at) for weight, t in said if t.topology_key in world.nodes[at]]
    if not votes:
        return None
    sums = {n: sum(weight for weight, key, at in votes if together(world, at, n, key)) for n in feasible}
    low, high = min(sums.values()), max(sums.values())
    return {n: int(100.0 * (float(s - low) / float(high - low))) if high > low else 0 for n, s in sums.items()}


# -- drawing ---------------------------------------------------------------------------------------------------------


def selectors(key: str) -> st.SearchStrategy[dict[str, Any]]:
    values = st.lists(st.sampled_from("ab"), min_size=1, max_size=2, unique=True)
    listed = st.builds(
        lambda op, of: {"key": key, "operator": op, "values": of}, st.sampled_from(["In", "NotIn"]), values
    )
    bare = st.builds(lambda op: {"key": key, "operator": op}, st.sampled_from(["Exists", "DoesNotExist"]))
    return st.one_of(
        st.just({}),
        st.builds(lambda value: {"matchLabels": {key: value}}, st.sampled_from("ab")),
        st.builds(lambda one: {"matchExpressions": [one]}, st.one_of(listed, bare)),
    )


terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(KEYS)},
    optional={
        "labelSelector": selectors("app"),
        "namespaces": st.lists(st.sampled_from(["one", "two", "none"]), max_size=2),
        "namespaceSelector": selectors("env"),
    },
)
preferred = st.builds(lambda weight, term: {"weight": weight, "podAffinityTerm": term}, st.integers(1, 100), terms)
sides = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms, max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(preferred, max_size=2),
    },
)
pods = st.builds(
    lambda namespace, labels, affinity: {"metadata": {"namespace": namespace, "labels": labels}, "affinity": affinity},
    st.sampled_from(["one", "two", "none"]),
    st.dictionaries(st.just("app"), st.sampled_from("ab"), max_size=1),
    st.fixed_dictionaries({}, optional={"podAffinity": sides, "podAntiAffinity": sides}),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = []
    for at in range(draw(st.integers(1, 5))):
        rest = draw(st.fixed_dictionaries({}, optional={"zone": st.sampled_from("xy"), "rack": st.sampled_from("pq")}))
        nodes.append({"host": f"n{at}", **rest} if draw(st.integers(0, 5)) else rest)
    of_namespace = st.dictionaries(st.just("env"), st.sampled_from("ab"), max_size=1)
    namespaces = draw(st.fixed_dictionaries({"one": of_namespace}, optional={"two": of_namespace}))
    shapes = draw(st.lists(pods, min_size=1, max_size=3))  # few, so that pods of one class come and go
    bound = []
    for number, drawn in enumerate(draw(st.lists(st.sampled_from(shapes), max_size=7))):
        at = draw(st.integers(0, len(nodes) - 1))
        bound.append((made_pod(f"p{number}", drawn, f"n{at}", leaving=draw(st.booleans())), at))
    return World(nodes, namespaces, bound)


def made_pod(name: str, drawn: dict[str, Any], node: str = "", *, leaving: bool = False) -> Pod:
    metadata = {**drawn["metadata"], "name": name, "uid": name}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"nodeName": node, "affinity": drawn["affinity"], "containers": [{"name": "c"}]}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def made_cluster(world: World) -> Cluster:
    made = Cluster()
    for at, labels in enumerate(world.nodes):
        made.add_node(msgspec.convert({"metadata": {"name": f"n{at}", "labels": labels}}, Node))
    for name, labels in world.namespaces.items():
        made.put_object(msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace))
    for pod, _ in world.bound:
        made.add_pod(pod)
    return made


def codes_in(view: View, made: Cluster, waiting: Pod) -> list[int]:
    verdict = InterPodAffinity().check(made.class_of(waiting), view)
    if verdict is None:
        return [0] * view.size
    if not isinstance(verdict, np.ndarray):
        raise TypeError(f"{verdict!r} has no codes")
    found: list[int] = verdict.tolist()
    return found


# -- comparing -------------------------------------------------------------------------------------------------------


def test_the_codes_of_the_twin_are_the_plugin_s() -> None:
    assert REASONS[1:] == tuple(reason.text for reason in InterPodAffinity.reasons)


@given(worlds(), pods)
@settings(max_examples=150)
def test_every_node_is_refused_as_the_rules_say(world: World, drawn: dict[str, Any]) -> None:
    made, waiting = made_cluster(world), made_pod("new", drawn)
    expected = [code_of(waiting, node, world) for node in range(len(world.nodes))]
    assert codes_in(View(made), made, waiting) == expected
    assert [codes_in(View(made).at(row), made, waiting)[0] for row in range(len(expected))] == expected


@given(worlds(), pods, st.data())
@settings(max_examples=150)
def test_every_node_is_ranked_as_the_rules_say(world: World, drawn: dict[str, Any], data: st.DataObject) -> None:
    made, waiting = made_cluster(world), made_pod("new", drawn)
    feasible = data.draw(st.lists(st.sampled_from(range(len(world.nodes))), min_size=1, unique=True))
    plugin = data.draw(st.builds(InterPodAffinity, st.sampled_from([0, 1, 100]), st.booleans()))
    mask = np.isin(np.arange(len(world.nodes)), feasible)
    scores = plugin.score(made.class_of(waiting), View(made).scoring(mask))
    found = None if scores is None else {node: int(scores[node]) for node in feasible}
    assert found == scores_of(waiting, world, feasible, plugin)


@given(worlds(), pods, st.data())
@settings(max_examples=100)
def test_an_overlay_answers_like_the_cluster_it_stands_for(
    world: World, drawn: dict[str, Any], data: st.DataObject
) -> None:
    made, waiting = made_cluster(world), made_pod("new", drawn)
    codes_in(View(made), made, waiting)  # so that the overlay starts from counts that are there
    bound = [pod.metadata.name for pod, _ in world.bound]
    names = data.draw(st.lists(st.sampled_from(bound), unique=True)) if bound else []
    more = [
        (made_pod(f"more{number}", one), data.draw(st.integers(0, len(world.nodes) - 1)))
        for number, one in enumerate(data.draw(st.lists(pods, max_size=2)))
    ]
    gone = [one for row in range(len(world.nodes)) for one in View(made).pods_on(row) if one.name in names]
    view = View(made).without(gone).plus([(made.class_of(pod), at) for pod, at in more])
    stands_for = world._replace(bound=[one for one in world.bound if one[0].metadata.name not in names] + more)
    expected = [code_of(waiting, node, stands_for) for node in range(len(world.nodes))]
    assert codes_in(view, made, waiting) == expected
    assert [codes_in(view.at(row), made, waiting)[0] for row in range(len(expected))] == expected


@given(worlds(), pods)
@settings(max_examples=75)
def test_counts_that_were_kept_while_pods_came_and_went_are_those_of_a_fresh_cluster(
    world: World, drawn: dict[str, Any]
) -> None:
    kept, waiting = made_cluster(world._replace(bound=[])), made_pod("new", drawn)
    everywhere = np.ones(len(world.nodes), np.bool_)
    here: list[Placed] = []

    def compare() -> None:
        now = world._replace(bound=here)
        expected = [code_of(waiting, node, now) for node in range(len(world.nodes))]
        assert codes_in(View(kept), kept, waiting) == expected
        scores = InterPodAffinity().score(kept.class_of(waiting), View(kept).scoring(everywhere))
        found = None if scores is None else dict(enumerate(scores.tolist()))
        assert found == scores_of(waiting, now, list(range(len(world.nodes))), InterPodAffinity())

    for one in world.bound:
        kept.add_pod(one[0])
        here.append(one)
        compare()
    while here:
        pod, _ = here.pop(0)
        kept.remove_pod(f"{pod.metadata.namespace}/{pod.metadata.name}")
        compare()
