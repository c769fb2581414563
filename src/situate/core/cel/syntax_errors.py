"""Words the complaints about a text that is not in the grammar, as cel-go's generated parser does.

That parser looks ahead to choose among alternatives, drops or invents one token where that helps, and otherwise gives
up a rule and skips to a token that may follow. This one reads the same grammar in the same way, and only complains.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from situate.core.cel import lexer
from situate.core.cel.grammar import RESERVED, literal_value
from situate.core.cel.lexer import Token, tokenize
from situate.core.cel.literals import LiteralError
from situate.core.cel.source import Issues, SourceText
from situate.core.cel.token_sets import (
    CALCULATIONS,
    EXPRESSION,
    LITERAL,
    MEMBER,
    NAMES,
    NOTHING,
    OPTIONAL,
    PATH,
    RELATIONS,
    Kinds,
    quoted,
    set_text,
    token_text,
    wrong_macro_argument,
)

MAX_RECOVERIES = 30
SYNTAX_ERROR = "Syntax error: "
UNREADABLE = ("other", -1)
MAX_NESTING = 40  # beyond that the first complaint must do


class _RuleError(Exception):
    """A rule cannot go on; the message, for which token, and where in the grammar."""

    def __init__(self, message: str, token: Token, state: str) -> None:
        super().__init__(message)
        self.token = token
        self.state = state


class _StopError(Exception):
    """Enough."""


def explain(source: SourceText, tokens: list[Token], issues: Issues) -> None:
    """Reports what is wrong; something always is."""
    before = issues.count
    explainer = _Explainer(source, tokens, issues)
    with suppress(_StopError):
        explainer.start()
    if issues.count == before:
        explainer.report(tokens[-1], "mismatched input '<EOF>'")


@dataclass(slots=True)
class _Explainer:
    source: SourceText
    tokens: list[Token]
    issues: Issues
    at: int = 0
    recovering: bool = False
    attempts: int = 0
    last_error: int = -1
    last_states: set[str] = field(default_factory=set)
    # What may follow each rule that is being read: the tokens, and whether the rule around it may end there too.
    follows: list[tuple[Kinds, bool]] = field(default_factory=list)
    # The expression just read, as far as macros look at it: what it is, and its position.
    shape: tuple[str, int] = ("", 0)
    arguments: list[tuple[str, int]] = field(default_factory=list)
    named: bool = False  # whether the last name was one

    # Messages.

    def report(self, token: Token, message: str) -> None:
        at = self.source.location(token.start) if self.source.text else (1, -1)
        self.issues.report(at, f"{SYNTAX_ERROR}{message}")

    def _forget_tree(self, begun: int) -> None:
        """What was read since is not part of the tree, so only its syntax is complained about."""
        found = self.issues.found
        kept = [issue for issue in found[begun:] if issue[1].startswith(SYNTAX_ERROR)]
        self.issues.count -= len(found) - begun - len(kept)
        found[begun:] = kept

    def _ahead(self, distance: int = 0) -> Token:
        return self.tokens[min(self.at + distance, len(self.tokens) - 1)]

    def _kind(self, distance: int = 0) -> str:
        return self._ahead(distance).kind

    def _consume(self) -> None:
        if self.at < len(self.tokens) - 1:
            self.at += 1

    def _expected(self, kinds: Kinds, may_end: bool) -> Kinds:
        """The tokens that may come, in all the rules that may end here."""
        for follow, ends in reversed(self.follows):
            if not may_end:
                break
            kinds, may_end = kinds | follow, ends
        return kinds

    # The strategy.

    def _sync(self, kinds: Kinds, state: str, may_end: bool = False, loops: bool = False) -> None:
        """Before a choice: what cannot start any of it is dropped, or ends the rule."""
        if self.recovering or may_end or self._kind() in kinds:
            return
        if loops:
            self._unwanted(kinds)
            self._skip(kinds | self._recovery_set())
            return
        if self._delete(kinds):
            return
        raise _RuleError(
            f"mismatched input {token_text(self._ahead())} expecting {set_text(kinds)}", self._ahead(), state
        )

    def _mismatch(self, kinds: Kinds, state: str) -> _RuleError:
        token = self._ahead()
        return _RuleError(f"mismatched input {token_text(token)} expecting {set_text(kinds)}", token, state)

    def _unwanted(self, kinds: Kinds) -> None:
        if not self.recovering:
            self.recovering = True
            self.report(self._ahead(), f"extraneous input {token_text(self._ahead())} expecting {set_text(kinds)}")

    def _delete(self, kinds: Kinds) -> bool:
        if self._kind(1) not in kinds or self._kind() == lexer.EOF:
            return False
        self._unwanted(kinds)
        self._consume()
        self.recovering = False
        return True

    def _attempt(self) -> None:
        if self.attempts == MAX_RECOVERIES:
            self.report(self._ahead(), f"error recovery attempt limit exceeded: {MAX_RECOVERIES}")
            raise _StopError
        self.attempts += 1

    def _match(self, kind: str, state: str, after: Kinds = NOTHING, ends_after: bool = False) -> None:
        if self._kind() == kind:
            self.recovering = False
            self._consume()
            return
        self._attempt()
        wanted = frozenset((kind,))
        if self._delete(wanted):
            self._consume()
            return
        if self._kind() in self._expected(after, ends_after):
            if not self.recovering:
                self.recovering = True
                self.report(self._ahead(), f"missing {set_text(wanted)} at {token_text(self._ahead())}")
            return
        raise _RuleError(
            f"mismatched input {token_text(self._ahead())} expecting {set_text(wanted)}", self._ahead(), state
        )

    def _no_alternative(self, start: int, end: int, state: str) -> _RuleError:
        first, last = self._ahead(start), self._ahead(end)
        stop = len(self.source.text) if last.kind == lexer.EOF else last.start + len(last.text)
        text, position = "", first.start
        for wrong, skipped in tokenize(self.source.text)[1]:
            if position <= wrong < stop:
                text += self.source.text[position:wrong]
                position = wrong + len(skipped)
        text += self.source.text[position:stop]
        if len(text) > 1 and text[1:] in ("true", "false", "null"):
            return _RuleError(f"mismatched input '{text[1:]}' expecting IDENTIFIER", last, state)
        return _RuleError(f"no viable alternative at input {quoted(text)}", last, state)

    def _must_be(self, kinds: Kinds, state: str) -> None:
        if self._kind() not in kinds:
            raise self._no_alternative(0, 0, state)

    def _recovery_set(self) -> Kinds:
        found = NOTHING
        for follow, _ in self.follows:
            found |= follow
        return found

    def _skip(self, until: Kinds) -> None:
        while self._kind() != lexer.EOF and self._kind() not in until:
            self._consume()

    def _rule(self, name: str, follow: Kinds, may_end: bool) -> None:
        """Reads a rule; where it fails, complains and goes on behind it."""
        if len(self.follows) > MAX_NESTING * 8:
            raise _StopError
        self.follows.append((follow, may_end))
        try:
            getattr(self, name)()
        except _RuleError as error:
            if not self.recovering:
                self.recovering = True
                self.report(error.token, str(error))
            self._attempt()
            if self.last_error == self.at and error.state in self.last_states:
                self._consume()
            self.last_error = self.at
            self.last_states.add(error.state)
            self._skip(self._recovery_set())
        finally:
            self.follows.pop()

    # The grammar.

    def start(self) -> None:
        self.follows = []
        try:
            self._rule("expression", frozenset((lexer.EOF,)), False)
            self._match(lexer.EOF, "start")
        except _RuleError as error:
            if not self.recovering:
                self.report(error.token, str(error))

    def expression(self) -> None:
        self._rule("disjunction", frozenset(("'?'",)), True)
        if self._kind() == "'?'":
            operator = self._ahead()
            self._match("'?'", "?")
            self._rule("disjunction", frozenset(("':'",)), False)
            self.shape = ("call", operator.start)
            self._match("':'", "?:", EXPRESSION)
            self._rule("expression", NOTHING, True)
            self.shape = ("call", operator.start)

    def disjunction(self) -> None:
        self._rule("conjunction", frozenset(("'||'",)), True)
        operators: list[int] = []
        while self._kind() == "'||'":
            operators.append(self._ahead().start)
            self._match("'||'", "||")
            self._rule("conjunction", frozenset(("'||'",)), True)
            self.shape = ("call", operators[len(operators) // 2])  # the tree is balanced

    def conjunction(self) -> None:
        self._rule("relation", frozenset(("'&&'",)), True)
        operators: list[int] = []
        while self._kind() == "'&&'":
            operators.append(self._ahead().start)
            self._match("'&&'", "&&")
            self._rule("relation", frozenset(("'&&'",)), True)
            self.shape = ("call", operators[len(operators) // 2])  # the tree is balanced

    def relation(self) -> None:
        self._rule("calculation", RELATIONS, True)
        while self._kind() in RELATIONS:
            operator = self._ahead()
            self._match(self._kind(), "relation")
            self._rule("operand", RELATIONS, True)
            self.shape = ("call", operator.start)

    def operand(self) -> None:
        self._rule("calculation", RELATIONS, True)

    def calculation(self) -> None:
        self._rule("unary", CALCULATIONS, True)
        while self._kind() in CALCULATIONS:
            operator = self._ahead()
            self._match(self._kind(), "calc")
            self._rule("factor", CALCULATIONS, True)
            self.shape = ("call", operator.start)

    def factor(self) -> None:
        self._rule("unary", CALCULATIONS, True)

    def unary(self) -> None:
        self.shape = ("other", self._ahead().start)
        self._sync(EXPRESSION, "unary")
        self._must_be(EXPRESSION, "unary")
        sign, signs = self._ahead().start, 0
        if self._kind() == "'!'":
            while self._kind() == "'!'":
                signs += 1
                self._match("'!'", "!")
                self._sync(MEMBER | {"'!'"}, "!", loops=True)
        elif self._kind() == "'-'" and self._kind(1) not in (lexer.NUM_INT, lexer.NUM_FLOAT):
            if self._kind(1) not in MEMBER:
                raise self._no_alternative(0, 1, "unary")
            while self._kind() == "'-'" and self._kind(1) in MEMBER:
                signs += 1
                self._match("'-'", "-")
        self._rule("member", NOTHING, True)
        if signs % 2:
            self.shape = ("call", sign)

    def member(self) -> None:
        self._rule("primary", PATH, True)
        while self._kind() in PATH:
            if self._kind() == "'['":
                opened = self._ahead().start
                self._match("'['", "index")
                self.shape = ("call", opened)
                self._sync(OPTIONAL, "index")
                if self._kind() == "'?'":
                    self._match("'?'", "index?")
                self._rule("expression", frozenset(("']'",)), False)
                self.shape = ("call", opened)
                self._match("']'", "index]", PATH, True)
            else:
                self._selection()

    def _selection(self) -> None:
        if self._kind(1) not in NAMES and self._kind(1) != "'?'":
            raise self._no_alternative(0, 1, "member")
        is_call = self._kind(1) == lexer.IDENTIFIER and self._kind(2) == "'('"
        dot = self._ahead().start
        self._match("'.'", ".")
        if is_call:
            name = self._ahead().text
            self._match(lexer.IDENTIFIER, ".name")
            self._arguments(name, "call)", PATH)
            return
        is_optional = self._kind() == "'?'"
        if is_optional:
            self._match("'?'", ".?")
        token = self._ahead()
        self.named = False
        self._rule("name", PATH, True)
        if not self.named:
            self.issues.report(self.source.location(token.start), "unsupported ident kind")
        elif token.kind == lexer.ESCAPED_IDENTIFIER:
            self.issues.report(self.source.location(token.start), "unsupported syntax: '`'")
        self.shape = ("call" if is_optional else "select", dot)

    def _arguments(self, name: str, state: str, after: Kinds) -> None:
        opened = self._ahead().start
        shapes: list[tuple[str, int]] = []
        try:
            self._match("'('", "(")
            self._sync(EXPRESSION | {"')'"}, "(")
            if self._kind() in EXPRESSION:
                self.arguments = []
                self._rule("expressions", frozenset(("')'",)), False)
                shapes = self.arguments
            self._match("')'", state, after, True)
        finally:
            self.shape = ("select" if name == "has" and state == "global)" and len(shapes) == 1 else "call", opened)
            wrong = wrong_macro_argument(name, state == "call)", shapes)
            if wrong is not None:
                self.shape = ("other", wrong[0])
                self.issues.report(self.source.location(wrong[0]), wrong[1])

    def name(self) -> None:
        self._sync(NAMES, "name")
        self._must_be(NAMES, "name")
        self._match(self._kind(), "name")
        self.named = True

    def expressions(self) -> None:
        shapes: list[tuple[str, int]] = []
        self._rule("expression", frozenset(("','",)), True)
        shapes.append(self.shape)
        while self._kind() == "','":
            self._match("','", ",")
            self._rule("expression", frozenset(("','",)), True)
            shapes.append(self.shape)
        self.arguments = shapes

    def primary(self) -> None:
        self.shape = UNREADABLE
        self._sync(MEMBER, "primary")
        self._must_be(MEMBER, "primary")
        self.shape = ("other", self._ahead().start)
        start = self.shape
        match self._kind():
            case "'('":
                self._match("'('", "nested")
                self._rule("expression", frozenset(("')'",)), False)
                self._match("')'", "nested)", NOTHING, True)
            case "'['":
                self._match("'['", "list")
                self._body("elements", OPTIONAL, "']'", start)
            case "'{'":
                self._match("'{'", "map")
                self._body("entries", OPTIONAL, "'}'", start)
            case "'.'" | lexer.IDENTIFIER:
                self._named()
            case _:
                self._rule("literal", NOTHING, True)

    def _body(self, rule: str, first: Kinds, close: str, shape: tuple[str, int]) -> None:
        try:
            self._sync(first | {"','", close}, rule)
            if self._kind() in first:
                self._rule(rule, frozenset(("','", close)), False)
            self._sync(frozenset(("','", close)), f"{rule},")
            if self._kind() == "','":
                self._match("','", f"{rule},")
            self._match(close, close, NOTHING, True)
        finally:
            self.shape = shape

    def _named(self) -> None:
        leading = ""
        if self._kind() == "'.'":
            if self._kind(1) != lexer.IDENTIFIER:
                self.shape = UNREADABLE
                raise self._no_alternative(0, 1, "primary")
            leading = "."
            self._match("'.'", "leading")
        distance = 1
        while self._kind(distance) == "'.'" and self._kind(distance + 1) == lexer.IDENTIFIER:
            distance += 2
        is_message = self._kind(distance) == "'{'"
        name = self._ahead()
        self.shape = ("ident", name.start)
        if name.text in RESERVED and not is_message:
            self.issues.report(self.source.location(name.start), f"reserved identifier: {name.text}")
        self._match(lexer.IDENTIFIER, "identifier")
        if is_message:
            while self._kind() != "'{'":
                self._consume()
            opened = self._ahead().start
            self._match("'{'", "message")
            self._body("fields", NAMES | {"'?'"}, "'}'", ("other", opened))
        elif self._kind() == "'('":
            self._arguments(leading + name.text, "global)", NOTHING)

    def elements(self) -> None:
        self._rule("optional", frozenset(("','",)), True)
        while self._kind() == "','" and self._kind(1) in OPTIONAL:
            self._match("','", "elements,")
            self._rule("optional", frozenset(("','",)), True)

    def optional(self) -> None:
        self._sync(OPTIONAL, "optional")
        if self._kind() == "'?'":
            self._match("'?'", "optional?")
        self._rule("expression", NOTHING, True)

    def entries(self) -> None:
        while True:
            begun = len(self.issues.found)
            self._rule("optional", frozenset(("':'",)), False)
            try:
                self._match("':'", "entry:", EXPRESSION)
            except _RuleError:
                self._forget_tree(begun)
                raise
            self._rule("expression", frozenset(("','",)), True)
            if self._kind() != "','" or self._kind(1) not in OPTIONAL:
                return
            self._match("','", "entries,")

    def fields(self) -> None:
        while True:
            self._rule("field_name", frozenset(("':'",)), False)
            self._match("':'", "field:", EXPRESSION)
            self._rule("expression", frozenset(("','",)), True)
            if self._kind() != "','" or self._kind(1) not in NAMES | {"'?'"}:
                return
            self._match("','", "fields,")

    def field_name(self) -> None:
        self._sync(NAMES | {"'?'"}, "field")
        if self._kind() == "'?'":
            self._match("'?'", "field?")
        self._rule("name", NOTHING, True)

    def literal(self) -> None:
        self._sync(LITERAL, "literal")
        if self._kind() == "'-'":
            if self._kind(1) not in (lexer.NUM_INT, lexer.NUM_FLOAT):
                raise self._no_alternative(0, 1, "literal")
            self._match("'-'", "sign")
        try:
            literal_value(self._ahead(), self.shape[1] != self._ahead().start)
        except LiteralError as error:
            self.issues.report(self.source.location(self.shape[1]), str(error))
        self._match(self._kind(), "literal")
