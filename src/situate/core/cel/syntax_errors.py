"""Words the complaints about a text that is not in the grammar, as cel-go's generated parser does.

That parser looks ahead to choose among alternatives, drops or invents one token where that helps, and otherwise gives
up a rule and skips to a token that may follow. This one reads the same grammar in the same way, and only complains.
"""

from contextlib import suppress

from situate.core.cel import lexer
from situate.core.cel.grammar import RESERVED, literal_value
from situate.core.cel.lexer import Token
from situate.core.cel.literals import LiteralError
from situate.core.cel.source import Issues, SourceText
from situate.core.cel.syntax_recovery import UNREADABLE, SyntaxRecovery, SyntaxRuleError, SyntaxStopError
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
    wrong_macro_argument,
)


def explain(source: SourceText, tokens: list[Token], issues: Issues) -> None:
    """Reports what is wrong; something always is."""
    before = issues.count
    explainer = _Explainer(source, tokens, issues)
    with suppress(SyntaxStopError):
        explainer.start()
    if issues.count == before:
        explainer.report(tokens[-1], "mismatched input '<EOF>'")


class _Explainer(SyntaxRecovery):
    """The rules of the grammar, one method each."""

    # The grammar.

    def start(self) -> None:
        self.follows = []
        try:
            self._rule("expression", frozenset((lexer.EOF,)), False)
            self._match(lexer.EOF, "start")
        except SyntaxRuleError as error:
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
            except SyntaxRuleError:
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
