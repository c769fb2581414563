import asyncio
from pathlib import Path
from typing import Any

import pytest

from server.identity.clock import Clock
from server.identity.memory import Memory
from server.identity.user_tokens import add_token
from situate.server.errors import StatusError
from situate.server.http.ports import CreateHandler, CreateRequest
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.node_restriction import NodeRestriction
from situate.server.identity.authorization.reviews import Reviews
from situate.server.identity.create_handlers import create_handlers
from situate.server.identity.pki.account_keys import AccountKeys
from situate.server.identity.pki.certificates import new_key
from situate.server.identity.tokens.service_account_tokens import ISSUER, AccountTokens
from situate.server.identity.tokens.token_files import UserTokens
from situate.server.identity.tokens.token_requests import TokenRequests
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND, RESOURCES

KATE = Caller("kate", ("system:authenticated",))
PODS = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "shop"}}


class Office:
    def __init__(self, world: Memory, folder: Path) -> None:
        self.clock = Clock()
        self.token_file = folder / "tokens.json"
        accounts = AccountTokens(AccountKeys(new_key()), world)
        authorization = Authorization(world)
        authentication = Authentication(clock=self.clock, users=UserTokens(self.token_file), accounts=accounts)
        self.reviews = Reviews(authorization, authentication)
        self.tokens = TokenRequests(
            world, accounts, NodeRestriction(world, authorization), clock=self.clock, new_uid=lambda: "id"
        )


@pytest.fixture
def office(world: Memory, tmp_path: Path) -> Office:
    return Office(world, tmp_path)


def test_may_i(office: Office) -> None:
    answer = office.reviews.self_access({"kind": "SelfSubjectAccessReview", "spec": PODS}, KATE)
    reason = 'RBAC: allowed by RoleBinding "kate/shop" of ClusterRole "admin" to User "kate"'
    assert answer["status"] == {"allowed": True, "reason": reason}
    elsewhere = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "other"}}
    assert office.reviews.self_access({"spec": elsewhere}, KATE)["status"] == {"allowed": False}
    path = {"nonResourceAttributes": {"verb": "get", "path": "/api"}}
    assert office.reviews.self_access({"spec": path}, KATE)["status"]["allowed"]


def test_may_they(office: Office) -> None:
    assert office.reviews.access({"spec": {"user": "vera", **PODS}})["status"]["allowed"]
    assert office.reviews.access({"spec": {"groups": ["editors"], **PODS}})["status"]["allowed"]
    assert not office.reviews.access({"spec": {"user": "jane", **PODS}})["status"]["allowed"]


@pytest.mark.parametrize(
    "selector, allowed",
    [
        ({"rawSelector": "spec.nodeName=alpha"}, True),
        ({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["alpha"]}]}, True),
        ({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["alpha", "beta"]}]}, False),
        ({"requirements": [{"key": "spec.nodeName", "operator": "NotIn", "values": ["alpha"]}]}, False),
        ({"requirements": [{"key": "spec.nodeName", "operator": "Odd"}]}, False),
    ],
)
def test_a_selector_narrows_what_a_node_asks(office: Office, selector: Object, allowed: bool) -> None:
    asked = {"verb": "list", "resource": "pods", "fieldSelector": selector}
    spec = {"user": "system:node:alpha", "groups": ["system:nodes"], "resourceAttributes": asked}
    assert office.reviews.access({"spec": spec})["status"]["allowed"] is allowed


def test_a_local_review_is_about_its_own_namespace(office: Office) -> None:
    review = {"spec": {"user": "vera", **PODS}}
    assert office.reviews.local_access(review, "shop")["status"]["allowed"]
    with pytest.raises(StatusError, match=r"must match metadata\.namespace"):
        office.reviews.local_access(review, "other")


@pytest.mark.parametrize(
    "review, text",
    [
        ({"spec": {"user": "x"}}, "exactly one of nonResourceAttributes or resourceAttributes must be specified"),
        ({"spec": {"user": "x", "nonResourceAttributes": {}, **PODS}}, "cannot be specified in combination"),
        ({"spec": PODS}, 'spec.user: Invalid value: "": at least one of user or group must be specified'),
        ({"metadata": {"name": "x"}, "spec": {"user": "x", **PODS}}, "metadata: Invalid value: must be empty"),
    ],
)
def test_a_review_that_is_wrong_is_told_what(office: Office, review: Object, text: str) -> None:
    with pytest.raises(StatusError) as raised:
        office.reviews.access(review)
    assert raised.value.code == 422
    assert text in raised.value.message


def test_all_i_may(office: Office) -> None:
    answer = office.reviews.self_rules({"spec": {"namespace": "shop"}}, Caller("vera", ("system:authenticated",)))
    status: Any = answer["status"]
    assert {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]} in status[
        "resourceRules"
    ]
    assert any("/healthz" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    assert status["incomplete"] is False
    with pytest.raises(StatusError, match="no namespace on request"):
        office.reviews.self_rules({"spec": {}}, KATE)


def test_what_a_node_may_cannot_be_listed_and_it_says_so(office: Office) -> None:
    node = Caller("system:node:alpha", ("system:nodes", "system:authenticated"))
    status = office.reviews.self_rules({"spec": {"namespace": "shop"}}, node)["status"]
    assert status["incomplete"] is True
    assert "node authorizer" in status["evaluationError"]


def test_who_am_i(office: Office) -> None:
    caller = Caller("jane", ("a",), "7", {"k": ("v",)})
    shown = office.reviews.self_subject({"kind": "SelfSubjectReview"}, caller)["status"]["userInfo"]
    assert shown == {"username": "jane", "uid": "7", "groups": ["a"], "extra": {"k": ["v"]}}


def test_whose_token_is_this(office: Office) -> None:
    token = add_token(office.token_file, "jane", ["dev"])
    status = office.reviews.token({"spec": {"token": token}})["status"]
    assert status["authenticated"] is True
    assert status["user"] == {"username": "jane", "groups": ["dev", "system:authenticated"]}
    assert status["audiences"] == [ISSUER]
    assert office.reviews.token({"spec": {"token": "x"}})["status"] == {"user": {}, "error": "invalid bearer token"}
    assert "audiences" in office.reviews.token({"spec": {"token": token, "audiences": ["x"]}})["status"]["error"]
    with pytest.raises(StatusError, match="token is required"):
        office.reviews.token({"spec": {}})


def test_every_question_that_is_served_is_answered(office: Office) -> None:
    table = create_handlers(office.reviews, office.tokens)
    asked = {
        (one.group, one.plural, "") for one in RESOURCES if one.group.startswith("auth") and one.verbs == ("create",)
    }
    assert asked | {("", "serviceaccounts", "token")} == set(table)


async def _called(special: CreateHandler, asked: CreateRequest) -> Object:
    return await special.call(asked)


def test_the_table_leads_to_the_answers(office: Office) -> None:
    table = create_handlers(office.reviews, office.tokens)
    for (_, plural, subresource), special in table.items():
        if subresource:
            target = Target(BY_KIND["v1", "ServiceAccount"], "shop", "web-account", "token")
            body: Object = {"spec": {}}
        else:
            target = Target(BY_KIND[special.api_version, special.kind], "shop" if "local" in plural else "")
            subject = {} if plural.startswith("self") else {"user": "vera"}
            body = {"spec": {**PODS, **subject, "namespace": "shop", "token": "x"}}
        answers = asyncio.run(_called(special, CreateRequest(target, body, KATE)))
        assert answers["status"], plural
