"""Validating admission policies: what they do to requests, and what expensive ones cost others."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import pytest

from server.registry.stories import ANN, World, config_map, namespace, no, tell
from situate.server.admission.expressions import OUT_OF_BUDGET
from situate.server.admission.policies import evaluation
from situate.server.admission.policies.validating import BINDINGS
from situate.server.admission.users import user_admission
from situate.server.admission.webhooks.client import WebhookClient
from situate.server.admission.webhooks.metrics import WebhookMetrics
from situate.server.apiextensions.served import CustomKinds
from situate.server.identity.authorization.attributes import YES, Attributes, AuthorizerDecision
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import UserAdmission
from situate.server.registry.warning import collect_annotations, collecting
from situate.server.requests import Caller, Object, Target

API = "admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
EXPENSIVE = "object.data.a.split(',').all(x, object.data.a.split(',').all(y, x != y + '.'))"


class Allows:
    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        return YES


def users(cache: Cache) -> UserAdmission:
    return user_admission(cache, CustomKinds(cache), Allows(), WebhookClient(cache), WebhookMetrics(), str)


def policy(*expressions: str, name: str = "p", **spec: Any) -> Object:
    whole = {
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": one} for one in expressions],
        **spec,
    }
    return {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole}


def binding(*actions: str, name: str = "p", **spec: Any) -> Object:
    whole = {"policyName": name, "validationActions": list(actions or ("Deny",)), **spec}
    return {"apiVersion": API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": whole}


def given(*objects: Object) -> Callable[[Callable[[World], Awaitable[None]]], None]:
    def run(story: Callable[[World], Awaitable[None]]) -> None:
        async def told(here: World) -> None:
            for one in (namespace("default"), *objects):
                await here.create(one)
            await story(here)

        tell(told, users=users)

    return run


def test_a_policy_is_in_effect_while_it_is_bound() -> None:
    async def story(here: World) -> None:
        await here.create(policy("object.metadata.name != 'bad'"))
        await here.create(config_map("bad"), dry_run=True)
        await here.create(binding())
        code, reason, message = await no(here.create(config_map("bad")))
        assert (code, reason) == (422, "Invalid")
        assert message.endswith("denied request: failed expression: object.metadata.name != 'bad'")
        await here.registry.delete(Target(BINDINGS, "", "p"), ANN)
        await here.create(config_map("bad"))

    given()(story)


def test_warn_and_audit_let_the_request_pass() -> None:
    async def story(here: World) -> None:
        annotations: dict[str, str] = {}
        collect_annotations(annotations)
        with collecting() as warnings:
            await here.create(config_map("any"))
        assert warnings == [
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': failed expression: 1 > 2"
        ]
        assert '"expressionIndex":0' in annotations["validation.policy.admission.k8s.io/validation_failure"]
        assert annotations["p/who"] == "ann"

    audited = policy("1 > 2", auditAnnotations=[{"key": "who", "valueExpression": "request.userInfo.username"}])
    given(audited, binding("Warn", "Audit"))(story)


def test_an_expensive_expression_is_refused_and_delays_its_own_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "WORK_BUDGET", 30_000)

    async def story(here: World) -> None:
        worst, began = 0.0, monotonic()

        async def tick() -> None:
            nonlocal worst
            while True:
                before = monotonic()
                await asyncio.sleep(0.001)
                worst = max(worst, monotonic() - before)

        ticking = asyncio.create_task(tick())
        costly = config_map("costly") | {"data": {"a": ",".join(map(str, range(2_000)))}}
        code, _, message = await no(here.create(costly))
        ticking.cancel()
        assert (code, OUT_OF_BUDGET in message) == (422, True)
        assert worst < (monotonic() - began) / 2
        await here.create(config_map("cheap") | {"data": {"a": "1,2"}})

    given(policy(EXPENSIVE), binding())(story)


def test_what_costs_more_than_a_little_is_evaluated_all_the_same() -> None:
    async def story(here: World) -> None:
        await here.create(config_map("middling") | {"data": {"a": ",".join(map(str, range(40)))}})

    given(policy(EXPENSIVE), binding())(story)


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
def test_the_authorizers_checks_count_as_in_kubernetes(failure: str) -> None:
    """They cost 350,000 each, of ten million."""

    async def story(here: World) -> None:
        check = "authorizer.requestResource.check('get').allowed()"
        await here.create(policy(*[check] * 28, name="few", failurePolicy=failure))
        await here.create(binding(name="few"))
        await here.create(config_map("few"))
        await here.create(policy(*[check] * 29, name="many", failurePolicy=failure))
        await here.create(binding(name="many"))
        if failure == "Ignore":
            await here.create(config_map("many"))
        else:
            assert OUT_OF_BUDGET in (await no(here.create(config_map("many"))))[2]

    given()(story)


def test_a_policy_with_too_much_text_is_refused() -> None:
    async def story(here: World) -> None:
        texts = [f"object.metadata.name != '{'x' * 1_000}{at}'" for at in range(70)]
        assert "characters in all expressions together" in (await no(here.create(policy(*texts))))[2]

    given()(story)


def test_policies_are_not_asked_about_policies() -> None:
    async def story(here: World) -> None:
        await here.create(policy("true", name="other"))

    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    given(policy("false", matchConstraints={"resourceRules": [everything]}), binding())(story)
