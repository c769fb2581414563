"""Selectors: which devices an expression selects. Answers are remembered by expression and device content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from situate.core.devices.budget import UNLIMITED, SearchBudget, TimedOutError
from situate.core.devices.inventory import PoolDevice
from situate.core.model.devices import Device


class CompiledSelector(Protocol):
    def matches(self, device: Device, driver: str, budget: SearchBudget = UNLIMITED) -> bool:
        """Raises SelectorFailedError, or TimedOutError if the budget does not allow to find out."""


class SelectorFailedError(Exception):
    """An expression cannot be compiled, or fails on a device. The text begins with `CEL compile error: ` or
    `CEL runtime error: `."""

    def __init__(self, text: str, *, at_runtime: bool) -> None:
        super().__init__(text)
        self.at_runtime = at_runtime


Compile = Callable[[str], CompiledSelector]
"""Compiles an expression. Raises SelectorFailedError."""

REMEMBERED: Final = 1 << 20
"""How many answers are remembered."""
REMEMBERED_TEXT: Final = 1 << 20
"""How many characters the expressions may have together whose answers are remembered."""


class SelectorAnswers:
    """The answers so far. Device contents are the numbers of one inventory."""

    def __init__(self, compile_selector: Compile) -> None:
        self._compile = compile_selector
        self._answers: dict[str, dict[int, bool | SelectorFailedError | TimedOutError]] = {}
        self._compiled: dict[str, CompiledSelector | SelectorFailedError] = {}
        self._count = 0
        self._text = 0
        self.asked = 0
        """How many answers had to be found out."""

    def matches(self, expression: str, one: PoolDevice, budget: SearchBudget = UNLIMITED) -> bool:
        """Raises SelectorFailedError, or TimedOutError if the budget does not allow to find out."""
        answers = self._answers.get(expression)
        if answers is None:
            self._text += len(expression)
            if self._text > REMEMBERED_TEXT:
                self.forget()
                self._text = len(expression)
            answers = self._answers[expression] = {}
        answer = answers.get(one.content)
        if answer is None:
            fresh = budget.is_fresh
            self.asked += 1
            try:
                answer = self._ask(expression, one, budget)
            except TimedOutError as timed_out:
                if not fresh:
                    raise
                answer = timed_out.with_traceback(None)
            self._count += 1
            if self._count > REMEMBERED:
                self.forget()
            else:
                answers[one.content] = answer
        if isinstance(answer, (SelectorFailedError, TimedOutError)):
            raise answer
        return answer

    def forget(self) -> None:
        self._answers.clear()
        self._compiled.clear()
        self._count = 0
        self._text = 0

    def _ask(self, expression: str, one: PoolDevice, budget: SearchBudget) -> bool | SelectorFailedError:
        try:
            compiled = self._compiled.get(expression)
            if compiled is None:
                compiled = self._compile_once(expression)
            if isinstance(compiled, SelectorFailedError):
                return compiled
            return compiled.matches(one.device, one.slice.spec.driver, budget)
        except SelectorFailedError as failure:
            return failure.with_traceback(None)

    def _compile_once(self, expression: str) -> CompiledSelector | SelectorFailedError:
        found: CompiledSelector | SelectorFailedError
        try:
            found = self._compile(expression)
        except SelectorFailedError as failure:
            found = failure.with_traceback(None)
        self._compiled[expression] = found
        return found
