"""Matches regular expressions in time linear in the text, as RE2 does.

Python's re is used where it cannot take long: without repetition in repetition, on a short text. Otherwise the pattern
runs as a machine with many states at once.
"""

import re
from functools import lru_cache
from typing import Final

from situate.core.cel.regex_syntax import (
    Assertion,
    Chars,
    Choice,
    Pattern,
    RegexError,
    Repeat,
    Sequence,
    parse_regex,
)

CACHE_SIZE: Final = 256
MAX_SIZE: Final = 50_000  # states of a machine
MAX_BACKTRACKED_TEXT: Final = 512
MAX_BACKTRACKED_REPEATS: Final = 3

__all__ = ["CompiledRegex", "RegexError", "compile_regex"]

_CHAR, _SPLIT, _JUMP, _ASSERT, _MATCH = range(5)
_Instruction = tuple[int, object, int]


class CompiledRegex:
    """A regular expression; finds spans of text."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        height, repeats = _repeats(pattern)
        self._may_backtrack = height <= 1 and repeats <= MAX_BACKTRACKED_REPEATS
        self._python: re.Pattern[str] | None = None
        self._machine: _Machine | None = None
        self._states = _size(pattern)
        if not self._may_backtrack and self._states > MAX_SIZE:
            raise RegexError("error parsing regexp: expression too large")

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """The leftmost match at or after a position; of several there, the one that is tried first."""
        if self._may_backtrack and len(text) <= MAX_BACKTRACKED_TEXT:
            if self._python is None:
                self._python = re.compile(_translate(self._pattern))
            found = self._python.search(text, start)
            return None if found is None else found.span()
        if self._machine is None:
            if self._states > MAX_SIZE:
                raise RegexError("error parsing regexp: expression too large")
            self._machine = _Machine(self._pattern)
        return self._machine.find(text, start)

    def matches(self, text: str) -> bool:
        return self.find(text) is not None

    def work(self, text: str) -> int:
        """How many steps the machine may take to find a match: states times characters. 0 if it is not needed."""
        if self._may_backtrack and len(text) <= MAX_BACKTRACKED_TEXT:
            return 0
        return self._states * len(text)

    def find_all(self, text: str, count: int) -> list[str]:
        """Up to `count` matches that do not overlap (all, if negative); none is empty right after another."""
        found: list[str] = []
        position, after = 0, -1
        while position <= len(text) and (count < 0 or len(found) < count):
            span = self.find(text, position)
            if span is None:
                break
            if not (span[0] == span[1] == after):
                found.append(text[span[0] : span[1]])
            after = span[1]
            position = span[1] if span[1] > span[0] else span[1] + 1
        return found


@lru_cache(maxsize=CACHE_SIZE)
def compile_regex(text: str) -> CompiledRegex:
    """Raises RegexError."""
    return CompiledRegex(parse_regex(text))


def _repeats(pattern: Pattern) -> tuple[int, int]:
    """How deep repetitions nest, and how many there are."""
    match pattern:
        case Repeat():
            height, count = _repeats(pattern.part)
            optional = pattern.high is not None and pattern.high <= 1
            return (height, count) if optional else (height + 1, count + 1)
        case Sequence(parts) | Choice(parts):
            found = [_repeats(part) for part in parts]
            return max((one[0] for one in found), default=0), sum(one[1] for one in found)
    return 0, 0


def _size(pattern: Pattern) -> int:
    match pattern:
        case Repeat():
            times = pattern.low + 1 if pattern.high is None else max(pattern.high, 1)
            return (_size(pattern.part) + 2) * times
        case Sequence(parts) | Choice(parts):
            return sum(_size(part) + 2 for part in parts)
    return 1


def _translate(pattern: Pattern) -> str:
    match pattern:
        case Chars():
            return f"(?i:{_class(pattern)})" if pattern.ignore_case else _class(pattern)
        case Assertion():
            return pattern.pattern
        case Sequence():
            return "".join(map(_translate, pattern.parts))
        case Choice():
            return f"(?:{'|'.join(map(_translate, pattern.options))})"
        case Repeat():
            count = f"{{{pattern.low},{'' if pattern.high is None else pattern.high}}}"
            return f"(?:{_translate(pattern.part)}){count}{'' if pattern.greedy else '?'}"


def _class(chars: Chars) -> str:
    # An empty class matches nothing.
    return r"[^\x00-\U0010ffff]" if chars.pattern == "[]" else chars.pattern


class _Machine:
    """Thompson's machine, with its states in order of preference."""

    def __init__(self, pattern: Pattern) -> None:
        self.program: list[_Instruction] = []
        self._emit(pattern)
        self.program.append((_MATCH, None, 0))

    def _emit(self, pattern: Pattern) -> None:
        program = self.program
        match pattern:
            case Chars():
                program.append((_CHAR, _Test(pattern), 0))
            case Assertion():
                program.append((_ASSERT, re.compile(pattern.pattern), 0))
            case Sequence():
                for part in pattern.parts:
                    self._emit(part)
            case Choice():
                self._emit_choice(pattern)
            case Repeat():
                for _ in range(pattern.low):
                    self._emit(pattern.part)
                if pattern.high is None:
                    self._emit_star(pattern)
                else:
                    self._emit_options(pattern)

    def _emit_choice(self, pattern: Choice) -> None:
        program = self.program
        jumps: list[int] = []
        for option in pattern.options[:-1]:
            split = len(program)
            program.append((_SPLIT, split + 1, 0))
            self._emit(option)
            jumps.append(len(program))
            program.append((_JUMP, None, 0))
            program[split] = (_SPLIT, split + 1, len(program))
        self._emit(pattern.options[-1])
        for jump in jumps:
            program[jump] = (_JUMP, None, len(program))

    def _emit_star(self, pattern: Repeat) -> None:
        program = self.program
        split = len(program)
        program.append((_SPLIT, 0, 0))
        self._emit(pattern.part)
        program.append((_JUMP, None, split))
        program[split] = self._split(split + 1, len(program), pattern.greedy)

    def _emit_options(self, pattern: Repeat) -> None:
        program = self.program
        splits: list[int] = []
        for _ in range((pattern.high or 0) - pattern.low):
            splits.append(len(program))
            program.append((_SPLIT, 0, 0))
            self._emit(pattern.part)
        for split in splits:
            program[split] = self._split(split + 1, len(program), pattern.greedy)

    def _split(self, inside: int, outside: int, greedy: bool) -> _Instruction:
        return (_SPLIT, inside, outside) if greedy else (_SPLIT, outside, inside)

    def find(self, text: str, start: int) -> tuple[int, int] | None:
        states: list[tuple[int, int]] = []
        best: tuple[int, int] | None = None
        for position in range(start, len(text) + 1):
            seen = bytearray(len(self.program))
            current: list[tuple[int, int]] = []
            for state, began in states:
                self._follow(state, began, position, text, seen, current)
            if best is None:
                self._follow(0, position, position, text, seen, current)
            elif not current:
                break
            states = []
            character = text[position : position + 1]
            for state, began in current:
                kind, test, _ = self.program[state]
                if kind == _MATCH:
                    best = (began, position)
                    break
                if character and test(character):  # type: ignore[operator]
                    states.append((state + 1, began))
        return best

    def _follow(
        self, state: int, began: int, position: int, text: str, seen: bytearray, found: list[tuple[int, int]]
    ) -> None:
        """Adds the states that wait for a character, and the end, in order of preference."""
        pending = [state]
        while pending:
            state = pending.pop()
            if seen[state]:
                continue
            seen[state] = 1
            kind, one, other = self.program[state]
            if kind == _SPLIT:
                pending += (other, one)  # type: ignore[arg-type]
            elif kind == _JUMP:
                pending.append(other)
            elif kind == _ASSERT:
                if one.match(text, position):  # type: ignore[attr-defined]
                    pending.append(state + 1)
            else:
                found.append((state, began))


class _Test:
    """Whether a character is one of a class; remembers its answers."""

    __slots__ = ("_answers", "_compiled")
    _MAX_ANSWERS = 1024

    def __init__(self, chars: Chars) -> None:
        self._compiled = re.compile(_class(chars), re.IGNORECASE if chars.ignore_case else 0)
        self._answers: dict[str, bool] = {}

    def __call__(self, character: str) -> bool:
        answer = self._answers.get(character)
        if answer is None:
            answer = self._compiled.match(character) is not None
            if len(self._answers) < self._MAX_ANSWERS:
                self._answers[character] = answer
        return answer
