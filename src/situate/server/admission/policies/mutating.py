"""MutatingAdmissionPolicies: each changes the object that the one before it left, by an apply or by a JSON patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from situate.core.cel.objects import ObjectValue, misnamed, to_json
from situate.core.cel.policies import CONFIGURATION, PATCH, Compiled
from situate.core.cel.values import Value
from situate.server.admission.expressions import MatchCondition
from situate.server.admission.matching import MatchedAs, in_version
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
from situate.server.kinds import STRATEGIES
from situate.server.kinds.strategy import Strategy
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import AdmissionRequest, Operation
from situate.server.requests import Object
from situate.server.resources import BY_KIND, Resource
from situate.wire.patching import MergeSchema, PatchError, UnmetTestError, json_patched, merge_schema
from situate.wire.patching.owned import merged
from situate.wire.schema import Decoded, DecodeError, decode

POLICIES: Final = BY_KIND["admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"]
BINDINGS: Final = BY_KIND["admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding"]
MEMORY: Final = "MutatingAdmissionPolicy"
INVALID: Final = "Invalid"
IF_NEEDED: Final = "IfNeeded"
ATOMIC: Final = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {paths}"
NOT_TYPED: Final = "failed to convert patch object to typed object: {why}"
INTERNAL: Final = "Internal error occurred: {why}"


class Mutation(NamedTuple):
    expression: Compiled
    applies: bool
    """By an apply, not by a JSON patch."""


class MutatingPolicy(NamedTuple):
    variables: Mapping[str, Compiled]
    conditions: Sequence[MatchCondition]
    mutations: Sequence[Mutation]


class MutationError(Exception):
    """The mutation cannot be made; the message is Kubernetes'."""


def compile_policy(spec: Mapping[str, Any]) -> MutatingPolicy:
    compiler = compile_variables(spec)
    conditions = compile_policy_conditions(compiler, spec)
    mutations = []
    for one in spec.get("mutations") or ():
        applies = one.get("patchType") == "ApplyConfiguration"
        text = ((one.get("applyConfiguration") if applies else one.get("jsonPatch")) or {}).get("expression", "")
        kinds = CONFIGURATION if applies else PATCH
        mutations.append(Mutation(compiler.compile(text, kinds, makes_objects=True), applies))
    return MutatingPolicy(compiler.variables, conditions, mutations)


# -- one mutation ------------------------------------------------------------------------------------------------------


class _Form:
    """The form of the object in which a request matches."""

    def __init__(self, matched: MatchedAs) -> None:
        self.resource = matched.resource
        self._api_version, self._kind = matched.api_version, matched.kind
        self._is_own = (matched.api_version, matched.kind) == (self.resource.api_version, self.resource.kind)

    @property
    def is_custom(self) -> bool:
        return self.resource.custom is not None and self._is_own

    @property
    def shape(self) -> MergeSchema:
        if self.resource.custom is not None and self._is_own:
            return self.resource.custom.merge.schema
        return merge_schema(self._api_version, self._kind)

    def decoded(self, obj: Object) -> Decoded:
        """Raises DecodeError."""
        body = msgspec.json.encode(obj)
        if self.resource.custom is not None and self._is_own:
            return self.resource.custom.decode(body, True)
        return decode(self._api_version, self._kind, body, strict=True)

    def default(self, obj: Object) -> None:
        if self._is_own:
            _strategy_of(self.resource).default(obj)


def _strategy_of(resource: Resource) -> Strategy:
    if resource.custom is not None:
        return resource.custom.strategy
    return STRATEGIES.get(f"{resource.group}/{resource.kind}", Strategy())


def mutate(mutation: Mutation, obj: Object, found: Value, form: _Form) -> Object:
    """The object after a mutation whose expression has this value. Raises MutationError or StatusError."""
    try:
        after = _applied(obj, found, form) if mutation.applies else _patched(obj, found, form)
    except ValueError as error:  # of a value that JSON does not have
        raise MutationError(str(error)) from None
    form.default(after)
    return after


