"""ValidatingAdmissionPolicies: what is evaluated for a request, and what becomes of it: Deny, Warn, Audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from situate.core.cel.policies import ANNOTATION, CONDITION, MESSAGE, Compiled
from situate.core.cel.values import Value
from situate.server.admission.expressions import MatchCondition
from situate.server.admission.matching import MatchedAs
from situate.server.admission.policies.evaluation import (
    CostBudget,
    EvaluationFailedError,
    Evaluator,
    LoopAuthorizer,
    OutOfBudgetError,
    PolicyContext,
    RequestBudget,
    compile_policy_conditions,
    compile_variables,
)
from situate.server.admission.policies.forms import RequestForms, refusal
from situate.server.admission.policies.index import BoundPolicy, PolicyBinding, PolicyIndex
from situate.server.admission.policies.params import Param, ParamError, ParamFinder
from situate.server.apiextensions.served import CustomKinds
from situate.server.errors import Cause, StatusError
from situate.server.identity.authorization.attributes import Authorizer
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import AdmissionRequest, Operation
from situate.server.registry.warning import annotate, warn
from situate.server.resources import BY_KIND, Resource

POLICIES: Final = BY_KIND["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"]
BINDINGS: Final = BY_KIND["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"]
MAX_MESSAGE: Final = 5 << 10
"""Bytes of the result of a messageExpression."""
MAX_ANNOTATION: Final = 10 << 10
"""Characters of the value of an audit annotation."""
MAX_ANNOTATIONS: Final = 64 << 10
"""Characters of all annotations of a request. What does not fit is left out."""
FAILURE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"
CODES: Final = {
    "Forbidden": HTTPStatus.FORBIDDEN,
    "RequestEntityTooLarge": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "Invalid": HTTPStatus.UNPROCESSABLE_ENTITY,
}
INVALID: Final = "Invalid"
WARNED: Final = "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {why}"


class Validation(NamedTuple):
    expression: Compiled
    message: str
    message_expression: Compiled | None
    reason: str


class ValidatingPolicy(NamedTuple):
    variables: Mapping[str, Compiled]
    conditions: Sequence[MatchCondition]
    validations: Sequence[Validation]
    annotations: Sequence[tuple[str, Compiled]]
    """Keys and values."""


class ValidationFailure(NamedTuple):
    """A validation that is not met, or an error."""

    at: int
    message: str
    reason: str = ""


class PolicyVerdict(NamedTuple):
    failures: Sequence[ValidationFailure]
    annotations: Sequence[tuple[str, str]]
    errors: Sequence[str] = ()
    """Of annotations, if they refuse the request."""


NOTHING: Final = PolicyVerdict((), ())


def compile_policy(spec: Mapping[str, Any]) -> ValidatingPolicy:
    compiler = compile_variables(spec)
    conditions = compile_policy_conditions(compiler, spec)
    validations = []
    for one in spec.get("validations") or ():
        message = one.get("messageExpression", "")
        validations.append(
            Validation(
                compiler.compile(one.get("expression", ""), CONDITION),
                one.get("message", ""),
                compiler.compile(message, MESSAGE, has_authorizer=False) if message else None,
                one.get("reason") or INVALID,
            )
        )
    annotations = [
        (one.get("key", ""), compiler.compile(one.get("valueExpression", ""), ANNOTATION))
        for one in spec.get("auditAnnotations") or ()
    ]
    return ValidatingPolicy(compiler.variables, conditions, validations, annotations)


# -- evaluation --------------------------------------------------------------------------------------------------------


def judge(policy: ValidatingPolicy, given: Mapping[str, Value], budget: CostBudget, *, fails: bool) -> PolicyVerdict:
    """`fails`: whether errors refuse the request. Raises OutOfBudgetError."""
    context = PolicyContext(policy.variables, given, budget)
    try:
        if context.unmet(policy.conditions):
            return NOTHING
    except EvaluationFailedError as error:
        return PolicyVerdict([ValidationFailure(0, str(error))] if fails else (), ())
    failures: list[ValidationFailure] = []
    for index, validation in enumerate(policy.validations):
        try:
            if context.run(validation.expression) is not True:
                failures.append(ValidationFailure(index, _message(validation, context), validation.reason))
        except EvaluationFailedError as error:
            if fails:
                failures.append(ValidationFailure(index, str(error)))
    annotations, errors = _annotations(policy, context)
    return PolicyVerdict(failures, annotations, errors if fails else ())


def _message(validation: Validation, context: PolicyContext) -> str:
    text = ""
    if validation.message_expression is not None:
        try:
            found = context.run(validation.message_expression)
            text = found.strip() if isinstance(found, str) else ""
        except EvaluationFailedError:
            pass  # then the message takes its place
        if "\n" in text or len(text.encode("utf-8", "replace")) > MAX_MESSAGE:
            text = ""
    return text or validation.message.strip() or f"failed expression: {validation.expression.text.strip()}"


def _annotations(policy: ValidatingPolicy, context: PolicyContext) -> tuple[list[tuple[str, str]], list[str]]:
    found: list[tuple[str, str]] = []
    errors: list[str] = []
    for key, compiled in policy.annotations:
        try:
            value = context.run(compiled)
        except EvaluationFailedError as error:
            errors.append(str(error))
            continue
        if isinstance(value, str) and value.strip():
            found.append((key, value.strip()[:MAX_ANNOTATION]))
    return found, errors


# -- the plugin --------------------------------------------------------------------------------------------------------


class Denial(NamedTuple):
    """Why a policy refuses a request. `binding`: "" if it is not about one."""

    policy: str
    binding: str
    failure: ValidationFailure

    def error(self, request: AdmissionRequest) -> StatusError:
        bound = f" with binding '{self.binding}'" if self.binding else ""
        text = f"ValidatingAdmissionPolicy '{self.policy}'{bound} denied request: {self.failure.message}"
        error = refusal(request, text)
        error.reason = self.failure.reason or INVALID
        error.code = CODES.get(error.reason, HTTPStatus.UNPROCESSABLE_ENTITY)
        error.causes = (Cause("", text, ""),)
        return error


class ValidatingPolicies:
    """The admission plugin."""

    def __init__(self, cache: Cache, custom: CustomKinds, authorizer: Authorizer, evaluator: Evaluator) -> None:
        self._cache = cache
        self._authorizer = authorizer
        self._evaluator = evaluator
        self._params = ParamFinder(cache, custom)
        self._index = PolicyIndex(cache, POLICIES, BINDINGS, custom, compile_policy)

    def concerns(self, resource: Resource, subresource: str, operation: Operation) -> bool:
        return self._index.concerns(resource, subresource, operation)

    async def admit(self, request: AdmissionRequest) -> None:
        """All policies are evaluated; the first that denies refuses the request."""
        run = _Run(request, self._cache, self._authorizer, self._evaluator, self._params)
        others = self._index.equivalents.of(request.target.resource)
        for policy in self._index.bound:
            try:
                matched = policy.matcher.matched(request, self._cache, others)
            except StatusError as error:
                run.misconfigured(policy, None, error.message)
                continue
            if matched is None:
                continue
            try:
                self._params.check_kind(policy.spec.get("paramKind"))
            except ParamError as problem:
                run.misconfigured(policy, None, str(problem))
                continue
            await run.policy(policy, matched, others)
        if run.denials:
            raise run.denials[0].error(request)


class _Run:
    """One request through the policies."""

    def __init__(
        self,
        request: AdmissionRequest,
        cache: Cache,
        authorizer: Authorizer,
        evaluator: Evaluator,
        params: ParamFinder,
    ) -> None:
        self._request = request
        self._cache = cache
        self._authorizer = authorizer
        self._beside = LoopAuthorizer(authorizer)
        self._evaluator = evaluator
        self._params = params
        self._forms = RequestForms(request, cache)
        self._budget = RequestBudget()
        self._annotated: set[str] = set()
        self._room = MAX_ANNOTATIONS
        self.denials: list[Denial] = []

    def misconfigured(self, policy: BoundPolicy[ValidatingPolicy], binding: PolicyBinding | None, why: str) -> None:
        if policy.fails:
            what = "policy" if binding is None else "binding"
            failure = ValidationFailure(0, f"failed to configure {what}: {why}")
            self.denials.append(Denial(policy.name, "" if binding is None else binding.name, failure))

    async def policy(
        self, policy: BoundPolicy[ValidatingPolicy], matched: MatchedAs, others: Sequence[Resource]
    ) -> None:
        published: dict[str, dict[str, None]] = {}
        for binding in policy.bindings:
            try:
                if binding.matcher and binding.matcher.matched(self._request, self._cache, others) is None:
                    continue
                kind, reference = policy.spec.get("paramKind"), binding.spec.get("paramRef")
                params = await self._params.find(kind, reference, self._forms.param_namespace)
            except StatusError as error:
                self.misconfigured(policy, binding, error.message)
                continue
            except ParamError as problem:
                self.misconfigured(policy, binding, str(problem))
                continue
            for param in params:
                verdict = await self._judged(policy, matched, param)
                self._act(policy, binding, verdict)
                for key, value in verdict.annotations:
                    published.setdefault(key, {})[value] = None
        for key, values in published.items():
            self._annotate(f"{policy.name}/{key}", ", ".join(values))

    async def _judged(self, policy: BoundPolicy[ValidatingPolicy], matched: MatchedAs, param: Param) -> PolicyVerdict:
        compiled, fails = policy.compiled, policy.fails
        given = await self._forms.variables(matched, self._authorizer, self._beside)

        def evaluate(budget: CostBudget, beside: bool) -> PolicyVerdict:
            return judge(compiled, {**given[beside], "params": param.value}, budget, fails=fails)

        try:
            return await self._evaluator.run(evaluate, self._budget, lambda: self._beside.asked)
        except OutOfBudgetError as error:
            return PolicyVerdict([ValidationFailure(0, str(error))] if fails else (), ())

    def _act(self, policy: BoundPolicy[ValidatingPolicy], binding: PolicyBinding, verdict: PolicyVerdict) -> None:
        actions = binding.spec.get("validationActions") or ()
        for failure in verdict.failures:
            for action in actions:
                if action == "Deny":
                    self.denials.append(Denial(policy.name, binding.name, failure))
                elif action == "Warn":
                    warn([WARNED.format(policy=policy.name, binding=binding.name, why=failure.message)])
                elif action == "Audit":
                    self._annotate(FAILURE_ANNOTATION, _audited(policy, binding, failure))
        for why in verdict.errors:
            self.denials.append(Denial(policy.name, binding.name, ValidationFailure(0, why)))

    def _annotate(self, key: str, value: str) -> None:
        """The first value of a key stays."""
        self._room -= len(key) + len(value)
        if key not in self._annotated and self._room >= 0:
            self._annotated.add(key)
            annotate({key: value})


def _audited(policy: BoundPolicy[ValidatingPolicy], binding: PolicyBinding, failure: ValidationFailure) -> str:
    found = {
        "message": failure.message,
        "policy": policy.name,
        "binding": binding.name,
        "expressionIndex": failure.at,
        "validationActions": list(binding.spec.get("validationActions") or ()),
    }
    return msgspec.json.encode([found]).decode()
