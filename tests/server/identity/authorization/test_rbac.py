from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.identity.memory import Kept, Memory
from situate.server.identity.authorization import rbac
from situate.server.identity.authorization.aggregation import Aggregation
from situate.server.identity.authorization.attributes import Attributes, forbidden_error
from situate.server.identity.authorization.authorization import Authorization, named_by_fields
from situate.server.identity.authorization.rbac import Rbac
from situate.server.identity.authorization.rules import Rule, matches, uncovered
from situate.server.identity.ports import resource_of
from situate.server.requests import Caller, Object
from situate.server.resources import Resource

API = "rbac.authorization.k8s.io/v1"
JANE = Caller("jane", ("dev", "system:authenticated"))
LIST_PODS = Attributes("list", "", "pods", "", "default")


def role(name: str, *rules: Rule, labels: Object | None = None, gathers: Object | None = None) -> Object:
    made: Object = {"apiVersion": API, "kind": "ClusterRole", "metadata": {"name": name, "labels": labels or {}}}
    if gathers is not None:
        made["aggregationRule"] = {"clusterRoleSelectors": [gathers]}
    return made | {"rules": [rule.shown() for rule in rules]}


def binding(name: str, to: str, kind: str, who: str, namespace: str = "") -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": API,
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": to},
        "subjects": [{"kind": kind, "name": who}],
    }


READ_PODS = Rule(("get", "list"), ("",), ("pods",))


def test_a_change_of_roles_counts_from_the_next_decision_on() -> None:
    memory = Memory(role("reader", READ_PODS))
    rights = Rbac(memory)
    assert not rights.allows(JANE, LIST_PODS).allowed
    memory.put(binding("jane", "reader", "User", "jane"))
    assert rights.allows(JANE, LIST_PODS).allowed
    memory.put(role("reader"))
    assert not rights.allows(JANE, LIST_PODS).allowed
    memory.put(role("reader", READ_PODS))
    assert rights.allows(JANE, LIST_PODS).allowed
    memory.remove(resource_of(API, "clusterrolebindings"), "", "jane")
    assert not rights.allows(JANE, LIST_PODS).allowed


def test_the_reason_says_by_which_binding() -> None:
    memory = Memory(role("reader", READ_PODS), binding("devs", "reader", "Group", "dev", "default"))
    decision = Rbac(memory).allows(JANE, LIST_PODS)
    assert decision.reason == 'RBAC: allowed by RoleBinding "devs/default" of ClusterRole "reader" to Group "dev"'


def test_a_binding_that_leads_nowhere_is_told() -> None:
    memory = Memory(binding("lost", "absent", "User", "jane"))
    decision = Rbac(memory).allows(JANE, LIST_PODS)
    assert decision == (False, 'RBAC: clusterrole.rbac.authorization.k8s.io "absent" not found')


def test_only_roles_that_changed_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(*(role(f"r{number}", READ_PODS) for number in range(50)))
    rights = Rbac(memory)
    rights.allows(JANE, LIST_PODS)
    read: list[str] = []
    real = Kept.object

    def noted(kept: Kept, resource: Resource) -> Object:
        read.append(kept.name)
        return real(kept, resource)

    monkeypatch.setattr(Kept, "object", noted)
    memory.put(role("r7", READ_PODS))
    rights.allows(JANE, LIST_PODS)
    assert read == ["r7"]


def test_decisions_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, "MAX_CACHED_DECISIONS", 10)
    memory = Memory(role("reader", READ_PODS), binding("jane", "reader", "User", "jane"))
    rights = Rbac(memory)
    for number in range(100):
        assert rights.allows(JANE, LIST_PODS._replace(namespace=f"n{number}")).allowed
        assert len(rights._decisions) <= 10


@pytest.mark.parametrize("namespace, path", [("n" * 3_000, ""), ("", "/" + "p" * 3_000)], ids=["namespaces", "paths"])
def test_long_text_of_a_request_is_not_remembered(namespace: str, path: str) -> None:
    rights = Rbac(Memory())
    resource = "pods" if namespace else ""
    for number in range(100):
        asked = Attributes("get", "", resource, "", namespace + str(number), path=path + str(number) if path else "")
        assert not rights.allows(JANE, asked).allowed
    assert not rights._decisions


