"""What goes wrong with an expression: before it runs, and while it runs."""

from typing import TypeVar

T = TypeVar("T")


class CompileError(ValueError):
    """The expression does not compile; the text is the API server's."""


class EvaluationError(ValueError):
    """The evaluation failed, or cost more than allowed; the text is cel-go's. `cost` is what it cost until then."""

    def __init__(self, message: str, cost: int = 0) -> None:
        super().__init__(message)
        self.cost = cost


class ErrorValue:
    """A failed evaluation as a value: `error || true` is true, so an error travels through operators like a value."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return f"ErrorValue({self.message!r})"


class GoPanicError(Exception):
    """cel-go would panic here, and report the panic as the evaluation's error."""


NO_SUCH_OVERLOAD = "no such overload"


def no_such_overload() -> ErrorValue:
    return ErrorValue(NO_SUCH_OVERLOAD)


def needed(value: T | None) -> T:
    """The value, which an invariant says is there."""
    if value is None:
        raise TypeError("a part that the checker guarantees is missing")
    return value
