"""An expression's text to something that can be evaluated, and the evaluation."""

from collections.abc import Callable
from dataclasses import dataclass

from situate.core.cel.checker import check
from situate.core.cel.environment import Environment
from situate.core.cel.errors import CompileError, ErrorValue, EvaluationError, GoPanicError
from situate.core.cel.meter import TOO_EXPENSIVE, CostExceededError, Evaluation
from situate.core.cel.parser import parse
from situate.core.cel.planner import Program, plan
from situate.core.cel.source import Issues, SourceText
from situate.core.cel.types import CelType
from situate.core.cel.validation import validate
from situate.core.cel.values import Value

COMPILATION_FAILED = "compilation failed: "
TOO_DEEP = "expression is nested too deeply"


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression: what it is, and the program that computes it."""

    type: CelType
    program: Program

    def evaluate(self, variables: dict[str, Value], limit: int) -> tuple[Value, int]:
        """The value and its cost; raises EvaluationError."""
        value, cost = self.outcome(variables, limit)
        if isinstance(value, ErrorValue):
            raise EvaluationError(value.message, cost)
        return value, cost

    def outcome(self, variables: dict[str, Value], limit: int) -> tuple[Value, int]:
        """The value, which may be a ErrorValue, and its cost."""
        frame = Evaluation(variables, self.program.slots, limit)
        try:
            value = self.program.run(frame)
        except CostExceededError:
            return ErrorValue(TOO_EXPENSIVE), frame.cost
        except GoPanicError as panic:
            return ErrorValue(f"internal error: {panic}"), frame.cost
        except RecursionError:
            return ErrorValue(TOO_DEEP), frame.cost
        return (ErrorValue(TOO_EXPENSIVE) if frame.cost > limit else value), frame.cost


def compile_expression(text: str, environment: Environment, refuse: Callable[[CelType], str | None]) -> Expression:
    """Raises CompileError. `refuse` says what is wrong with the expression's type, if anything is."""
    source = SourceText(text)
    issues = Issues(source)
    try:
        parsed = parse(source, environment.macros, issues)
        checked = None if parsed is None else check(parsed, environment, source, issues)
        if checked is None or not validate(checked, environment, source, issues):
            raise CompileError(f"{COMPILATION_FAILED}{issues}")
        result = checked.types[checked.root.id]
        if (refusal := refuse(result)) is not None:
            raise CompileError(refusal)
        return Expression(result, plan(checked, environment))
    except RecursionError:
        raise CompileError(f"{COMPILATION_FAILED}{TOO_DEEP}") from None
