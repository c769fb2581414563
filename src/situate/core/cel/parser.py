"""Tokens to a tree. Macros are expanded on the way.

A text that is not in the grammar is left to `syntax_errors`, which words the complaint.
"""

from dataclasses import dataclass, field

from situate.core.cel import lexer
from situate.core.cel.ast import (
    Broken,
    Call,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
)
from situate.core.cel.grammar import RESERVED, GrammarError, balanced, literal_value, operator_of
from situate.core.cel.lexer import Token, tokenize
from situate.core.cel.literals import LiteralError
from situate.core.cel.macros import Builder, MacroError, Macros
from situate.core.cel.source import NO_LOCATION, Issues, SourceText
from situate.core.cel.syntax_errors import explain

MAX_CODE_POINTS = 100_000
MAX_DEPTH = 250


class _DepthError(Exception):
    pass


@dataclass(slots=True)
class Parsed:
    root: Node
    positions: dict[int, int]  # of each node, in code points


def parse(source: SourceText, macros: Macros, issues: Issues) -> Parsed | None:
    """The tree, or None with the issues reported."""
    size = len(source.text)
    if size > MAX_CODE_POINTS:
        issues.report(NO_LOCATION, f"expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}")
        return None
    tokens, wrong = tokenize(source.text)
    for position, text in wrong:
        issues.report(source.location(position), f"Syntax error: token recognition error at: '{text}'")
    parser = _Parser(source, tokens, macros, issues)
    known = (issues.count, len(issues.found))
    try:
        root = parser.parse()
    except GrammarError:
        # What the parser has found so far is among what the explanation finds.
        issues.count = known[0]
        del issues.found[known[1] :]
        explain(source, tokens, issues)
        return None
    except _DepthError as trouble:
        issues.report(NO_LOCATION, str(trouble))
        return None
    return None if issues.count else Parsed(root, parser.positions)


