"""InterPodAffinity: which nodes it refuses and why, and how it ranks the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from situate.core.contract import Wake
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import Namespace
from situate.core.plugins.inter_pod_affinity import InterPodAffinity
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.core.versions import V1_37

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"

FITS = ""
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

NAMESPACES = {"default": {"env": "dev"}, "prod": {"env": "prod"}, "bare": {}}


def term(app: str | None = "web", key: str = ZONE, **fields: Any) -> dict[str, Any]:
    selector = {} if app is None else {"labelSelector": {"matchLabels": {"app": app}}}
    return {"topologyKey": key, **selector, **fields}


def weighted(weight: int, app: str | None = "web", key: str = ZONE, **fields: Any) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": term(app, key, **fields)}


def affinity(
    near: tuple[Any, ...] = (), apart: tuple[Any, ...] = (), liked: tuple[Any, ...] = (), disliked: tuple[Any, ...] = ()
) -> dict[str, Any]:
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    return {
        "podAffinity": {required: list(near), preferred: list(liked)},
        "podAntiAffinity": {required: list(apart), preferred: list(disliked)},
    }


def pod(
    name: str = "new",
    node: str = "",
    app: str = "web",
    namespace: str = "default",
    leaving: bool = False,
    **terms: tuple[Any, ...],
) -> Pod:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": {"app": app}}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"nodeName": node, "affinity": affinity(**terms), "containers": [{"name": "c"}]}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def cluster(*pods: Pod, nodes: Mapping[str, Mapping[str, str]] | None = None) -> Cluster:
    """Two nodes in zone x, one in zone y and one without a zone, unless told otherwise."""
    made = Cluster()
    for name, labels in (nodes or {"a": {ZONE: "x"}, "b": {ZONE: "x"}, "c": {ZONE: "y"}, "d": {}}).items():
        made.add_node(msgspec.convert({"metadata": {"name": name, "labels": {HOST: name, **labels}}}, Node))
    for name, labels in NAMESPACES.items():
        made.put_object(msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace))
    for one in pods:
        made.add_pod(one)
    return made


def texts(codes: object) -> list[str]:
    """What a check said of each node, in Kubernetes' words."""
    if not isinstance(codes, np.ndarray):
        raise TypeError(f"{codes!r} has no codes")
    return [InterPodAffinity.reasons[code - 1].text if code else FITS for code in codes.tolist()]


def checked(waiting: Pod, made: Cluster, view: View | None = None) -> list[str]:
    return texts(InterPodAffinity().check(made.class_of(waiting), view or View(made)))


def scored(
    waiting: Pod, made: Cluster, plugin: InterPodAffinity | None = None, feasible: str = "abcd"
) -> list[int] | None:
    mask = np.array([name in feasible for name in made.nodes.names])
    scores = (plugin or InterPodAffinity()).score(made.class_of(waiting), View(made).scoring(mask))
    if scores is None:
        return None
    return [score for score, fits in zip(scores.tolist(), mask, strict=True) if fits]


# -- refusing --------------------------------------------------------------------------------------------------------

