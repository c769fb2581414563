"""The variables of admission's expressions, and match conditions."""

import asyncio
from contextlib import closing

import pytest

from server.registry.stories import POD, pod
from situate.server.admission.expressions import (
    OUT_OF_BUDGET,
    ConditionError,
    compile_conditions,
    request_variables,
    unmet_condition,
)
from situate.server.admission.matching import MatchedAs
from situate.server.admission.policies import evaluation
from situate.server.identity.authorization.attributes import Attributes, AuthorizerDecision
from situate.server.registry.user_admission import AdmissionRequest
from situate.server.requests import Caller, Target

BOB = Caller("bob", ("admins",), extra={"team": ("a",)})


class OnlyOnesOwn:
    """Users may do what is named after them."""

    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        allowed = attributes.name == caller.name or attributes.path == "/open"
        return AuthorizerDecision(allowed, "" if allowed else "not yours")


def unmet(*texts: str) -> str | None:
    request = AdmissionRequest(
        "CREATE", Target(POD, "default", "bob"), pod("bob"), None, BOB, {"kind": "CreateOptions"}
    )
    variables = asyncio.run(request_variables(request, MatchedAs(POD, "v1", "Pod"), OnlyOnesOwn()))
    conditions = [{"name": f"c{at}", "expression": text} for at, text in enumerate(texts)]
    return unmet_condition(compile_conditions(conditions), variables)


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.containers[0].image == 'i' && oldObject == null",
        "request.userInfo.username == 'bob' && 'admins' in request.userInfo.groups",
        "request.userInfo.extra['team'] == ['a']",
        "request.kind.kind == 'Pod' && request.resource.resource == 'pods' && request.requestKind.version == 'v1'",
        "request.operation == 'CREATE' && request.namespace == 'default' && !request.dryRun",
        "!has(request.subResource) && request.options.kind == 'CreateOptions'",
        "namespaceObject == null",
        "authorizer.requestResource.check('create').allowed()",
        "authorizer.group('').resource('pods').namespace('x').name('eve').check('get').reason() == 'not yours'",
        "!authorizer.serviceAccount('default', 'robot').group('apps').resource('deployments').check('get').allowed()",
        "authorizer.path('/open').check('get').allowed() && authorizer.path('/x').check('get').error() == ''",
    ],
)
def test_what_an_expression_sees(text: str) -> None:
    assert unmet(text) is None


def test_a_false_condition_counts_more_than_one_that_fails() -> None:
    assert unmet("object.nothing == 1", "false") == "c1"
    with pytest.raises(
        ConditionError, match=r"expression 'object.nothing == 1' resulted in error: no such key: nothing"
    ):
        unmet("object.nothing == 1", "true")


def test_a_condition_that_does_not_compile_fails() -> None:
    with pytest.raises(ConditionError, match="compilation error: must evaluate to bool but got int"):
        unmet("1")


def test_conditions_share_a_budget() -> None:
    check = "authorizer.path('/open').check('get').allowed()"
    assert unmet(check, check) is None
    with pytest.raises(ConditionError, match=OUT_OF_BUDGET):
        unmet(check, check, check)


def test_an_evaluation_does_not_wait_for_a_server_that_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread would keep the process."""
    monkeypatch.setattr(evaluation, "ANSWER_S", 0.01)

    async def make() -> evaluation.LoopAuthorizer:
        return evaluation.LoopAuthorizer(OnlyOnesOwn())

    with closing(asyncio.new_event_loop()) as loop:
        authorizer = loop.run_until_complete(make())
        with pytest.raises(TimeoutError):
            authorizer.allows(BOB, Attributes(verb="get", name="bob"))
        loop.run_until_complete(asyncio.sleep(0))
