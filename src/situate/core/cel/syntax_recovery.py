"""What ANTLR does about tokens that a rule does not expect: it reports them, drops or assumes some, and reads on."""

from __future__ import annotations

from dataclasses import dataclass, field

from situate.core.cel import lexer
from situate.core.cel.lexer import Token, tokenize
from situate.core.cel.source import Issues, SourceText
from situate.core.cel.token_sets import (
    NOTHING,
    Kinds,
    quoted,
    set_text,
    token_text,
)

MAX_RECOVERIES = 30
SYNTAX_ERROR = "Syntax error: "
UNREADABLE = ("other", -1)
MAX_NESTING = 40  # beyond that the first complaint must do


class SyntaxRuleError(Exception):
    """A rule cannot go on; the message, for which token, and where in the grammar."""

    def __init__(self, message: str, token: Token, state: str) -> None:
        super().__init__(message)
        self.token = token
        self.state = state


class SyntaxStopError(Exception):
    """Enough."""


@dataclass(slots=True)
class SyntaxRecovery:
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
        raise SyntaxRuleError(
            f"mismatched input {token_text(self._ahead())} expecting {set_text(kinds)}", self._ahead(), state
        )

    def _mismatch(self, kinds: Kinds, state: str) -> SyntaxRuleError:
        token = self._ahead()
        return SyntaxRuleError(f"mismatched input {token_text(token)} expecting {set_text(kinds)}", token, state)

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
            raise SyntaxStopError
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
        raise SyntaxRuleError(
            f"mismatched input {token_text(self._ahead())} expecting {set_text(wanted)}", self._ahead(), state
        )

    def _no_alternative(self, start: int, end: int, state: str) -> SyntaxRuleError:
        first, last = self._ahead(start), self._ahead(end)
        stop = len(self.source.text) if last.kind == lexer.EOF else last.start + len(last.text)
        text, position = "", first.start
        for wrong, skipped in tokenize(self.source.text)[1]:
            if position <= wrong < stop:
                text += self.source.text[position:wrong]
                position = wrong + len(skipped)
        text += self.source.text[position:stop]
        if len(text) > 1 and text[1:] in ("true", "false", "null"):
            return SyntaxRuleError(f"mismatched input '{text[1:]}' expecting IDENTIFIER", last, state)
        return SyntaxRuleError(f"no viable alternative at input {quoted(text)}", last, state)

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
            raise SyntaxStopError
        self.follows.append((follow, may_end))
        try:
            getattr(self, name)()
        except SyntaxRuleError as error:
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