CHECKS = {
    "a bound pod's anti-affinity keeps out whom it speaks of, in its whole domain": (
        [pod("old", "a", "db", apart=(term(),))],
        pod(),
        [EXISTING, EXISTING, FITS, FITS],
    ),
    "a bound pod's anti-affinity on a node without the label keeps nobody out": (
        [pod("old", "d", "db", apart=(term(),)), pod("older", "c", "db", apart=(term(),))],
        pod(),
        [FITS, FITS, EXISTING, FITS],
    ),
    "the pod's own anti-affinity refuses the domains of those it speaks of, not nodes without the label": (
        [pod("old", "b"), pod("other", "c", "db"), pod("third", "d")],
        pod(app="db", apart=(term(),)),
        [ANTI_AFFINITY, ANTI_AFFINITY, FITS, FITS],
    ),
    "by host name only the node itself is refused": (
        [pod("old", "b")],
        pod(app="db", apart=(term(key=HOST),)),
        [FITS, ANTI_AFFINITY, FITS, FITS],
    ),
    "affinity is met in the domain of such a pod, and never where the label is missing": (
        [pod("old", "b"), pod("other", "d")],
        pod(app="db", near=(term(),)),
        [FITS, FITS, AFFINITY, AFFINITY],
    ),
    "affinity to nobody who is there refuses every node": (
        [pod("old", "b", "db")],
        pod(app="db", near=(term(),)),
        [AFFINITY] * 4,
    ),
    "the first of a series that wants its own kind fits wherever the label is": (
        [pod("old", "b", "db")],
        pod(near=(term(),)),
        [FITS, FITS, FITS, AFFINITY],
    ),
    "the first of a series needs every label, and to match every term": (
        [],
        pod(near=(term(), term(key=HOST))),
        [FITS, FITS, FITS, AFFINITY],
    ),
    "a pod that matches one of its own terms only is no first of a series": (
        [],
        pod(near=(term(), term("db"))),
        [AFFINITY] * 4,
    ),
    "the second of a series must go where the first is": (
        [pod("first", "c")],
        pod(near=(term(),)),
        [AFFINITY, AFFINITY, FITS, AFFINITY],
    ),
    "a pod of the series on a node without the label is as good as none": (
        [pod("first", "d")],
        pod(near=(term(),)),
        [FITS, FITS, FITS, AFFINITY],
    ),
    "several affinity terms must be met by one and the same pod": (
        [pod("old", "a"), pod("other", "b", "db")],
        pod(app="db", near=(term(), term("db"))),
        [AFFINITY] * 4,
    ),
    "several topology keys are each met in their own domain": (
        [pod("old", "a")],
        pod(app="db", near=(term(), term(key=HOST))),
        [FITS, AFFINITY, AFFINITY, AFFINITY],
    ),
    "affinity is named before anti-affinity, and that before the anti-affinity of others": (
        [pod("old", "a", apart=(term("db"),)), pod("other", "b", "near"), pod("third", "c", apart=(term("db"),))],
        pod(app="db", near=(term("near"),), apart=(term(key=HOST),)),
        [ANTI_AFFINITY, EXISTING, AFFINITY, AFFINITY],
    ),
    "pods that are being deleted count": (
        [pod("old", "a", leaving=True), pod("other", "c", "db", leaving=True, apart=(term("db"),))],
        pod(app="db", apart=(term(),)),
        [ANTI_AFFINITY, ANTI_AFFINITY, EXISTING, FITS],
    ),
    "a pod that is being deleted is company all the same": (
        [pod("old", "c", leaving=True)],
        pod(near=(term(),)),
        [AFFINITY, AFFINITY, FITS, AFFINITY],
    ),
    "a term without a selector speaks of nobody": (
        [pod("old", "a")],
        pod(apart=(term(None),)),
        [FITS] * 4,
    ),
    "a topology key that no node has keeps nobody apart": (
        [pod("old", "a", apart=(term(key="nowhere"),))],
        pod(apart=(term(key="nowhere"),)),
        [FITS] * 4,
    ),
    "matchLabelKeys is not read: the API server has put it into the selector": (
        [pod("old", "a", "db")],
        pod(app="api", apart=(term("db", matchLabelKeys=["app"]),)),
        [ANTI_AFFINITY, ANTI_AFFINITY, FITS, FITS],
    ),
}


@pytest.mark.parametrize("bound, waiting, expected", [pytest.param(*case, id=name) for name, case in CHECKS.items()])
def test_nodes_are_refused(bound: list[Pod], waiting: Pod, expected: list[str]) -> None:
    made = cluster(*bound)
    assert checked(waiting, made) == expected
    one_by_one = [checked(waiting, made, View(made).at(row))[0] for row in range(4)]
    assert one_by_one == expected, "a view of one row says the same"