def test_a_full_cache_keeps_the_newest_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, "MAX_CACHED_DECISIONS", 10)
    rights = Rbac(Memory())
    for number in range(25):
        rights.allows(JANE, Attributes("get", path=f"/p{number}"))
    assert [key[-1] for key in rights._decisions] == [f"/p{number}" for number in range(15, 25)]


def test_names_of_objects_take_no_room() -> None:
    memory = Memory(role("reader", READ_PODS), binding("jane", "reader", "User", "jane"))
    rights = Rbac(memory)
    for number in range(100):
        rights.allows(JANE, Attributes("get", "", "pods", "", "default", f"pod-{number}"))
    assert len(rights._decisions) == 1


def test_roles_that_gather_each_other_end() -> None:
    either = {"matchLabels": {"x": "y"}}
    roles = {
        "a": role("a", labels={"x": "y"}, gathers=either),
        "b": role("b", labels={"x": "y"}, gathers=either),
        "c": role("c", READ_PODS, labels={"x": "y"}),
    }
    assert Aggregation(roles).rules("a") == (READ_PODS,)


def test_many_roles_that_gather_each_other_cost_their_number() -> None:
    roles = {f"r{number:03}": role(f"r{number:03}", gathers={}) for number in range(400)}
    roles |= {f"s{number}": role(f"s{number}", Rule(("get",), ("",), (f"r{number}",))) for number in range(10)}
    began = perf_counter()
    found = Aggregation(roles)
    assert all(len(found.rules(name) or ()) == 10 for name in roles if name[0] == "r")
    assert perf_counter() - began < 5.0  # 0.2 s; by path it does not end


def test_rules_come_in_the_order_of_selectors_and_then_of_names() -> None:
    def rule(name: str) -> Rule:
        return Rule(("get",), ("",), (name,))

    roles = {
        "all": role("all", gathers={"matchLabels": {"in": "all"}}),
        "edit": role("edit", labels={"in": "all"}, gathers={"matchLabels": {"in": "edit"}}),
        "zz": role("zz", rule("z"), labels={"in": "edit"}),
        "aa": role("aa", rule("a"), rule("b"), labels={"in": "edit"}),
        "system": role("system", rule("s"), rule("a"), labels={"in": "all"}),
    }
    assert Aggregation(roles).rules("all") == (rule("a"), rule("b"), rule("z"), rule("s"))
    assert Aggregation(roles).rules("none") is None


@pytest.mark.parametrize(
    "selector, found",
    [
        ({"matchLabels": {"x": "y"}}, True),
        ({"matchLabels": {"x": "z"}}, False),
        ({"matchExpressions": [{"key": "x", "operator": "In", "values": ["y"]}]}, True),
        ({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "q", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "x", "operator": "Strange"}]}, False),
    ],
)
def test_a_role_gathers_by_any_kind_of_selector(selector: Object, found: bool) -> None:
    roles = {"a": role("a", gathers=selector), "c": role("c", READ_PODS, labels={"x": "y"})}
    assert bool(Aggregation(roles).rules("a")) is found


def test_a_list_of_one_name_counts_as_one_of_that_name() -> None:
    memory = Memory(
        role("one", Rule(("list",), ("",), ("pods",), ("a",))), binding("jane", "one", "User", "jane", "default")
    )
    asked = LIST_PODS._replace(fields="metadata.name=a")
    authorization = Authorization(memory)
    assert authorization.allows(JANE, named_by_fields(asked)).allowed
    assert not authorization.allows(JANE, named_by_fields(asked._replace(fields="metadata.name!=a"))).allowed
    assert not authorization.allows(JANE, named_by_fields(asked._replace(fields="metadata.name=b"))).allowed
    assert not authorization.allows(JANE, LIST_PODS).allowed


def test_a_decision_costs_microseconds(world: Memory) -> None:
    authorization = Authorization(world)
    caller = Caller("kate", ("system:authenticated",))
    asked = [Attributes("create", "", "pods", "", "shop", f"p{number}") for number in range(20_000)]
    authorization.allows(caller, asked[0])
    start = perf_counter()
    for one in asked:
        authorization.allows(caller, one)
    each = (perf_counter() - start) / len(asked)
    # About 1.5 µs where it was measured; a machine under load gets much room.
    assert each < 50e-6


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "asked, text",
    [
        (
            LIST_PODS,
            'pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            Attributes("get", "", "jobs", "status", "", "a"),
            'jobs "a" is forbidden: User "x" cannot get resource "jobs/status" in API group "" at the cluster scope',
        ),
        (Attributes("get", path="/logs"), 'forbidden: User "x" cannot get path "/logs"'),
    ],
)
def test_a_refusal_reads_as_kubernetes_says_it(asked: Attributes, text: str) -> None:
    error = forbidden_error(Caller("x"), asked, "")
    assert (error.code, error.reason, error.message) == (403, "Forbidden", text)
    assert forbidden_error(Caller("x"), asked, "why").message == f"{text}: why"


