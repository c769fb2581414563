"""Evaluates the expressions of a policy for one request, within a budget. It does not know what becomes of the results.

Policies are evaluated in the server's own process. So an evaluation first gets a small budget, which takes
milliseconds; if it needs more, it runs again beside the event loop, one at a time, and delays its own request only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from situate.core.cel.compiler import Expression
from situate.core.cel.errors import ErrorValue
from situate.core.cel.libraries.authorization import CHECK_COST
from situate.core.cel.meter import TOO_EXPENSIVE
from situate.core.cel.policies import CALL_LIMIT, CONDITION, VARIABLES, Compiled, PolicyCompiler, VariableValues
from situate.core.cel.values import Value
from situate.server.admission.expressions import FAILED, OUT_OF_BUDGET, UNCOMPILED, MatchCondition
from situate.server.identity.authorization.attributes import Attributes, Authorizer, AuthorizerDecision
from situate.server.requests import Caller

BUDGET: Final = 10_000_000
"""What the expressions of a policy may cost for one binding and one parameter, as in Kubernetes."""
WORK_BUDGET: Final = 500_000
"""What they may cost without the authorizer's checks, which are cheaper here than their cost says. Kubernetes has no
such limit; here, it takes seconds."""
QUICK_BUDGET: Final = 5_000
"""What is evaluated at once."""
REQUEST_BUDGET: Final = 2_000_000
"""What all policies together may cost for one request, without the authorizer's checks."""

ANSWER_S: Final = 30.0
"""How long an evaluation beside the event loop waits for the authorizer: a server that stops does not answer."""

AUTHORIZER: Final = "authorizer"

T = TypeVar("T")


class OutOfBudgetError(Exception):
    """The policy costs more than is left for it."""


class EvaluationFailedError(Exception):
    """An expression has no value; the message is Kubernetes'."""


class CostBudget:
    """What is left for the expressions of a policy."""

    def __init__(self, whole: int, work: int = WORK_BUDGET, asked: Callable[[], int] = lambda: 0) -> None:
        """`asked`: how many checks of the authorizer were made so far."""
        self.whole = whole
        self.left = whole
        self._work = work
        self._asked = asked
        self._before = asked()

    @property
    def work(self) -> int:
        """What was done, without the authorizer's checks."""
        return max(self.whole - self.left - CHECK_COST * (self._asked() - self._before), 0)

    def limit(self, *, checks: bool) -> int:
        """What one evaluation may cost. `checks`: it may ask the authorizer."""
        left = self.left if checks else min(self.left, self._work - self.work)
        return max(min(CALL_LIMIT, left), 0)

    def spend(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0 or self.work > self._work:
            raise OutOfBudgetError(OUT_OF_BUDGET)


class PolicyContext:
    """The variables of a policy's expressions for one request and one parameter, and the budget to evaluate them."""

    def __init__(self, variables: Mapping[str, Compiled], given: Mapping[str, Value], budget: CostBudget) -> None:
        self.values: dict[str, Value] = dict(given)
        checks = any(AUTHORIZER in one.text for one in variables.values())
        self._composed = VariableValues(variables, self.values, budget.limit(checks=checks))
        self.values[VARIABLES] = self._composed
        self._budget = budget

    def run(self, compiled: Compiled) -> Value:
        """Raises EvaluationFailedError or OutOfBudgetError."""
        if compiled.expression is None:
            raise EvaluationFailedError(UNCOMPILED.format(why=compiled.error))
        return self._run(compiled.text, compiled.expression)

    def _run(self, text: str, expression: Expression) -> Value:
        before, limit = self._composed.cost, self._budget.limit(checks=AUTHORIZER in text)
        value, cost = expression.outcome(self.values, limit)
        self._budget.spend(self._composed.cost - before)
        if isinstance(value, ErrorValue) and value.message.startswith(TOO_EXPENSIVE) and limit < CALL_LIMIT:
            raise OutOfBudgetError(OUT_OF_BUDGET)
        self._budget.spend(cost)
        if isinstance(value, ErrorValue):
            raise EvaluationFailedError(FAILED.format(text=text, why=value.message))
        return value

    def unmet(self, conditions: Sequence[MatchCondition]) -> bool:
        """Whether a condition is false. A false one counts more than errors: raises only if none is false."""
        errors: list[str] = []
        for one in conditions:
            try:
                compiled = Compiled(one.text, one.expression, one.error)
                if self.run(compiled) is False:
                    return True
            except EvaluationFailedError as error:
                errors.append(str(error))
        if errors:
            raise EvaluationFailedError(errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]")
        return False


def compile_policy_conditions(compiler: PolicyCompiler, spec: Mapping[str, Any]) -> list[MatchCondition]:
    """Unlike those of webhooks, the conditions of a stored policy may use its variables."""
    found = []
    for one in spec.get("matchConditions") or ():
        compiled = compiler.compile(one.get("expression", ""), CONDITION)
        found.append(MatchCondition(one.get("name", ""), compiled.text, compiled.expression, compiled.error))
    return found


def compile_variables(spec: Mapping[str, Any]) -> PolicyCompiler:
    compiler = PolicyCompiler(has_params=spec.get("paramKind") is not None)
    for one in spec.get("variables") or ():
        compiler.add_variable(one.get("name", ""), one.get("expression", ""))
    return compiler


# -- beside the event loop ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RequestBudget:
    """What is left of a request's budget."""

    left: int = REQUEST_BUDGET


class Evaluator:
    """Evaluates policies: cheap ones at once, expensive ones beside the event loop, one after the other."""

    def __init__(self) -> None:
        self._beside = ThreadPoolExecutor(1, "policies")

    async def run(self, evaluate: Callable[[CostBudget, bool], T], whole: RequestBudget, asked: Callable[[], int]) -> T:
        """`evaluate`, which must not change anything, gets a budget, and whether it runs beside the event loop.
        `asked`: how many checks of the authorizer were made from there. Raises OutOfBudgetError."""
        if whole.left <= 0:
            raise OutOfBudgetError(OUT_OF_BUDGET)
        quick = CostBudget(QUICK_BUDGET)
        try:
            return evaluate(quick, False)
        except OutOfBudgetError:
            pass
        finally:
            whole.left -= quick.work
        budget = CostBudget(BUDGET, min(WORK_BUDGET, max(whole.left, 0)), asked)
        try:
            return await self.beside(lambda: evaluate(budget, True))
        finally:
            whole.left -= budget.work

    async def beside(self, evaluate: Callable[[], T]) -> T:
        """Evaluate something expensive, which must not change anything, beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._beside, evaluate)


class LoopAuthorizer:
    """Asks an authorizer on the event loop, where its data may be read, from beside it."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self.asked = 0
        self._loop = asyncio.get_running_loop()

    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        async def ask() -> AuthorizerDecision:
            return self._authorizer.allows(caller, attributes)

        self.asked += 1
        return asyncio.run_coroutine_threadsafe(ask(), self._loop).result(ANSWER_S)