NOT_PROD = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
BY_NAMESPACE = {
    "a term that names no namespace speaks of its pod's own": ({}, {"default"}),
    "namespaces are taken by name, whether they exist or not": ({"namespaces": ["prod", "gone"]}, {"prod", "gone"}),
    "an empty namespace selector speaks of all, even of those nobody has seen": (
        {"namespaceSelector": {}},
        {"default", "prod", "bare", "gone"},
    ),
    "a namespace selector speaks of the namespaces with such labels": (
        {"namespaceSelector": {"matchLabels": {"env": "prod"}}},
        {"prod"},
    ),
    "names and selector add up": (
        {"namespaces": ["bare"], "namespaceSelector": {"matchLabels": {"env": "prod"}}},
        {"prod", "bare"},
    ),
}


@pytest.mark.parametrize("fields, spoken_of", [pytest.param(*case, id=name) for name, case in BY_NAMESPACE.items()])
@pytest.mark.parametrize("namespace", ["default", "prod", "bare", "gone"])
def test_namespaces_of_a_term_are_read_alike_in_waiting_and_bound_pods(
    fields: dict[str, Any], spoken_of: set[str], namespace: str
) -> None:
    rule = (term(**fields),)
    waiting = checked(pod(app="db", apart=rule), cluster(pod("old", "a", namespace=namespace)))
    assert (waiting[0] == ANTI_AFFINITY) == (namespace in spoken_of)
    bound = cluster(pod("old", "a", "db", apart=rule))
    verdict = InterPodAffinity().check(bound.class_of(pod(namespace=namespace)), View(bound))
    assert (verdict is not None and texts(verdict)[0] == EXISTING) == (namespace in spoken_of)


@pytest.mark.parametrize("namespace, by_bound", [("default", True), ("prod", False), ("bare", True), ("gone", True)])
def test_a_namespace_selector_that_matches_no_labels_matches_every_namespace_but_in_waiting_pods_only(
    namespace: str, by_bound: bool
) -> None:
    rule = (term(namespaceSelector=NOT_PROD),)
    waiting = checked(pod(app="db", apart=rule), cluster(pod("old", "a", namespace=namespace)))
    assert waiting == [ANTI_AFFINITY, ANTI_AFFINITY, FITS, FITS]
    bound = cluster(pod("old", "a", "db", apart=rule))
    verdict = InterPodAffinity().check(bound.class_of(pod(namespace=namespace)), View(bound))
    assert (verdict is not None) == by_bound


def test_it_has_no_say_where_nobody_has_terms_that_concern_the_pod() -> None:
    made = cluster(pod("old", "a", "db", apart=(term("db"),), near=(term(),)))
    assert InterPodAffinity().check(made.class_of(pod()), View(made)) is None


def test_evicting_helps_against_anti_affinity_and_not_against_affinity() -> None:
    helps = {reason.text: reason.eviction_helps for reason in InterPodAffinity.reasons}
    assert helps == {AFFINITY: False, ANTI_AFFINITY: True, EXISTING: True}


def test_without_a_pod_its_terms_and_its_presence_are_gone() -> None:
    made = cluster(pod("old", "a", apart=(term("db"),)), pod("other", "c", "near"))
    waiting = pod(app="db", apart=(term(),))
    view = View(made)
    assert checked(waiting, made) == [ANTI_AFFINITY, ANTI_AFFINITY, FITS, FITS]
    assert checked(waiting, made, view.without(view.pods_on(0))) == [FITS] * 4
    series = pod(app="near", near=(term("near"),))
    assert checked(series, made) == [AFFINITY, AFFINITY, FITS, AFFINITY]
    assert checked(series, made, view.without(view.pods_on(2))) == [FITS, FITS, FITS, AFFINITY]


def test_with_a_pod_added_its_terms_and_its_presence_count() -> None:
    made = cluster()
    added = made.class_of(pod("more", apart=(term("db"),)))
    view = View(made).plus([(added, 2)])
    assert checked(pod(app="db"), made, view) == [FITS, FITS, EXISTING, FITS]
    assert checked(pod(app="db", near=(term(),)), made, view.at(2)) == [EXISTING]
    assert checked(pod(app="api", near=(term(),)), made, view) == [AFFINITY, AFFINITY, FITS, AFFINITY]


