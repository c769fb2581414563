"""Roles, bindings and reviews in detail: which rule allows, what a refusal says, and who may grant what."""

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest

from server.identity.clock import Clock
from server.identity.memory import Memory
from situate.server.errors import StatusError
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization import rbac
from situate.server.identity.authorization.aggregation import Aggregation
from situate.server.identity.authorization.attributes import Attributes, field_requirements
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.escalation import NoEscalation
from situate.server.identity.authorization.rbac import MAX_CACHED_LENGTH, Rbac
from situate.server.identity.authorization.reviews import Reviews
from situate.server.identity.authorization.rules import Rule, described, matches, parse_rule, quoted
from situate.server.identity.ports import resource_of
from situate.server.identity.tokens.token_files import UserTokens
from situate.server.requests import Caller, Object, Target

GROUP = "rbac.authorization.k8s.io"
API = f"{GROUP}/v1"
JANE = Caller("jane", ("dev",))
GET_POD = Attributes("get", "", "pods", "", "shop", "web")
READ_PODS = Rule(("get",), ("",), ("pods",))


def role(name: str, *rules: Rule, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "rules": [rule.shown() for rule in rules], **more}


def binding(
    name: str, to: str, subject: Object | None = None, namespace: str = "", kind: str = "ClusterRole"
) -> Object:
    return {
        "apiVersion": API,
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": to},
        "subjects": [subject or {"kind": "User", "name": "jane"}],
    }


# ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_rule_that_allows_every_name_is_the_reason() -> None:
    memory = Memory(role("r", READ_PODS), binding("b", "r"), binding("a", "r"), binding("c", "r"))
    assert Rbac(memory).allows(JANE, GET_POD).reason == (
        'RBAC: allowed by ClusterRoleBinding "a" of ClusterRole "r" to User "jane"'
    )


def test_a_rule_with_names_allows_those_and_the_first_of_two_is_the_reason() -> None:
    named = Rule(("get",), ("",), ("pods",), ("web", "db"))
    memory = Memory(role("r", named), binding("a", "r"), binding("b", "r"))
    rights = Rbac(memory)
    assert 'ClusterRoleBinding "a"' in rights.allows(JANE, GET_POD).reason
    assert rights.allows(JANE, GET_POD._replace(name="db")).allowed
    for name in ("other", ""):
        assert not rights.allows(JANE, GET_POD._replace(name=name)).allowed


def test_names_do_not_matter_for_paths() -> None:
    rule = Rule(("get",), names=("x",), paths=("/logs",))
    rights = Rbac(Memory(role("r", rule), binding("a", "r")))
    assert rights.allows(JANE, Attributes("get", path="/logs")).allowed
    assert not rights.allows(JANE, Attributes("get", path="/logs/a")).allowed


@pytest.mark.parametrize(
    "subject, namespace, who, allowed",
    [
        ({"kind": "ServiceAccount", "name": "x"}, "shop", "system:serviceaccount:shop:x", True),
        ({"kind": "ServiceAccount", "name": "x", "namespace": "a"}, "shop", "system:serviceaccount:a:x", True),
        ({"kind": "ServiceAccount", "name": "x", "namespace": "a"}, "shop", "system:serviceaccount:shop:x", False),
        ({"kind": "ServiceAccount", "name": "x"}, "", "system:serviceaccount::x", False),
        ({"kind": "ServiceAccount", "name": "x", "namespace": "a"}, "", "system:serviceaccount:a:x", True),
        ({"kind": "User", "name": "x"}, "", "x", True),
        ({"kind": "Robot", "name": "x"}, "", "x", False),
    ],
)
def test_a_subject_is(subject: Object, namespace: str, who: str, allowed: bool) -> None:
    rights = Rbac(Memory(role("r", READ_PODS), binding("b", "r", subject, namespace)))
    decision = rights.allows(Caller(who), GET_POD)
    assert decision.allowed is allowed
    if allowed and subject["kind"] == "ServiceAccount":
        assert f'to ServiceAccount "x/{subject.get("namespace") or namespace}"' in decision.reason


def test_a_role_is_found_where_its_binding_is() -> None:
    local = role("r", READ_PODS, namespace="shop")
    assert Rbac(Memory(local, binding("b", "r", None, "shop", "Role"))).allows(JANE, GET_POD).allowed
    assert not Rbac(Memory(local, binding("b", "r", None, "other", "Role"))).allows(JANE, GET_POD).allowed
    lost = Rbac(Memory(local, binding("b", "r", None, "shop", "Odd"), binding("c", "s"))).allows(JANE, GET_POD)
    assert lost.reason == f'RBAC: [clusterrole.{GROUP} "s" not found, odd.{GROUP} "r" not found]'
    same = Rbac(Memory(binding("c", "s"), binding("d", "s"))).allows(JANE, GET_POD)
    assert same.reason == f'RBAC: clusterrole.{GROUP} "s" not found'


