"""PodTopologySpread over columns against the same rules written pod by pod and node by node."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, log

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.model.labels import LabelSelector, LabelSelectorRequirement, Selector, parse_selector
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec
from situate.core.model.pod import Pod, PodSpec, TopologySpreadConstraint
from situate.core.model.tolerations import Taint, Toleration
from situate.core.model.workloads import Service, ServiceSpec
from situate.core.plugins.pod_topology_spread import SYSTEM_DEFAULTS, ZONE, PodTopologySpread
from situate.core.plugins.support.spread_scoring import HOSTNAME
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

KEYS = (HOSTNAME, ZONE, "rack")
TAINT = Taint(key="broken", effect="NoSchedule")
FITS, TIPS, UNLABELLED = 0, 1, 2


@dataclass
class World:
    """Nodes, the pods on each, the services, and how pods without constraints are spread."""

    nodes: list[Node]
    bound: list[tuple[Pod, int]]
    services: list[Service]
    plugin: PodTopologySpread


@dataclass
class Trial:
    """Some pods of one node evicted, some added there."""

    node: int
    removed: list[Pod] = field(default_factory=list)
    added: list[Pod] = field(default_factory=list)


# -- the twin --------------------------------------------------------------------------------------------------------


def constraints_of(world: World, pod: Pod, action: str) -> list[tuple[TopologySpreadConstraint, Selector, bool]]:
    """Each constraint, what it selects, and whether it selects by anything at all."""
    own = pod.spec.topology_spread_constraints
    if own:
        parsed = [(one, selector_of(one, pod)) for one in own if one.when_unsatisfiable == action]
        return [(one, selector, bool(selector.requirements)) for one, selector in parsed]
    wanted: dict[str, str] = {}
    for service in world.services:
        labels = service.spec.selector
        same = service.metadata.namespace == pod.metadata.namespace
        if same and all(pod.metadata.labels.get(key) == value for key, value in labels.items()):
            wanted |= labels
    if not wanted:
        return []
    defaults = SYSTEM_DEFAULTS if world.plugin.system_defaulted else world.plugin.default_constraints
    selector = parse_selector(LabelSelector(match_labels=wanted))
    return [(one, selector, True) for one in defaults if one.when_unsatisfiable == action]


def selector_of(constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
    """The values that the pod has under `matchLabelKeys` are asked for as if they were written in the selector."""
    given = constraint.label_selector
    if given is None:
        return parse_selector(None)
    extra = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(pod.metadata.labels[key],))
        for key in constraint.match_label_keys
        if key in pod.metadata.labels
    )
    return parse_selector(
        LabelSelector(match_labels=given.match_labels, match_expressions=given.match_expressions + extra)
    )


def counts(pod: Pod, constraint: TopologySpreadConstraint, node: Node) -> bool:
    """Whether the constraint looks at the node, as far as affinity and taints go."""
    wanted = pod.spec.node_selector
    allowed = all(node.metadata.labels.get(key) == value for key, value in wanted.items())
    if constraint.node_affinity_policy == "Honor" and not allowed:
        return False
    return constraint.node_taints_policy != "Honor" or not node.spec.taints or bool(pod.spec.tolerations)


def matching(world: World, pod: Pod, selector: Selector, usable: bool, node: int) -> int:
    if not usable:
        return 0
    return sum(
        at == node
        and other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and selector.matches(other.metadata.labels)
        for other, at in world.bound
    )


def twin_codes(world: World, pod: Pod, trial: Trial | None = None) -> list[int] | None:
    hard = constraints_of(world, pod, "DoNotSchedule")
    if not hard:
        return None
    keys = {constraint.topology_key for constraint, _, _ in hard}
    codes = [FITS] * len(world.nodes)
    for constraint, selector, usable in hard:
        held: dict[str, int] = {}
        for at, node in enumerate(world.nodes):
            if keys <= node.metadata.labels.keys() and counts(pod, constraint, node):
                value = node.metadata.labels[constraint.topology_key]
                held[value] = held.get(value, 0) + matching(world, pod, selector, usable, at)
        if trial is not None and keys <= world.nodes[trial.node].metadata.labels.keys():
            there = world.nodes[trial.node]
            for others, change in ((trial.removed, -1), (trial.added, 1)):
                for other in others:
                    same = other.metadata.namespace == pod.metadata.namespace
                    if same and selector.matches(other.metadata.labels) and counts(pod, constraint, there):
                        held[there.metadata.labels[constraint.topology_key]] += change
        enough = len(held) >= (1 if constraint.min_domains is None else constraint.min_domains)
        least = min(held.values()) if enough else 0
        for at, node in enumerate(world.nodes):
            domain = node.metadata.labels.get(constraint.topology_key)
            if codes[at] == FITS:
                if domain is None:
                    codes[at] = UNLABELLED
                elif held.get(domain, 0) + selector.matches(pod.metadata.labels) - least > constraint.max_skew:
                    codes[at] = TIPS
    return codes


def twin_scores(world: World, pod: Pod, feasible: list[int]) -> dict[int, int] | None:
    soft = constraints_of(world, pod, "ScheduleAnyway")
    if not soft:
        return None
    keys = {constraint.topology_key for constraint, _, _ in soft}
    lenient = not pod.spec.topology_spread_constraints and world.plugin.system_defaulted
    able = [at for at, node in enumerate(world.nodes) if lenient or keys <= node.metadata.labels.keys()]
    scored = [at for at in feasible if at in able]
    sums = dict.fromkeys(scored, 0.0)
    for constraint, selector, usable in soft:
        key = constraint.topology_key
        held: dict[str, int] = {}
        for at in able:
            if counts(pod, constraint, world.nodes[at]):
                value = world.nodes[at].metadata.labels.get(key, "")
                held[value] = held.get(value, 0) + matching(world, pod, selector, usable, at)
        values = {world.nodes[at].metadata.labels.get(key, "") for at in scored}
        weight = log((len(scored) if key == HOSTNAME else len(values)) + 2)
        for at in scored:
            domain = world.nodes[at].metadata.labels.get(key)
            if domain is not None:
                here = matching(world, pod, selector, usable, at) if key == HOSTNAME else held.get(domain, 0)
                sums[at] += here * weight + (constraint.max_skew - 1)
    rounded = {at: floor(total + 0.5) for at, total in sums.items()}
    most, least = max(rounded.values(), default=0), min(rounded.values(), default=0)
    found = dict.fromkeys(feasible, 0)
    for at, total in rounded.items():
        found[at] = 100 if most == 0 else 100 * (most + least - total) // most
    return found


# -- worlds ----------------------------------------------------------------------------------------------------------

labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from(("x", ""))})
selectors = st.one_of(
    st.none(),
    st.builds(lambda wanted: LabelSelector(match_labels=wanted), labels),
    st.sampled_from(("Exists", "DoesNotExist")).map(
        lambda operator: LabelSelector(match_expressions=(LabelSelectorRequirement(key="tier", operator=operator),))
    ),
)
constraints = st.builds(
    TopologySpreadConstraint,
    max_skew=st.integers(1, 3),
    topology_key=st.sampled_from(KEYS),
    when_unsatisfiable=st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    label_selector=selectors,
    min_domains=st.none() | st.integers(1, 4),
    node_affinity_policy=st.sampled_from(("Honor", "Ignore")),
    node_taints_policy=st.sampled_from(("Honor", "Ignore")),
    match_label_keys=st.sampled_from(((), ("app",), ("tier", "app"))),
)


def constraint_lists(least: int) -> st.SearchStrategy[tuple[TopologySpreadConstraint, ...]]:
    found = st.lists(constraints, min_size=least, max_size=3)
    return found.map(lambda many: tuple({(one.topology_key, one.when_unsatisfiable): one for one in many}.values()))


def metas(name: str) -> st.SearchStrategy[ObjectMeta]:
    deleted = st.sampled_from((None, None, "2026-01-01T00:00:00Z"))
    namespaces = st.sampled_from(("default", "default", "other"))
    return st.builds(ObjectMeta, name=st.just(name), namespace=namespaces, labels=labels, deletion_timestamp=deleted)


def nodes(number: int) -> st.SearchStrategy[Node]:
    values = {HOSTNAME: st.sampled_from((f"n{number}", "twin")), ZONE: st.sampled_from(("a", "b", ""))}
    found = st.fixed_dictionaries({}, optional={**values, "rack": st.sampled_from("12"), "disk": st.just("ssd")})
    specs = st.sampled_from((NodeSpec(), NodeSpec(), NodeSpec(taints=(TAINT,))))
    return st.builds(
        lambda own, spec: Node(metadata=ObjectMeta(name=f"n{number}", labels=own), spec=spec), found, specs
    )


services = st.builds(
    lambda namespace, wanted: Service(
        metadata=ObjectMeta(name="s", namespace=namespace), spec=ServiceSpec(selector=wanted)
    ),
    st.sampled_from(("default", "other")),
    labels,
)
defaults = constraint_lists(0).map(
    lambda many: tuple(msgspec.structs.replace(one, label_selector=None, match_label_keys=()) for one in many)
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(1, 6))
    bound = [
        (Pod(metadata=draw(metas(f"b{at}"))), draw(st.integers(0, count - 1))) for at in range(draw(st.integers(0, 8)))
    ]
    plugin = PodTopologySpread() if draw(st.booleans()) else PodTopologySpread(draw(defaults), system_defaulted=False)
    own = {(one.metadata.namespace): one for one in draw(st.lists(services, max_size=2))}
    return World([draw(nodes(at)) for at in range(count)], bound, list(own.values()), plugin)


@st.composite
def waiting(draw: st.DrawFn) -> Pod:
    spec = PodSpec(
        topology_spread_constraints=draw(constraint_lists(0)),
        node_selector=draw(st.sampled_from(({}, {}, {"disk": "ssd"}))),
        tolerations=draw(st.sampled_from(((), (Toleration(operator="Exists"),)))),
    )
    return Pod(metadata=draw(metas("new")), spec=spec)


def cluster_of(world: World) -> Cluster:
    cluster = Cluster()
    for node in world.nodes:
        cluster.add_node(node)
    for pod, at in world.bound:
        cluster.add_pod(msgspec.structs.replace(pod, spec=PodSpec(node_name=f"n{at}")))
    for service in world.services:
        cluster.put_object(service)
    return cluster


def codes_of(world: World, cluster: Cluster, pod: Pod, view: View) -> list[int] | None:
    codes = world.plugin.check(cluster.class_of(pod), view)
    if codes is None:
        return None
    assert isinstance(codes, np.ndarray)
    return list(map(int, codes))


# -- the tests -------------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(worlds(), waiting())
def test_the_codes_are_those_of_the_rules_on_all_rows_and_on_each(world: World, pod: Pod) -> None:
    cluster = cluster_of(world)
    expected = twin_codes(world, pod)
    assert codes_of(world, cluster, pod, View(cluster)) == expected
    one_by_one = [codes_of(world, cluster, pod, View(cluster).at(row)) for row in range(len(world.nodes))]
    assert one_by_one == ([None] * len(world.nodes) if expected is None else [[code] for code in expected])


@settings(max_examples=150)
@given(worlds(), waiting())
def test_with_one_hard_constraint_the_codes_are_told_by_domain(world: World, pod: Pod) -> None:
    cluster = cluster_of(world)
    view = View(cluster)
    checker = world.plugin.domain_checker(cluster.class_of(pod), view)
    if len(constraints_of(world, pod, "DoNotSchedule")) != 1:
        assert checker is None
        return
    assert checker is not None
    ids, values = view.label(checker.topology_key)
    codes = checker.check(view)
    assert len(codes) == len(values) + 1
    assert codes[ids].tolist() == twin_codes(world, pod)


@settings(max_examples=150)
@given(worlds(), waiting(), st.data())
def test_the_scores_are_those_of_the_rules(world: World, pod: Pod, data: st.DataObject) -> None:
    cluster = cluster_of(world)
    chosen = st.lists(st.integers(0, len(world.nodes) - 1), min_size=1, unique=True)
    feasible = data.draw(st.just(list(range(len(world.nodes)))) | chosen)
    mask = np.zeros(len(world.nodes), np.bool_)
    mask[feasible] = True
    scores = world.plugin.score(cluster.class_of(pod), View(cluster).scoring(mask))
    assert (None if scores is None else {at: int(scores[at]) for at in feasible}) == twin_scores(world, pod, feasible)


@settings(max_examples=120)
@given(worlds(), waiting(), st.data())
def test_a_trial_is_judged_as_if_its_pods_had_been_counted_one_by_one(
    world: World, pod: Pod, data: st.DataObject
) -> None:
    cluster = cluster_of(world)
    node = data.draw(st.integers(0, len(world.nodes) - 1))
    here = [other for other, at in world.bound if at == node]
    removed = [other for other in here if data.draw(st.booleans())]
    added = data.draw(st.lists(metas("x").map(lambda meta: Pod(metadata=meta)), max_size=2))
    keys = [f"{other.metadata.namespace}/{other.metadata.name}" for other in removed]
    view = View(cluster).without([cluster.pods.bound(cluster.pods.rows[key]) for key in keys])
    view = view.plus([(cluster.class_of(other), node) for other in added])
    expected = twin_codes(world, pod, Trial(node, removed, added))
    assert codes_of(world, cluster, pod, view) == expected
    assert codes_of(world, cluster, pod, view.at(node)) == (None if expected is None else [expected[node]])


@settings(max_examples=40)
@given(worlds(), waiting(), st.data())
def test_answers_follow_when_pods_and_nodes_come_and_go(world: World, pod: Pod, data: st.DataObject) -> None:
    cluster = cluster_of(world)
    everywhere = list(range(len(world.nodes)))

    def agree() -> None:
        assert codes_of(world, cluster, pod, View(cluster)) == twin_codes(world, pod)
        scores = world.plugin.score(cluster.class_of(pod), View(cluster).scoring(np.ones(len(everywhere), np.bool_)))
        expected = twin_scores(world, pod, everywhere)
        assert (None if scores is None else dict(enumerate(scores.tolist()))) == expected
        assert audit(cluster) == []

    agree()
    for step in range(3):
        if data.draw(st.booleans()) and world.bound:
            other, _ = world.bound.pop(data.draw(st.integers(0, len(world.bound) - 1)))
            cluster.remove_pod(f"{other.metadata.namespace}/{other.metadata.name}")
        else:
            other, at = Pod(metadata=data.draw(metas(f"c{step}"))), data.draw(st.sampled_from(everywhere))
            world.bound.append((other, at))
            cluster.add_pod(msgspec.structs.replace(other, spec=PodSpec(node_name=f"n{at}")))
        agree()
        at = data.draw(st.sampled_from(everywhere))
        world.nodes[at] = data.draw(nodes(at))
        cluster.add_node(world.nodes[at])
        agree()