def test_a_node_that_took_the_row_of_another_is_judged_by_its_own_host_name() -> None:
    made = cluster(pod("old", "b"))
    waiting = pod(app="db", apart=(term(key=HOST),))
    assert checked(waiting, made) == [FITS, ANTI_AFFINITY, FITS, FITS]
    made.remove_node("a")
    made.add_node(msgspec.convert({"metadata": {"name": "e", "labels": {HOST: "e"}}}, Node))
    assert made.nodes.names == ["e", "b", "c", "d"]
    made.add_pod(pod("new", "e"))
    assert checked(waiting, made) == [ANTI_AFFINITY, ANTI_AFFINITY, FITS, FITS]


def test_nodes_that_swap_their_host_names_are_judged_by_the_new_ones() -> None:
    made = cluster(nodes={"a": {}, "b": {}})
    waiting = pod(app="db", apart=(term(key=HOST),))
    assert checked(waiting, made) == [FITS, FITS]
    for name, host in (("a", "b"), ("b", "a")):
        made.add_node(msgspec.convert({"metadata": {"name": name, "labels": {HOST: host}}}, Node))
    made.add_pod(pod("old", "b"))
    assert checked(waiting, made) == [FITS, ANTI_AFFINITY]
    made.add_node(msgspec.convert({"metadata": {"name": "a", "labels": {HOST: "a"}}}, Node))
    assert checked(waiting, made) == [ANTI_AFFINITY, ANTI_AFFINITY]


def test_where_one_of_two_carriers_of_a_term_leaves_the_other_is_still_heard() -> None:
    carriers = [pod(f"old-{node}", node, "db", apart=(term(),), liked=(weighted(5, "api"),)) for node in "ac"]
    made = cluster(*carriers)
    assert checked(pod(), made) == [EXISTING, EXISTING, EXISTING, FITS]
    assert scored(pod(app="api"), made) == [100, 100, 100, 0]
    made.remove_pod("default/old-a")
    assert checked(pod(), made) == [FITS, FITS, EXISTING, FITS]
    assert scored(pod(app="api"), made) == [0, 0, 100, 0]


# -- scoring ---------------------------------------------------------------------------------------------------------

SCORES: dict[str, tuple[list[Pod], Pod, list[int] | None]] = {
    "preferred affinity counts each such pod in the domain": (
        [pod("old", "a"), pod("other", "b"), pod("third", "c")],
        pod(app="db", liked=(weighted(10),)),
        [100, 100, 50, 0],
    ),
    "preferred anti-affinity counts against the domain": (
        [pod("old", "a"), pod("other", "b"), pod("third", "c")],
        pod(app="db", disliked=(weighted(10),)),
        [0, 0, 50, 100],
    ),
    "weights add up over terms and topology keys, and the share is cut off": (
        [pod("old", "a"), pod("other", "c", "db")],
        pod(app="api", liked=(weighted(2), weighted(3, key=HOST), weighted(1, "db"))),
        [100, 40, 20, 0],
    ),
    "one third is 33": (
        [pod("old", "a"), pod("other", "a"), pod("third", "a"), pod("fourth", "b")],
        pod(app="db", liked=(weighted(7, key=HOST),)),
        [100, 33, 0, 0],
    ),
    "a bound pod's preferred terms count for whom they speak of": (
        [pod("old", "a", "db", liked=(weighted(4),)), pod("other", "c", "db", disliked=(weighted(4),))],
        pod(),
        [100, 100, 0, 50],
    ),
    "a bound pod's required affinity counts with the hard weight": (
        [pod("old", "a", "db", near=(term("db"), term())), pod("other", "c", "db", liked=(weighted(4),))],
        pod(),
        [25, 25, 100, 0],
    ),
    "a bound pod's required anti-affinity counts for nothing": (
        [pod("old", "a", "db", apart=(term(),)), pod("other", "c", "db", liked=(weighted(4),))],
        pod(),
        [0, 0, 100, 0],
    ),
    "a term that a bound pod lists twice counts twice": (
        [pod("old", "a", "db", liked=(weighted(2), weighted(2))), pod("other", "c", "db", liked=(weighted(1),))],
        pod(),
        [100, 100, 25, 0],
    ),
    "pods that are being deleted count when nodes are ranked": (
        [pod("old", "c", leaving=True)],
        pod(app="db", liked=(weighted(1),)),
        [0, 0, 100, 0],
    ),
    "it sits out when its terms speak of no pod": (
        [pod("old", "a", "db")],
        pod(liked=(weighted(1), weighted(1, None))),
        None,
    ),
    "it sits out when those it speaks of are on nodes without the label": (
        [pod("old", "d")],
        pod(liked=(weighted(1),)),
        None,
    ),
    "what cancels out is a score of nothing, not sitting out": (
        [pod("old", "a")],
        pod(app="db", liked=(weighted(5),), disliked=(weighted(5),)),
        [0, 0, 0, 0],
    ),
}


