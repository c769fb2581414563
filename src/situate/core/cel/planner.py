"""A checked tree to a function of a Evaluation, with cel-go's order of evaluation and its constant folding."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from situate.core.cel import loops, steps
from situate.core.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    children,
    map_key_node,
)
from situate.core.cel.attributes import Attribute, Qualifier, WatchedQualifier, invalid_key, is_key
from situate.core.cel.calls import bind
from situate.core.cel.checker import Checked
from situate.core.cel.environment import UNDEFINED_TYPES, WRAPPERS, Environment
from situate.core.cel.errors import CompileError, ErrorValue, needed
from situate.core.cel.meter import Evaluation, Run
from situate.core.cel.regex import RegexError, compile_regex
from situate.core.cel.values import TypeValue, Value

_REGEX_FUNCTIONS = ("matches", "find", "findAll")
PLAN_FAILED = "program instantiation failed: "

_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)  # fmt: skip


@dataclass(slots=True)
class Planned:
    """A planned node: a constant, a path that may still grow, or a function."""

    id: int
    run: Run | None = None
    is_constant: bool = False
    value: Value = None
    attribute: Attribute | None = None
    test_only: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    run: Run
    slots: int


def plan(checked: Checked, environment: Environment) -> Program:
    watched = _has_loop(checked.root)
    planner = _Planner(checked, environment, watched)
    run = planner.runner(planner.plan(checked.root))
    return Program(run, planner.slots)


def _has_loop(root: Node) -> bool:
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Comprehension) and not (isinstance(node.range, ListLiteral) and not node.range.elements):
            return True
        pending.extend(children(node))
    return False


@dataclass(slots=True)
class _Planner:
    checked: Checked
    environment: Environment
    watched: bool
    slots: int = 0
    scopes: list[dict[str, Run]] = field(default_factory=list)

    def plan(self, node: Node) -> Planned:
        if isinstance(node, (Ident, Select)) and node.id in self.checked.names:
            return self._name(node.id)
        match node:
            case Literal():
                return self._constant(node.id, node.value)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._fold(node)
            case MessageLiteral():
                return self._message(node)
        raise CompileError(f"{PLAN_FAILED}unsupported expr")

    def runner(self, step: Planned) -> Run:
        """The step as a function that also counts its cost."""
        if step.is_constant:
            return steps.constant(step.id, step.value, self.watched)
        if step.attribute is not None:
            attribute = step.attribute
            return steps.path(attribute, step.id, step.test_only, attribute.resolver(), self.watched)
        return needed(step.run)

    def _constant(self, number: int, value: Any) -> Planned:
        return Planned(number, is_constant=True, value=value)

    # Names and paths.

    def _name(self, number: int) -> Planned:
        name = self.checked.names[number]
        if self.checked.types[number].kind == "type" and name in self.environment.types and self._local(name) is None:
            if name in UNDEFINED_TYPES:
                raise CompileError(f"{PLAN_FAILED}reference to undefined type: {name}")
            return self._constant(number, TypeValue(self.environment.types[name].name))
        base = self._local(name) or steps.variable(name)
        return Planned(number, attribute=Attribute(number, base))

    def _local(self, name: str) -> Run | None:
        for scope in reversed(self.scopes):
            if (found := scope.get(name)) is not None:
                return found
        return None

    def _as_path(self, step: Planned) -> Attribute:
        """The step as a path that may grow; what is no path becomes the start of one."""
        if step.attribute is not None and not step.test_only:
            return step.attribute
        return Attribute(step.id, self.runner(step))

    def _select(self, node: Select) -> Planned:
        attribute = self._as_path(self.plan(node.operand))
        attribute.add(self._qualifier(node.id, key=node.field, test_only=node.test_only))
        return Planned(node.id, attribute=attribute, test_only=node.test_only)

    def _qualifier(self, number: int, **details: Any) -> Qualifier:
        return (WatchedQualifier if self.watched else Qualifier)(number, **details)

    def _index(self, node: Call, optional: bool) -> Planned:
        target, index = self.plan(node.args[0]), self.plan(node.args[1])
        attribute = self._as_path(target)
        if index.is_constant:
            if not is_key(index.value):
                raise CompileError(PLAN_FAILED + invalid_key(index.value))
            qualifier = self._qualifier(node.id, key=index.value, optional=optional)
        elif index.attribute is not None:
            qualifier = self._qualifier(node.id, computed=index.attribute, optional=optional)
        else:
            operand = Attribute(node.id, self.runner(index))
            qualifier = self._qualifier(node.id, computed=operand, optional=optional, is_operand=True)
        attribute.add(qualifier)
        return Planned(node.id, attribute=attribute)

    # Calls.

    def _call(self, node: Call) -> Planned:
        match node.function:
            case "_[_]":
                return self._index(node, optional=False)
            case "_[?_]" | "_?._":
                return self._index(node, optional=True)
        operands = [*([node.target] if node.target is not None else []), *node.args]
        args = [self.plan(operand) for operand in operands]
        if node.function == "_?_:_":
            return self._conditional(node, args)
        runs = [self.runner(arg) for arg in args]
        numbers = [_number(arg) for arg in args]
        match node.function:
            case "_&&_":
                return Planned(node.id, steps.logical(node.id, False, runs, numbers, self.watched))
            case "_||_":
                return Planned(node.id, steps.logical(node.id, True, runs, numbers, self.watched))
            case "_==_" | "_!=_":
                return Planned(node.id, steps.equality(node.id, node.function == "_==_", runs, numbers, self.watched))
            case "@not_strictly_false":
                return Planned(node.id, steps.not_strictly_false(node.id, runs, numbers, self.watched))
        return self._function_call(node, args, runs, numbers)

    def _function_call(self, node: Call, args: list[Planned], runs: list[Run], numbers: list[int]) -> Planned:
        function = self.environment.functions[node.function]
        overload_ids = self.checked.overloads.get(node.id, ())
        single = overload_ids[0] if len(overload_ids) == 1 else ""
        if function.name in ("or", "orValue") and len(args) == 2 and single.startswith("optional_or"):
            return Planned(node.id, steps.optional_or(node.id, function.name == "orValue", runs, self.watched))
        binding = bind(function, overload_ids, len(args), node.id)
        if function.name in _CONVERSIONS and len(args) == 1 and args[0].is_constant:
            value = binding.code(args[0].value)
            if isinstance(value, ErrorValue):
                raise CompileError(PLAN_FAILED + value.message)
            return self._constant(node.id, value)
        if single == "in_list" and args[1].is_constant:
            found = self._membership(node, runs[0], args[1].value)
            if found is not None:
                return found
        code, at_once = binding.code, binding.at_once
        if function.name in _REGEX_FUNCTIONS and args[1].is_constant and isinstance(args[1].value, str):
            code, at_once = self._checked_regex(function.name, code, args[1].value), True
        cost = steps.cost_rule(function.cost, binding.overload.cost if binding.overload else None, single)
        return Planned(node.id, steps.call(node.id, code, at_once, cost, runs, numbers, self.watched))

    def _checked_regex(self, function: str, code: Callable[..., Any], pattern: str) -> Callable[..., Any]:
        try:
            compiled = compile_regex(pattern)
        except RegexError as error:
            raise CompileError(PLAN_FAILED + str(error)) from None
        return steps.matches(compiled) if function == "matches" else code

    def _membership(self, node: Call, run: Run, elements: Any) -> Planned | None:
        if not elements:
            return self._constant(node.id, False)
        members = loops.member_keys(elements)
        return None if members is None else Planned(node.id, loops.membership(node.id, run, members, self.watched))

    def _conditional(self, node: Call, args: list[Planned]) -> Planned:
        branches = [arg.attribute if arg.attribute is not None else Attribute(arg.id, self.runner(arg)) for arg in args]
        attribute = Attribute(
            node.id,
            condition=self.runner(args[0]),
            condition_id=_number(args[0]),
            truthy=branches[1],
            falsy=branches[2],
        )
        return Planned(node.id, attribute=attribute)

    # Literals with parts.

    def _list(self, node: ListLiteral) -> Planned:
        elements = [self.plan(element) for element in node.elements]
        if all(element.is_constant for element in elements):
            value = loops.list_value([element.value for element in elements], node.optional)
            return self._constant(node.id, value)
        runs, numbers = [self.runner(element) for element in elements], [_number(element) for element in elements]
        return Planned(node.id, loops.make_list(node.id, runs, numbers, node.optional, self.watched))

    def _map(self, node: MapLiteral) -> Planned:
        parts: list[Planned] = []
        for entry in node.entries:
            parts += (self.plan(map_key_node(entry)), self.plan(entry.value))
        optional = frozenset(index for index, entry in enumerate(node.entries) if entry.optional)
        if all(part.is_constant for part in parts):
            return self._constant(node.id, loops.map_value([part.value for part in parts], optional))
        runs, numbers = [self.runner(part) for part in parts], [_number(part) for part in parts]
        return Planned(node.id, loops.make_map(node.id, runs, numbers, optional, self.watched))

    def _message(self, node: MessageLiteral) -> Planned:
        empty, make = WRAPPERS.get(node.type_name), self.environment.make
        if empty is None and make is None:
            raise CompileError(f"{PLAN_FAILED}unknown type: {node.type_name}")
        parts = [self.plan(entry.value) for entry in node.entries]
        runs, numbers = [self.runner(part) for part in parts], [_number(part) for part in parts]
        optional = frozenset(index for index, entry in enumerate(node.entries) if entry.optional)
        if empty is None and make is not None:
            names = [str(entry.key) for entry in node.entries]
            build = partial(make, node.type_name)
            return Planned(node.id, loops.make_object(node.id, runs, numbers, names, optional, self.watched, build))
        return Planned(node.id, loops.make_wrapper(node.id, runs, numbers, optional, self.watched, empty))

    # Loops.

    def _fold(self, node: Comprehension) -> Planned:
        first = self.slots
        self.slots += 3
        start = self.runner(self.plan(node.start))
        over = self.plan(node.range)
        accumulator = loops.accumulator(first, start)
        names: dict[str, Run] = {}
        if node.variable2:
            names[node.variable2] = steps.slot(first + 2)
        names[node.variable] = steps.slot(first + 1)
        names[node.accumulator] = accumulator
        self.scopes.append(names)
        condition = self.runner(self.plan(node.condition))
        step = self.runner(self.plan(node.step))
        self.scopes[-1] = {node.accumulator: accumulator}
        result = self.runner(self.plan(node.result))
        self.scopes.pop()
        fold = loops.Fold(node.id, first, bool(node.variable2), self.runner(over), condition, step, result)
        return Planned(node.id, fold.watched(_number(over)) if self.watched else fold.run)


def _number(step: Planned) -> int:
    """The number under which the step's value is seen."""
    if step.attribute is not None and not step.test_only:
        return step.attribute.id
    return step.id


def run_program(program: Program, variables: dict[str, Value], limit: int) -> tuple[Value, Evaluation]:
    frame = Evaluation(variables, program.slots, limit)
    return program.run(frame), frame
