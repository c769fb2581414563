"""x-kubernetes-validations: rules in CEL that an object must keep, with kube-apiserver's texts and budgets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import msgspec

from situate.core.cel.compiler import Expression, compile_expression
from situate.core.cel.environment import Environment, make_environment
from situate.core.cel.errors import CompileError, ErrorValue
from situate.core.cel.libraries.kubernetes import LIBRARIES
from situate.core.cel.types import BOOL, STRING, CelType, optional_of, struct
from situate.core.cel.values import NONE, OptionalValue, Value
from situate.core.model.field_errors import extended
from situate.wire.structural.checks import MAX_ERRORS
from situate.wire.structural.rule_types import Fields, declared_type, to_value
from situate.wire.structural.schema import Structural

CALL_LIMIT: Final = 1_000_000
"""What one evaluation of a rule may cost."""
BUDGET: Final = 1_000_000
"""What all rules of one object may cost together. Kubernetes allows ten times as much, which here takes seconds."""
MAX_MESSAGE: Final = 5 * 1024
"""Bytes of the result of a messageExpression."""
TOO_EXPENSIVE: Final = "operation cancelled: actual cost limit exceeded"
OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
NOT_BOOL: Final = "cel expression must evaluate to a bool"
_OLD_SELF: Final = re.compile(r"\boldSelf\b")


class RuleError(msgspec.Struct, frozen=True):
    """A rule that an object breaks. `reason` is that of the rule, or "" for an invalid value."""

    path: str
    value: Any
    text: str
    reason: str = ""
    shows_value: bool = True
    """Of objects and lists, the value is not shown."""


@dataclass(frozen=True, slots=True)
class CompiledRule:
    source: Mapping[str, Any]
    expression: Expression | None
    message: Expression | None
    uses_old_self: bool
    error: str = ""
    """Why there is no expression."""
    message_error: str = ""

    @property
    def shown(self) -> str:
        text: str = self.source.get("message") or self.source["rule"]
        return text.strip()


@cache
def _base() -> Environment:
    return make_environment(LIBRARIES, {}, {})


def compile_rules(schema: Structural, *, is_resource: bool) -> list[CompiledRule]:
    """The rules of one level of a schema."""
    rules = schema.source.get("x-kubernetes-validations") or ()
    if not rules:
        return []
    fields: Fields = {}
    kind = declared_type(schema, "selfType", fields, is_resource=is_resource)
    return [_compiled(one, kind, fields) for one in rules]


def _compiled(rule: Mapping[str, Any], kind: CelType | None, fields: Fields) -> CompiledRule:
    text, uses_old = rule.get("rule", ""), bool(_OLD_SELF.search(rule.get("rule", "")))
    if kind is None:
        return CompiledRule(rule, None, None, uses_old, "failed to convert to declType for CEL validation rules")
    old = optional_of(kind) if rule.get("optionalOldSelf") else kind
    base = _base()
    here = replace(
        base,
        variables={"self": kind, "oldSelf": old},
        types={**base.types, **{name: struct(name) for name in fields}},
        fields={**base.fields, **fields},
    )
    try:
        expression = compile_expression(text, here, lambda found: None if found == BOOL else NOT_BOOL)
    except CompileError as error:
        return CompiledRule(rule, None, None, uses_old, str(error))
    message, problem = None, ""
    if rule.get("messageExpression"):
        wrong = "messageExpression must evaluate to a string"
        try:
            message = compile_expression(
                rule["messageExpression"], here, lambda found: None if found == STRING else wrong
            )
        except CompileError as error:
            problem = str(error) if str(error) == wrong else f"messageExpression {error}"
    return CompiledRule(rule, expression, message, uses_old, "", problem)


class RuleChecks:
    """The rules of a schema and of all schemas inside of it."""

    __slots__ = ("_additional", "_is_resource", "_items", "_properties", "_rules", "_schema")

    def __init__(self, schema: Structural, *, is_resource: bool) -> None:
        self._schema = schema
        self._is_resource = is_resource
        self._rules = compile_rules(schema, is_resource=is_resource)
        self._items = None if schema.items is None else rule_checks(schema.items, is_resource=schema.items.embedded)
        self._additional = None if schema.additional is None else rule_checks(schema.additional)
        checks = {name: rule_checks(one, is_resource=one.embedded) for name, one in schema.properties.items()}
        self._properties = {name: one for name, one in checks.items() if one is not None}

    def errors(self, new: Any, old: Any = None) -> Sequence[RuleError]:
        """`old`: the object before an update."""
        run = _Run()
        self._check(new, old, "", run)
        return run.errors

    def _check(self, value: Any, old: Any, path: str, run: _Run) -> None:
        if value is None or run.is_over:
            return
        if self._rules:
            self._check_rules(value, old, path, run)
        if isinstance(value, list) and self._items is not None:
            older = self._old_items(old)
            for index, item in enumerate(value):
                was = older.get(self._key(item)) if older else None
                self._items._check(item, was, f"{path}[{index}]", run)
        elif isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            if self._additional is not None:
                for name, inner in value.items():
                    self._additional._check(inner, before.get(name), extended(path, f"[{name}]"), run)
            for name, checks in self._properties.items():
                if name in value:
                    checks._check(value[name], before.get(name), f"{path}.{name}" if path else name, run)

    def _old_items(self, old: Any) -> dict[bytes, Any]:
        """Items can be compared with older ones in lists with keys only."""
        if self._schema.list_type != "map" or not isinstance(old, list):
            return {}
        return {self._key(item): item for item in old}

    def _key(self, item: Any) -> bytes:
        found = {name: item.get(name) for name in self._schema.map_keys} if isinstance(item, dict) else item
        return msgspec.json.encode(found, order="sorted")

    def _check_rules(self, value: Any, old: Any, path: str, run: _Run) -> None:
        own = to_value(value, self._schema, is_resource=self._is_resource)
        was: Value = None if old is None else to_value(old, self._schema, is_resource=self._is_resource)
        for rule in self._rules:
            if run.is_over:
                return
            optional = bool(rule.source.get("optionalOldSelf"))
            if rule.uses_old_self and old is None and not optional:
                continue
            before: Value = was
            if optional:
                before = NONE if old is None else OptionalValue(was)
            kept = not rule.uses_old_self and old is not None and value == old
            run.evaluate(rule, {"self": own, "oldSelf": before}, value, self._schema.type, path, keeps=kept)


def rule_checks(schema: Structural, *, is_resource: bool = False) -> RuleChecks | None:
    """The rules of a schema; None if it has none."""
    made = RuleChecks(schema, is_resource=is_resource)
    empty = not made._rules and made._items is None and made._additional is None and not made._properties
    return None if empty else made


class _Run:
    """The evaluation of all rules for one object."""

    def __init__(self) -> None:
        self.errors: list[RuleError] = []
        self._budget = BUDGET
        self.is_over = False

    def evaluate(
        self, rule: CompiledRule, variables: dict[str, Value], value: Any, kind: str, path: str, *, keeps: bool
    ) -> None:
        """`keeps`: the value has not changed, so that it may break the rule as before."""
        if rule.expression is None:
            self._add(path, kind, f"rule compile error: {rule.error}")
            return
        result, cost = rule.expression.outcome(variables, min(CALL_LIMIT, self._budget))
        self._budget -= cost
        if isinstance(result, ErrorValue):
            self._failed(rule, result.message, kind, path)
            return
        if result is True or keeps:
            return
        text = self._message(rule, variables)
        field = rule.source.get("fieldPath", "").removeprefix(".")
        there = path if not field else f"{path}.{field}" if path else field
        shows = kind not in ("object", "array")
        self._append(RuleError(there, value, text, rule.source.get("reason") or "", shows))

    def _failed(self, rule: CompiledRule, why: str, kind: str, path: str) -> None:
        if why.startswith("no such overload"):
            what = "call arguments did not match a supported operator, function or macro signature for rule"
            self._add(path, kind, f"'{why}': {what}: {rule.shown}")
        elif not why.startswith(TOO_EXPENSIVE):
            self._add(path, kind, f"{why} evaluating rule: {rule.shown}")
        elif self._budget <= 0:
            self._end(path, kind, OUT_OF_BUDGET)
        else:
            what = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._end(path, kind, f"'{why}': {what}: {rule.shown}")

    def _add(self, path: str, kind: str, text: str) -> None:
        self._append(RuleError(path, kind, text))

    def _append(self, error: RuleError) -> None:
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(error)

    def _end(self, path: str, kind: str, text: str) -> None:
        self._add(path, kind, text)
        self.is_over = True

    def _message(self, rule: CompiledRule, variables: dict[str, Value]) -> str:
        default = rule.source.get("message", "").strip() or f"failed rule: {rule.shown}"
        if rule.message is None:
            return default
        found, cost = rule.message.outcome(variables, min(CALL_LIMIT, max(self._budget, 1)))
        self._budget -= cost
        text = found.strip() if isinstance(found, str) else ""
        return text if text and "\n" not in text and len(text.encode()) <= MAX_MESSAGE else default