@pytest.mark.parametrize("bound, waiting, expected", [pytest.param(*case, id=name) for name, case in SCORES.items()])
def test_nodes_are_ranked(bound: list[Pod], waiting: Pod, expected: list[int] | None) -> None:
    assert scored(waiting, cluster(*bound)) == expected


def test_only_feasible_nodes_set_the_scale() -> None:
    made = cluster(pod("old", "a"), pod("other", "a"), pod("third", "b"))
    waiting = pod(app="db", liked=(weighted(1, key=HOST),))
    assert scored(waiting, made) == [100, 50, 0, 0]
    assert scored(waiting, made, feasible="bcd") == [100, 0, 0]
    assert scored(waiting, made, feasible="cd") == [0, 0]
    assert scored(waiting, made, feasible="a") == [0]


def test_where_no_node_is_nothing_is_refused_and_nothing_is_ranked() -> None:
    made = Cluster()
    waiting = pod(near=(term(),), apart=(term(key=HOST),), liked=(weighted(1),))
    assert checked(waiting, made) == []
    assert scored(waiting, made) is None
    assert scored(waiting, cluster(pod("old", "a")), feasible="") == []


def test_a_hard_weight_of_zero_leaves_required_terms_of_bound_pods_out() -> None:
    made = cluster(pod("old", "a", "db", near=(term(),)))
    assert scored(pod(), made) == [100, 100, 0, 0]
    assert scored(pod(), made, InterPodAffinity(hard_pod_affinity_weight=0)) is None


def test_the_hard_weight_scales_required_terms_against_preferred_ones() -> None:
    made = cluster(pod("old", "a", "db", near=(term(),)), pod("other", "c", "db", liked=(weighted(10),)))
    assert scored(pod(), made, InterPodAffinity(hard_pod_affinity_weight=100)) == [100, 100, 10, 0]


def test_terms_of_bound_pods_are_ignored_on_request_unless_the_pod_prefers_something_itself() -> None:
    made = cluster(pod("old", "a", "db", liked=(weighted(4),), near=(term(),)))
    ignoring = InterPodAffinity(ignore_preferred_terms_of_existing_pods=True)
    assert scored(pod(), made, ignoring) is None
    assert scored(pod(near=(term("db"),)), made, ignoring) is None
    assert scored(pod(liked=(weighted(1, "nobody"),)), made, ignoring) == [100, 100, 0, 0]


def test_it_wakes_for_bound_pods_and_node_labels() -> None:
    pods = {Wake.POD_ADDED, Wake.POD_DELETED, Wake.POD_LABEL}
    assert InterPodAffinity.wakes_on == pods | {Wake.NODE_ADDED, Wake.NODE_LABEL, Wake.NAMESPACE_LABEL}


@pytest.mark.parametrize("namespace, matches", [("default", True), ("prod", False), ("bare", True), ("gone", False)])
def test_by_the_rules_of_1_37_a_namespace_selector_matches_the_existing_namespaces_with_such_labels(
    namespace: str, matches: bool
) -> None:
    made = cluster(pod("old", "a", namespace=namespace))
    waits = made.class_of(pod(app="db", apart=(term(namespaceSelector=NOT_PROD),)))
    verdict = InterPodAffinity().with_rules(V1_37).check(waits, View(made))
    assert verdict is not None
    assert bool(verdict.any()) == matches