def test_rules_are_listed_as_they_are_now() -> None:
    memory = Memory(role("r", READ_PODS))
    rights = Rbac(memory)
    assert rights.rules_for(JANE, "shop") == ([], [])
    assert rights.rules_of_role("ClusterRole", "r", "") == (READ_PODS,)
    memory.put(binding("b", "r", None, "shop"))
    assert [one.rule for one in rights.rules_for(JANE, "shop")[0]] == [READ_PODS]
    assert rights.rules_for(JANE, "") == ([], [])
    memory.put(role("r"))
    assert rights.rules_of_role("ClusterRole", "r", "") == ()
    memory.remove(resource_of(API, "clusterroles"), "", "r")
    for namespace, plural in (("", "clusterrolebindings"), ("shop", "rolebindings")):
        with pytest.raises(StatusError, match=rf'^{plural}\.{GROUP} "r" not found'):
            rights.rules_of_role("ClusterRole", "r", namespace)


def test_decisions_about_short_requests_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    rights = Rbac(Memory(role("r", READ_PODS), binding("b", "r")))
    asked: list[Attributes] = []

    def noted(rule: Rule, attributes: Attributes) -> bool:
        asked.append(attributes)
        return matches(rule, attributes)

    monkeypatch.setattr(rbac, "matches", noted)
    for length, times in ((MAX_CACHED_LENGTH, 1), (MAX_CACHED_LENGTH + 1, 3)):
        asked.clear()
        for _ in range(3):
            assert rights.allows(JANE, GET_POD._replace(namespace="n" * (length - len("pods")))).allowed
        assert len(asked) == times


def test_field_selectors_are_read() -> None:
    assert field_requirements("a=b, c!=d ,e==f,odd,g=h=i") == [
        ("a", True, "b"),
        ("c", False, "d"),
        ("e", True, "f"),
        ("g", True, "h=i"),
    ]


# ── aggregation ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "term, labels, found",
    [
        ({"operator": "In", "values": ["y"]}, {}, False),
        ({"operator": "In", "values": ["y"]}, {"x": "z"}, False),
        ({"operator": "NotIn", "values": ["y"]}, {}, True),
        ({"operator": "NotIn", "values": ["y"]}, {"x": "z"}, True),
        ({"operator": "Exists"}, {}, False),
        ({"operator": "DoesNotExist"}, {"x": "y"}, False),
    ],
)
def test_a_term_selects(term: Object, labels: Object, found: bool) -> None:
    gathers = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "x", **term}]}]}
    part = role("c", READ_PODS)
    part["metadata"]["labels"] = labels
    rules = Aggregation({"a": role("a", aggregationRule=gathers), "c": part}).rules("a")
    assert rules == ((READ_PODS,) if found else ())


def test_rules_are_computed_once_and_no_selector_selects_nothing() -> None:
    gathers = {"clusterRoleSelectors": None, "other": 1}
    found = Aggregation({"a": role("a", READ_PODS, aggregationRule=gathers), "c": role("c", READ_PODS)})
    assert (found.rules("a"), found.rules("c")) == ((), (READ_PODS,))
    assert found.rules("c") is found.rules("c")


# ── granting ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ROLES, BINDINGS = resource_of(API, "clusterroles"), resource_of(API, "clusterrolebindings")
ANN = Caller("ann")


def why_not(
    memory: Memory,
    target: Target,
    new: Object | None,
    old: Object | None = None,
    caller: Caller = ANN,
    action: Literal["create", "update", "delete"] = "update",
) -> str:
    authorization = Authorization(memory)
    try:
        asyncio.run(NoEscalation(authorization.rbac, authorization).admit(action, target, new, old, caller))
    except StatusError as error:
        return error.message
    return ""


def test_who_does_not_grant_is_not_asked() -> None:
    memory, target, new = Memory(), Target(ROLES, "", "r"), role("r", READ_PODS)
    assert "is attempting to grant RBAC permissions not currently held" in why_not(memory, target, new, action="create")
    assert why_not(memory, target, new, new, action="delete") == ""
    assert why_not(memory, target, None) == ""
    assert why_not(memory, target, new, caller=Caller("root", ("system:masters",))) == ""
    assert why_not(memory, Target(resource_of("v1", "pods"), "shop", "web"), new) == ""


@pytest.mark.parametrize("field", ["ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"])
def test_a_write_that_changes_only_bookkeeping_grants_nothing(field: str) -> None:
    old = role("r", READ_PODS)
    new = old | {"metadata": old["metadata"] | {field: "x"}}
    assert why_not(Memory(), Target(ROLES, "", "r"), new, old) == ""
    labelled = old | {"metadata": old["metadata"] | {"labels": {"a": "b"}}}
    assert why_not(Memory(), Target(ROLES, "", "r"), labelled, old).startswith(f'clusterroles.{GROUP} "r" is forbidden')


def test_a_refusal_names_the_object_and_what_could_not_be_resolved() -> None:
    memory = Memory(binding("lost", "absent", {"kind": "User", "name": "ann"}))
    said = why_not(memory, Target(ROLES), role("made", READ_PODS), action="create")
    assert said.startswith(f'clusterroles.{GROUP} "made" is forbidden: user "ann" (groups=[]) is attempting to grant')
    assert said.endswith(
        '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}; '
        f'resolution errors: [clusterrole.{GROUP} "absent" not found]'
    )