def test_a_name_in_a_refusal_cannot_be_html() -> None:
    assert "<script>" not in forbidden_error(Caller("<script>"), LIST_PODS, "").message


# ── rules, by their meaning ──────────────────────────────────────────────────────────────────────────────────────────

VERBS, GROUPS, RESOURCES = ("get", "list"), ("", "apps"), ("pods", "pods/log", "jobs", "jobs/log")
NAMES, PATHS = ("a", "b"), ("/x", "/x/y")


def some(*values: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), max_size=2, unique=True).map(tuple)


NONE: st.SearchStrategy[tuple[str, ...]] = st.just(())
RULES = st.one_of(
    st.builds(
        Rule,
        some(*VERBS, "*"),
        some(*GROUPS, "*"),
        some(*RESOURCES, "*", "*/log"),
        st.one_of(NONE, some(*NAMES)),
        NONE,
    ),
    st.builds(Rule, some(*VERBS, "*"), NONE, NONE, NONE, some(*PATHS, "/x/*", "*")),
)
EVERY = [
    *(
        Attributes(verb, group, resource.partition("/")[0], resource.partition("/")[2], "", name)
        for verb in VERBS
        for group in GROUPS
        for resource in RESOURCES
        for name in ("", *NAMES)
    ),
    *(Attributes(verb, path=path) for verb in VERBS for path in PATHS),
]


def allowed(rules: list[Rule]) -> set[Attributes]:
    return {
        asked
        for asked in EVERY
        for rule in rules
        if matches(rule, asked) and (not rule.names or not asked.resource or asked.name in rule.names)
    }


@pytest.mark.parametrize(
    "owned, wanted, covered",
    [
        pytest.param(
            Rule(("get",), ("",), ("pods",), ("a",)), Rule(("get",), ("",), ("pods",)), False, id="one is not all"
        ),
        pytest.param(
            Rule(("get",), ("",), ("pods",), ("a",)), Rule(("get",), ("",), ("pods",), ("b",)), False, id="nor another"
        ),
        pytest.param(
            Rule(("get",), ("",), ("pods",), ("a",)), Rule(("get",), ("",), ("pods",), ("a",)), True, id="but itself"
        ),
        pytest.param(Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("pods",), ("a",)), True, id="all is one"),
        pytest.param(Rule(("get",), ("",), ("pods",)), Rule(("*",), ("",), ("pods",)), False, id="a verb is not all"),
        pytest.param(
            Rule(("get",), ("",), ("pods",)), Rule(("get",), ("*",), ("pods",)), False, id="a group is not all"
        ),
        pytest.param(
            Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("*",)), False, id="a resource is not all"
        ),
        pytest.param(Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("pods/log",)), False, id="nor its log"),
        pytest.param(Rule(("get",), ("",), ("*/log",)), Rule(("get",), ("",), ("pods/log",)), True, id="all logs"),
        pytest.param(Rule(("get",), paths=("/x/*",)), Rule(("get",), paths=("/x/y/*",)), True, id="paths below"),
        pytest.param(Rule(("get",), paths=("/x/*",)), Rule(("get",), paths=("*",)), False, id="are not all paths"),
        pytest.param(Rule(("*",), ("*",), ("*",)), Rule(("get",), paths=("/x",)), False, id="resources are no paths"),
    ],
)
def test_what_covers_what(owned: Rule, wanted: Rule, covered: bool) -> None:
    assert (uncovered([owned], [wanted]) == []) is covered


@given(st.lists(RULES, max_size=3), st.lists(RULES, max_size=2))
@settings(max_examples=150, deadline=None)
def test_what_is_covered_allows_nothing_that_the_owner_may_not(owned: list[Rule], wanted: list[Rule]) -> None:
    if not uncovered(owned, wanted):
        assert allowed(wanted) <= allowed(owned)


@given(st.lists(RULES, max_size=3))
@settings(max_examples=100, deadline=None)
def test_everybody_covers_what_they_have(owned: list[Rule]) -> None:
    assert uncovered(owned, owned) == []
