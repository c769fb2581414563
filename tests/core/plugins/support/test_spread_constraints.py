"""Spread constraints are parsed with their pod's labels, and know which nodes count."""

import pytest

from situate.core.model.labels import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    LabelSelectorRequirement,
    Requirement,
    SelectorError,
    selector_of,
)
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec
from situate.core.model.pod import Pod, PodSpec, TopologySpreadConstraint
from situate.core.model.tolerations import Taint, Toleration
from situate.core.plugins.support.spread_constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Constraint,
    counted,
    default_constraints,
    domains_among,
    own_selector,
    parse_constraints,
)
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

WEB = LabelSelector(match_labels={"app": "web"})
HARD = TopologySpreadConstraint(
    max_skew=2, topology_key="zone", when_unsatisfiable=DO_NOT_SCHEDULE, label_selector=WEB, min_domains=3
)
SOFT = TopologySpreadConstraint(
    max_skew=1,
    topology_key="rack",
    when_unsatisfiable=SCHEDULE_ANYWAY,
    node_affinity_policy="Ignore",
    node_taints_policy="Honor",
)
IS_WEB = Requirement("app", "In", ("web",))


def test_constraints_are_sorted_out_by_what_happens_when_they_cannot_be_met() -> None:
    assert parse_constraints((HARD, SOFT), DO_NOT_SCHEDULE, {}) == (
        Constraint(2, "zone", selector_of([IS_WEB]), 3, honors_affinity=True, honors_taints=False),
    )
    assert parse_constraints((HARD, SOFT), SCHEDULE_ANYWAY, {}) == (
        Constraint(1, "rack", NOTHING, 1, honors_affinity=False, honors_taints=True),
    )


def test_default_constraints_take_the_selector_given() -> None:
    selector = selector_of([Requirement("tier", "Exists")])
    assert [one.selector for one in default_constraints((HARD, SOFT), DO_NOT_SCHEDULE, selector)] == [selector]


def keyed(selector: LabelSelector | None, *keys: str) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(label_selector=selector, match_label_keys=keys)


def test_match_label_keys_narrow_the_selector_to_the_values_of_the_pod() -> None:
    labels = {"app": "web", "hash": "x1"}
    hashed = Requirement("hash", "In", ("x1",))
    assert own_selector(keyed(WEB, "hash", "absent"), labels) == selector_of([IS_WEB, hashed])
    assert own_selector(keyed(LabelSelector(), "hash"), labels) == selector_of([hashed])
    assert own_selector(keyed(LabelSelector(), "absent"), labels) == EVERYTHING


def test_match_label_keys_do_not_widen_an_absent_selector() -> None:
    assert own_selector(keyed(None, "hash"), {"hash": "x1"}) == NOTHING


def test_a_selector_that_cannot_be_parsed_is_an_error() -> None:
    wrong = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    with pytest.raises(SelectorError, match='"Near" is not a valid label selector operator'):
        own_selector(keyed(wrong), {})


GONE = Taint(key="gone", effect="NoExecute")
SLOW = Taint(key="slow", effect="PreferNoSchedule")


def cluster() -> Cluster:
    made = Cluster()
    for name, labels, taints in (
        ("n0", {"zone": "a", "rack": "1", "disk": "ssd"}, ()),
        ("n1", {"zone": "b", "rack": "1"}, (SLOW,)),
        ("n2", {"zone": "c"}, (GONE,)),
        ("n3", {"rack": "2"}, ()),
    ):
        made.add_node(Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=taints)))
    return made


def eligible(constraint: TopologySpreadConstraint, *keys: str, spec: PodSpec | None = None) -> list[int] | None:
    """The rows that count, None for all that might; checked against the domains they are in."""
    made = cluster()
    view = View(made)
    pod = made.class_of(Pod(spec=spec or PodSpec()))
    (parsed,) = parse_constraints((constraint,), DO_NOT_SCHEDULE, {})
    found = counted(pod, parsed, keys, view)
    ids, _ = view.label(parsed.topology_key)
    rows = [row for row in range(4) if ids[row] >= 0 and (found.eligible is None or found.eligible.mask[row])]
    assert domains_among(found, view).tolist() == sorted({int(ids[row]) for row in rows})
    return None if found.eligible is None else found.eligible.mask.nonzero()[0].tolist()


def zoned(**policies: str) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(topology_key="zone", when_unsatisfiable=DO_NOT_SCHEDULE, **policies)  # type: ignore[arg-type]


def test_all_nodes_with_the_key_count_if_nothing_is_demanded() -> None:
    assert eligible(zoned(), "zone") is None


def test_nodes_without_the_key_of_another_constraint_do_not_count() -> None:
    assert eligible(zoned(), "rack", "zone") == [0, 1]


def test_nodes_that_the_node_selector_rules_out_do_not_count_unless_that_is_ignored() -> None:
    spec = PodSpec(node_selector={"disk": "ssd"})
    assert eligible(zoned(), "zone", spec=spec) == [0]
    assert eligible(zoned(node_affinity_policy="Ignore"), "zone", spec=spec) is None


def test_nodes_with_taints_that_are_not_tolerated_do_not_count_where_that_is_honoured() -> None:
    honoured = zoned(node_taints_policy="Honor")
    assert eligible(honoured, "zone") == [0, 1]
    assert eligible(honoured, "zone", spec=PodSpec(tolerations=(Toleration(key="gone", operator="Exists"),))) is None
    assert eligible(zoned(), "zone") is None