@dataclass(slots=True)
class _Parser:
    source: SourceText
    tokens: list[Token]
    macros: Macros
    issues: Issues
    at: int = 0
    next_id: int = 1
    positions: dict[int, int] = field(default_factory=dict)
    visited: int = 0  # how deep the tree just parsed is for a visitor
    nesting: dict[str, int] = field(default_factory=dict)  # how often each rule of the grammar is being parsed

    def parse(self) -> Node:
        root = self._expression()
        if self.tokens[self.at].kind != lexer.EOF:
            raise GrammarError
        if self.visited > MAX_DEPTH:
            raise _DepthError("max recursion depth exceeded")
        return root

    # Numbers and positions.

    def _new_id(self, position: int) -> int:
        number = self.next_id
        self.next_id += 1
        self.positions[number] = position
        return number

    def _forget_id(self, number: int) -> None:
        self.positions.pop(number, None)
        if number == self.next_id - 1:
            self.next_id -= 1

    def _enter(self, rule: str, levels: int = 1) -> None:
        depth = self.nesting.get(rule, 0) + levels
        self.nesting[rule] = depth
        if depth > MAX_DEPTH:
            raise _DepthError(f"expression recursion limit exceeded: {MAX_DEPTH}")

    def _leave(self, rule: str, levels: int = 1) -> None:
        self.nesting[rule] -= levels

    def _report(self, position: int, message: str) -> Node:
        number = self._new_id(position)
        self.issues.report(self.source.location(position), message)
        return Broken(number)

    # Tokens.

    def _accept(self, kind: str) -> Token | None:
        token = self.tokens[self.at]
        if token.kind != kind:
            return None
        self.at += 1
        return token

    def _expect(self, kind: str) -> Token:
        token = self.tokens[self.at]
        if token.kind != kind:
            raise GrammarError
        self.at += 1
        return token

    # The grammar's rules. Operators of the three logical levels and of calculations are folded into one function:
    # a nested expression costs two calls here, so that the deepest one allowed stays well below Python's limit.

    def _expression(self) -> Node:
        self._enter("expr")
        condition = self._disjunction()
        if question := self._accept("'?'"):
            depth = self.visited
            number = self._new_id(question.start)
            chosen = self._disjunction()
            depth = max(depth, self.visited)
            self._expect("':'")
            otherwise = self._expression()
            self.visited = max(depth, self.visited) + 1
            condition = Call(number, "_?_:_", None, [condition, chosen, otherwise])
        self._leave("expr")
        return condition

    def _disjunction(self) -> Node:
        """`||` over `&&` over relations over sums over products."""
        either: list[Node] = []
        either_ids: list[int] = []
        both: list[Node] = []
        both_ids: list[int] = []
        depth = 0
        both_op: Token | None = None
        either_op: Token | None = None
        while True:
            both.append(self._relation())
            depth = max(depth, self.visited)
            if both_op is not None:
                both_ids.append(self._new_id(both_op.start))
            if (both_op := self._accept("'&&'")) is not None:
                continue
            either.append(balanced("_&&_", both, both_ids))
            both, both_ids = [], []
            if either_op is not None:
                either_ids.append(self._new_id(either_op.start))
            if (either_op := self._accept("'||'")) is not None:
                continue
            self.visited = depth
            return balanced("_||_", either, either_ids)

    def _relation(self) -> Node:
        self._enter("relation")
        self._enter("calc")
        # Each stack entry is an operator waiting for its right side: (level, function, number, left, depth).
        waiting: list[tuple[int, str, int, Node, int]] = []
        pushed = {"relation": 0, "calc": 0}
        while True:
            node = self._unary()
            depth = self.visited
            kind = self.tokens[self.at].kind
            level, name = operator_of(kind)
            while waiting and waiting[-1][0] >= level:
                _, function, number, left, left_depth = waiting.pop()
                node = Call(number, function, None, [left, node])
                depth = max(depth, left_depth) + 1
            if level == 0:
                break
            token = self.tokens[self.at]
            self.at += 1
            rule = "relation" if level == 1 else "calc"
            self._enter(rule)
            pushed[rule] += 1
            waiting.append((level, name, self._new_id(token.start), node, depth))
            self._enter(rule)  # the right side is one more level
            self._leave(rule)
        for rule, levels in pushed.items():
            self._leave(rule, levels + 1)
        self.visited = depth
        return node

    def _unary(self) -> Node:
        token = self.tokens[self.at]
        if token.kind not in ("'!'", "'-'"):
            return self._member()
        start = self.at
        while self.tokens[self.at].kind == token.kind:
            self.at += 1
        count = self.at - start
        if token.kind == "'-'" and count == 1 and self.tokens[self.at].kind in (lexer.NUM_INT, lexer.NUM_FLOAT):
            self.at = start
            return self._member()
        if count % 2 == 0:
            return self._member()
        number = self._new_id(token.start)
        return Call(number, "!_" if token.kind == "'!'" else "-_", None, [self._member()])

    def _member(self) -> Node:
        self._enter("member")
        node = self._primary()
        levels = 1
        while True:
            token = self.tokens[self.at]
            if token.kind == "'.'":
                self.at += 1
                node = self._selection(node, token)
            elif token.kind == "'['":
                self.at += 1
                depth = self.visited
                optional = self._accept("'?'") is not None
                number = self._new_id(token.start)
                index = self._expression()
                self._expect("']'")
                self.visited = max(depth, self.visited) + 1
                node = Call(number, "_[?_]" if optional else "_[_]", None, [node, index])
            else:
                break
            self._enter("member")
            levels += 1
        self._leave("member", levels)
        return node

    def _selection(self, operand: Node, dot: Token) -> Node:
        if self._accept("'?'"):
            name, position = self._field_name()
            number = self._new_id(position)
            self.visited += 1
            return Call(self._new_id(dot.start), "_?._", None, [operand, Literal(number, name)])
        name, _ = self._field_name()
        bracket = self._accept("'('")
        if bracket is None:
            self.visited += 1
            return Select(self._new_id(dot.start), operand, name)
        depth = self.visited
        number = self._new_id(bracket.start)
        args = self._arguments()
        self.visited = max(depth, self.visited) + 1
        return self._call_or_macro(number, name, operand, args)

    def _field_name(self) -> tuple[str, int]:
        token = self.tokens[self.at]
        if token.kind == lexer.ESCAPED_IDENTIFIER:
            self.at += 1
            self._report(token.start, "unsupported syntax: '`'")
            return "", token.start
        self._expect(lexer.IDENTIFIER)
        return token.text, token.start

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        depth = 0
        if self._accept("')'"):
            self.visited = 0
            return args
        while True:
            args.append(self._expression())
            depth = max(depth, self.visited)
            if not self._accept("','"):
                break
        self._expect("')'")
        self.visited = depth
        return args

    def _primary(self) -> Node:
        self.visited = 0
        token = self.tokens[self.at]
        match token.kind:
            case "'('":
                self.at += 1
                node = self._expression()
                self._expect("')'")
                return node
            case "'['":
                return self._list()
            case "'{'":
                return self._map()
            case "'.'" | lexer.IDENTIFIER:
                return self._name()
        return self._literal()

    def _name(self) -> Node:
        first = self.tokens[self.at]
        leading = "." if self._accept("'.'") else ""
        token = self._expect(lexer.IDENTIFIER)
        if (brace := self._message_brace(self.at)) is not None:
            names = [token.text, *(part.text for part in self.tokens[self.at : brace] if part.kind != "'.'")]
            self.at = brace
            return self._message(leading + ".".join(names))
        if bracket := self._accept("'('"):
            if token.text in RESERVED:
                self._arguments()
                return self._report(first.start, f"reserved identifier: {token.text}")
            number = self._new_id(bracket.start)
            return self._call_or_macro(number, leading + token.text, None, self._arguments())
        if token.text in RESERVED:
            return self._report(first.start, f"reserved identifier: {token.text}")
        return Ident(self._new_id(token.start), leading + token.text)

    def _message_brace(self, at: int) -> int | None:
        while self.tokens[at].kind == "'.'" and self.tokens[at + 1].kind == lexer.IDENTIFIER:
            at += 2
        return at if self.tokens[at].kind == "'{'" else None

    def _list(self) -> Node:
        number = self._new_id(self._expect("'['").start)
        elements: list[Node] = []
        optional: list[int] = []
        depth = 0
        while not self._accept("']'"):
            if elements or self.tokens[self.at].kind == "','":
                self._expect("','")
                if self._accept("']'"):
                    break
                if not elements:
                    raise GrammarError
            if self._accept("'?'"):
                optional.append(len(elements))
            elements.append(self._expression())
            depth = max(depth, self.visited)
        self.visited = depth
        return ListLiteral(number, elements, frozenset(optional))

    def _map(self) -> Node:
        number = self._new_id(self.tokens[self.at].start)
        return MapLiteral(number, self._entries(is_map=True))

    def _message(self, name: str) -> Node:
        number = self._new_id(self.tokens[self.at].start)
        return MessageLiteral(number, name, self._entries(is_map=False))

    def _entries(self, is_map: bool) -> list[MapEntry]:
        self._expect("'{'")
        entries: list[MapEntry] = []
        depth = 0
        while not self._accept("'}'"):
            if entries or self.tokens[self.at].kind == "','":
                self._expect("','")
                if self._accept("'}'"):
                    break
                if not entries:
                    raise GrammarError
            optional = self._accept("'?'") is not None
            # The entry is numbered before its key, at its colon.
            number = self._new_id(0)
            key: Node | str = self._expression() if is_map else self._field_name()[0]
            depth = max(depth, self.visited)
            self.positions[number] = self._expect("':'").start
            value = self._expression()
            depth = max(depth, self.visited)
            entries.append(MapEntry(number, key, value, optional))
        self.visited = depth
        return entries

    def _literal(self) -> Node:
        first = self.tokens[self.at]
        negative = self._accept("'-'") is not None
        token = self.tokens[self.at]
        self.at += 1
        try:
            value = literal_value(token, negative)
        except LiteralError as error:
            number = self._new_id(first.start)
            self.issues.report(self.source.location(first.start), str(error))
            if token.kind in (lexer.STRING, lexer.BYTES):
                return Literal(self._new_id(first.start), "")
            return Broken(number)
        return Literal(self._new_id(first.start), value)

    def _call_or_macro(self, number: int, function: str, target: Node | None, args: list[Node]) -> Node:
        expand = self.macros.get((function, len(args), target is not None))
        if expand is None:
            return Call(number, function, target, args)
        position = self.positions[number]
        try:
            expanded = expand(
                Builder(lambda: self._new_id(position), lambda of: self._new_id(self.positions.get(of, 0))),
                args[0] if target is None else target,
                args,
            )
        except MacroError as error:
            blamed = self.positions.get(error.node.id)
            self._forget_id(number)
            broken = self._new_id(-1 if blamed is None else blamed)
            self.issues.report(NO_LOCATION if blamed is None else self.source.location(blamed), str(error))
            return Broken(broken)
        if expanded is None:
            return Call(number, function, target, args)
        self._forget_id(number)
        return expanded