def _applied(obj: Object, found: Value, form: _Form) -> Object:
    _check_names(found)
    patch = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **to_json(found)}
    try:
        problems = form.decoded(patch).problems
    except DecodeError as error:
        raise MutationError(f"error applying patch: {NOT_TYPED.format(why=error.why)}") from None
    if problems:
        lines = [
            f".{one.removeprefix('unknown field ').strip(chr(34))}: field not declared in schema" for one in problems
        ]
        why = lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines])
        raise MutationError(f"error applying patch: {NOT_TYPED.format(why=why)}")
    if paths := list(_atomics(patch, form.shape, "")):
        raise MutationError(f"error applying patch: {ATOMIC.format(paths=', '.join(paths))}")
    try:
        return form.decoded(merged(deepcopy(obj), patch, form.shape)).object
    except PatchError as error:
        raise MutationError(f"error applying patch: failed to merge patch: {error}") from None
    except DecodeError as error:
        raise _internal(str(error)) from None


def _atomics(value: Any, shape: MergeSchema, path: str) -> Any:
    """The paths of what has one owner as a whole: a mutation would remove all that it does not set."""
    if isinstance(value, dict):
        if shape.form == "atomic":
            yield path
        for name, inner in value.items():
            yield from _atomics(inner, shape.field(name), f"{path}.{name}")
    elif isinstance(value, list):
        if shape.form not in ("keyed", "set"):
            yield path
        for index, inner in enumerate(value):
            yield from _atomics(inner, shape.item, f"{path}[{index}]")


def _patched(obj: Object, found: Value, form: _Form) -> Object:
    operations = []
    for one in found if isinstance(found, list) else ():
        if isinstance(one, ObjectValue) and isinstance(value := one.names.get("value"), ObjectValue):
            _check_names(value)
        operations.append(to_json(one))
    try:
        after = json_patched(obj, operations)
    except UnmetTestError:  # then the patch changes nothing
        return obj
    except PatchError as error:
        raise MutationError(f"JSON Patch: {error}") from None
    try:
        decoded = form.decoded(after)
    except DecodeError as error:
        raise _internal(str(error)) from None
    if decoded.problems and not form.is_custom:
        raise _internal(f"strict decoding error: {', '.join(decoded.problems)}")
    return decoded.object


def _check_names(value: Value) -> None:
    if problems := misnamed(value):
        raise MutationError("type mismatch: " + "\n".join(problems))


def _internal(why: str) -> StatusError:
    return StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", INTERNAL.format(why=why))


# -- the plugin --------------------------------------------------------------------------------------------------------

Key = tuple[str, str, tuple[str, str]]
"""A policy, a binding and a parameter."""


class Reinvocations:
    """Which policies are asked again, if the object changes after them."""

    def __init__(self) -> None:
        self.output: Object | None = None
        self._eligible: set[Key] = set()
        self._due: set[Key] = set()

    def is_due(self, key: Key) -> bool:
        return key in self._due

    def add(self, key: Key) -> None:
        self._eligible.add(key)

    def changed(self) -> None:
        self._due |= self._eligible
        self._eligible.clear()


class PolicyFailure(NamedTuple):
    policy: str
    binding: str
    why: str
    reason: str = ""

    @property
    def text(self) -> str:
        bound = f"'{self.policy}' with binding '{self.binding}'" if self.binding else f'"{self.policy}"'
        return f"policy {bound} denied request: {self.why}"