def test_to_gather_needs_every_right_also_where_an_old_role_did() -> None:
    gathers: Object = {"clusterRoleSelectors": [{}]}
    memory = Memory(role("some", READ_PODS), binding("b", "some", {"kind": "User", "name": "ann"}))
    target, plain, gathering = Target(ROLES, "", "r"), role("r"), role("r", aggregationRule=gathers)
    assert why_not(memory, target, plain | {"rules": [READ_PODS.shown()]}) == ""
    for new, old in ((gathering, None), (gathering, plain), (plain, gathering)):
        assert "must have cluster-admin privileges to use the aggregationRule" in why_not(memory, target, new, old)
    every = role("all", Rule(("*",), ("*",), ("*",)), Rule(("*",), paths=("*",)))
    assert why_not(Memory(every, binding("b", "all", {"kind": "User", "name": "ann"})), target, gathering) == ""


def test_a_role_of_no_kind_cannot_be_bound() -> None:
    with_kind = binding("made", "r", kind="Odd")
    assert (
        why_not(Memory(role("r")), Target(BINDINGS, "", "made"), with_kind)
        == f'clusterrolebindings.{GROUP} "r" not found'
    )
    assert why_not(Memory(role("r")), Target(BINDINGS, "", "made"), binding("made", "r")) == ""


def test_missing_rights_are_described_as_kube_apiserver_does() -> None:
    rules = [
        Rule(("list",), ("",), ("pods",)),
        Rule(("get",), ("",), ("pods",)),
        Rule(("get",), ("",), ("pods",), ("web",)),
        Rule(("get",), paths=("/x",)),
        Rule(("post",), paths=("/x",)),
    ]
    assert described(rules).splitlines() == [
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["web"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["pods"], Verbs:["list" "get"]}',
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
        '{NonResourceURLs:["/x"], Verbs:["post"]}',
    ]
    assert quoted(["ä", 'b"']) == '["ä" "b\\""]'
    assert parse_rule(Rule().shown()).shown() == {"verbs": []}


# ── reviews ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PODS = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "shop"}}
PATH = {"nonResourceAttributes": {"verb": "get", "path": "/x"}}


@pytest.fixture
def reviews(tmp_path: Path) -> Reviews:
    memory = Memory(role("r", READ_PODS, Rule(("get",), paths=("/x",))), binding("b", "r"), binding("lost", "absent"))
    users = UserTokens(tmp_path / "tokens.json")
    return Reviews(Authorization(memory), Authentication(clock=Clock(), users=users))


def test_a_local_review_is_about_resources_of_one_namespace(reviews: Reviews) -> None:
    spec = {"user": "jane", **PODS}
    fine: list[Object] = [{}, {"namespace": "shop"}, {"creationTimestamp": None}, {"managedFields": []}]
    for metadata in fine:
        assert reviews.local_access({"metadata": metadata, "spec": spec}, "shop")["status"]["allowed"]
    with pytest.raises(StatusError, match="does not match the namespace sent on the request"):
        reviews.local_access({"metadata": {"namespace": "other"}, "spec": spec}, "shop")
    with pytest.raises(StatusError, match="disallowed on this kind of request"):
        reviews.local_access({"spec": {"user": "jane", **PATH}}, "shop")
    with pytest.raises(StatusError, match="at least one of user or group"):
        reviews.local_access({"spec": PODS}, "shop")
    with pytest.raises(StatusError, match="must be empty"):
        reviews.local_access({"metadata": {"name": "x"}, "spec": spec}, "shop")


def test_other_reviews_have_no_namespace(reviews: Reviews) -> None:
    for metadata in ({"namespace": "shop"}, {"name": "x"}):
        with pytest.raises(StatusError, match="must be empty"):
            reviews.access({"metadata": metadata, "spec": {"user": "jane", **PODS}})
        with pytest.raises(StatusError, match="must be empty"):
            reviews.self_access({"metadata": metadata, "spec": PODS}, JANE)
    with pytest.raises(StatusError, match="exactly one of"):
        reviews.self_access({"spec": {}}, JANE)


def test_a_review_of_a_path(reviews: Reviews) -> None:
    assert reviews.access({"spec": {"user": "jane", **PATH}})["status"]["allowed"]
    other = {"nonResourceAttributes": {"verb": "get", "path": "/y"}}
    assert not reviews.access({"spec": {"user": "jane", **other}})["status"]["allowed"]


def test_what_could_not_be_resolved_is_said_with_the_rules(reviews: Reviews) -> None:
    status = reviews.self_rules({"spec": {"namespace": "shop"}}, JANE)["status"]
    assert status == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        "incomplete": False,
        "evaluationError": f'clusterrole.{GROUP} "absent" not found',
    }
    assert "evaluationError" not in reviews.self_rules({"spec": {"namespace": "shop"}}, ANN)["status"]


def test_only_what_is_known_of_a_user_is_shown(reviews: Reviews) -> None:
    assert reviews.self_subject({}, Caller("jane"))["status"] == {"userInfo": {"username": "jane"}}