class MutatingPolicies:
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
        run = _MutatingRun(request, self._cache, self._authorizer, self._evaluator)
        invocations = await self._invocations(request, run)
        state = run.reinvocations
        if request.is_reinvoked and state.output != request.object:
            state.changed()
        for policy, binding, matched, param in invocations:
            await run.invoke(policy, binding, matched, param)
        if run.has_mutated:  # then even the policy that did it is asked again
            state.changed()
        state.output = request.object
        failures = [one for one in run.failures if one.policy not in run.ignoring]
        if failures:
            error = refusal(request, "")
            error.message = failures[0].text
            error.reason = failures[0].reason or error.reason
            error.causes = tuple(Cause("", one.text, "") for one in failures)
            raise error

    async def _invocations(
        self, request: AdmissionRequest, run: _MutatingRun
    ) -> list[tuple[BoundPolicy[MutatingPolicy], PolicyBinding, MatchedAs, Param]]:
        """What matches the object as it was before all policies."""
        found = []
        others = self._index.equivalents.of(request.target.resource)
        for policy in self._index.bound:
            if not policy.fails:
                run.ignoring.add(policy.name)
            try:
                matched = policy.matcher.matched(request, self._cache, others)
                if matched is None:
                    continue
                self._params.check_kind(policy.spec.get("paramKind"))
            except (StatusError, ParamError) as problem:
                run.fail(policy, None, f"failed to configure policy: {_said(problem)}")
                continue
            for binding in policy.bindings:
                try:
                    if binding.matcher and binding.matcher.matched(request, self._cache, others) is None:
                        continue
                    kind, reference = policy.spec.get("paramKind"), binding.spec.get("paramRef")
                    params = await self._params.find(kind, reference, request.namespace)
                except (StatusError, ParamError) as problem:
                    run.fail(policy, binding, f"failed to configure binding: {_said(problem)}")
                    continue
                found += [(policy, binding, matched, param) for param in params]
        return found


def _said(problem: Exception) -> str:
    return problem.message if isinstance(problem, StatusError) else str(problem)


class _MutatingRun:
    """One request through the policies."""

    def __init__(self, request: AdmissionRequest, cache: Cache, authorizer: Authorizer, evaluator: Evaluator) -> None:
        self._request = request
        self._authorizer = authorizer
        self._beside = LoopAuthorizer(authorizer)
        self._evaluator = evaluator
        self._forms = RequestForms(request, cache)
        self._budget = RequestBudget()
        self.reinvocations: Reinvocations = request.memory.setdefault(MEMORY, Reinvocations())
        self.has_mutated = False
        self.failures: list[PolicyFailure] = []
        self.ignoring: set[str] = set()
        """The policies whose errors do not count."""

    def fail(
        self, policy: BoundPolicy[MutatingPolicy], binding: PolicyBinding | None, why: str, reason: str = ""
    ) -> None:
        self.failures.append(PolicyFailure(policy.name, "" if binding is None else binding.name, why, reason))

    async def invoke(
        self, policy: BoundPolicy[MutatingPolicy], binding: PolicyBinding, matched: MatchedAs, param: Param
    ) -> None:
        compiled, request = policy.compiled, self._request
        if compiled.conditions:
            try:
                unmet = await self._run(compiled, matched, param, lambda context: context.unmet(compiled.conditions))
            except (EvaluationFailedError, OutOfBudgetError) as error:
                self.fail(policy, binding, str(error), INVALID)
                return
            if unmet:
                return
        key = (policy.name, binding.name, param.key)
        if request.is_reinvoked and not self.reinvocations.is_due(key):
            return
        before = request.object
        for mutation in compiled.mutations:
            if request.object is None:
                continue
            try:
                await self._mutate(compiled, mutation, matched, param)
            except (EvaluationFailedError, OutOfBudgetError, MutationError) as error:
                self.fail(policy, binding, str(error), INVALID)
        if request.object != before:
            self.reinvocations.changed()
        if policy.spec.get("reinvocationPolicy") == IF_NEEDED:
            self.reinvocations.add(key)

    async def _mutate(self, policy: MutatingPolicy, mutation: Mutation, matched: MatchedAs, param: Param) -> None:
        request, resource = self._request, self._request.target.resource
        if mutation.expression.expression is None:
            raise MutationError(mutation.expression.error)
        found = await self._run(policy, matched, param, lambda context: context.run(mutation.expression))
        versioned = await in_version(request.object, resource, matched.resource)
        if versioned is None:
            return
        after = mutate(mutation, versioned, found, _Form(matched))
        request.object = await in_version(after, matched.resource, resource)
        self._forms.forget()
        self.has_mutated = True

    async def _run(self, policy: MutatingPolicy, matched: MatchedAs, param: Param, ask: Any) -> Any:
        given = await self._forms.variables(matched, self._authorizer, self._beside)

        def evaluate(budget: CostBudget, beside: bool) -> Any:
            return ask(PolicyContext(policy.variables, {**given[beside], "params": param.value}, budget))

        return await self._evaluator.run(evaluate, self._budget, lambda: self._beside.asked)
