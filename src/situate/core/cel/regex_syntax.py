"""RE2's syntax of regular expressions, with the messages of Go's regexp/syntax."""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final
from unicodedata import category

MAX_REPEAT: Final = 1000
MAX_DEPTH: Final = 1000


class RegexError(ValueError):
    """Not a regular expression; the message is Go's."""


def _wrong(code: str, text: str) -> RegexError:
    return RegexError(f"error parsing regexp: {code}: `{text}`")


@dataclass(frozen=True, slots=True)
class Chars:
    """One character; `pattern` is what Python's re calls it."""

    pattern: str
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Assertion:
    """A position: `pattern` is what Python's re calls it."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: "tuple[Pattern, ...]"


@dataclass(frozen=True, slots=True)
class Choice:
    options: "tuple[Pattern, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    part: "Pattern"
    low: int
    high: int | None
    greedy: bool


Pattern = Chars | Assertion | Sequence | Choice | Repeat

BEGIN, END = Assertion(r"\A"), Assertion(r"\Z")
BEGIN_LINE, END_LINE = Assertion("(?m:^)"), Assertion("(?m:$)")
WORD, NO_WORD = Assertion(r"(?a:\b)"), Assertion(r"(?a:\B)")

_PERL = {"d": "0-9", "s": r"\t\n\f\r ", "w": "0-9A-Za-z_"}
_PERL_NOT = {
    "D": r"\x00-/:-\U0010ffff", "S": r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
    "W": r"\x00-/:-@\[-\^`\{-\U0010ffff",
}  # fmt: skip
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`\{-~", "space": r"\t-\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}", re.ASCII)
_NAME = re.compile(r"\w+", re.ASCII)
_CATEGORIES = frozenset(
    (
        "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe",
        "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "C", "Cc", "Cf", "Co", "Cs",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    multi_line: bool = False
    dot_newline: bool = False
    lazy: bool = False


@dataclass(slots=True)
class _Group:
    flags: _Flags
    options: list[Pattern] = field(default_factory=list)
    parts: list[Pattern] = field(default_factory=list)

    def close(self) -> Pattern:
        last = Sequence(tuple(self.parts))
        return Choice((*self.options, last)) if self.options else last


def parse_regex(text: str) -> Pattern:
    """Raises RegexError."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = [_Group(_Flags())]
        self.flags = _Flags()

    def parse(self) -> Pattern:
        last_repeat: int | None = None
        while self.at < len(self.text):
            start = self.at
            repeated = self._step(last_repeat)
            last_repeat = start if repeated else None
        if len(self.groups) != 1:
            raise _wrong("missing closing )", self.text)
        return self.groups[0].close()

    def _step(self, last_repeat: int | None) -> bool:
        """Reads one element; whether it repeated the one before."""
        group, character = self.groups[-1], self.text[self.at]
        match character:
            case "(":
                self._open()
            case "|":
                group.options.append(Sequence(tuple(group.parts)))
                group.parts = []
                self.at += 1
            case ")":
                self._close()
            case "^" | "$" | ".":
                group.parts.append(self._symbol(character))
                self.at += 1
            case "[":
                group.parts.append(self._class())
            case "*" | "+" | "?":
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
                self._repeat(low, high, 1, last_repeat)
                return True
            case "{":
                return self._counted(last_repeat)
            case "\\":
                self._escape()
            case _:
                self._literal(character)
                self.at += 1
        return False

    def _symbol(self, character: str) -> Pattern:
        if character == ".":
            return Chars("(?s:.)" if self.flags.dot_newline else r"[^\n]")
        if character == "^":
            return BEGIN_LINE if self.flags.multi_line else BEGIN
        return END_LINE if self.flags.multi_line else END

    def _literal(self, character: str) -> None:
        self.groups[-1].parts.append(Chars(_char(ord(character)), self.flags.fold))

    def _open(self) -> None:
        if self.text.startswith("(?", self.at):
            self._perl_group()
            return
        self.at += 1
        self._push(self.flags)

    def _push(self, flags: _Flags) -> None:
        if len(self.groups) > MAX_DEPTH:
            raise _wrong("expression nests too deeply", self.text)
        self.groups.append(_Group(flags))

    def _close(self) -> None:
        if len(self.groups) < 2:
            raise _wrong("unexpected )", self.text)
        group = self.groups.pop()
        self.flags = group.flags
        self.groups[-1].parts.append(group.close())
        self.at += 1

    def _perl_group(self) -> None:
        rest = self.text[self.at :]
        named = 4 if len(rest) > 4 and rest[2:4] == "P<" else 3 if len(rest) > 3 and rest[2] == "<" else 0
        if named:
            end = rest.find(">")
            if end < 0:
                raise _wrong("invalid named capture", rest)
            if not _NAME.fullmatch(rest[named:end]):
                raise _wrong("invalid named capture", rest[: end + 1])
            self.at += end + 1
            self._push(self.flags)
            return
        self._flag_group(rest)

    def _flag_group(self, rest: str) -> None:
        flags, value, saw_flag = self.flags, True, False
        position = 2
        while position < len(rest):
            character = rest[position]
            position += 1
            if character in "imsU":
                name = {"i": "fold", "m": "multi_line", "s": "dot_newline", "U": "lazy"}[character]
                flags = replace(flags, **{name: value})
                saw_flag = True
            elif character == "-" and value:
                value, saw_flag = False, False
            elif character in ":)" and (value or saw_flag):
                self.at += position
                if character == ":":
                    self._push(self.flags)
                self.flags = flags
                return
            else:
                break
        raise _wrong("invalid or unsupported Perl syntax", rest[:position])

    def _counted(self, last_repeat: int | None) -> bool:
        found = _REPEAT.match(self.text, self.at)
        if found is None:
            self._literal("{")
            self.at += 1
            return False
        low = int(found[1][:9])
        high = low if found[2] is None else None if found[3] is None else int(found[3][:9])
        if low > MAX_REPEAT or (high is not None and (high > MAX_REPEAT or low > high)):
            raise _wrong("invalid repeat count", found.group())
        self._repeat(low, high, len(found.group()), last_repeat)
        return True

    def _repeat(self, low: int, high: int | None, length: int, last_repeat: int | None) -> None:
        start = self.at
        self.at += length
        greedy = not self.flags.lazy
        if self.text.startswith("?", self.at):
            self.at += 1
            greedy = not greedy
        if last_repeat is not None:
            raise _wrong("invalid nested repetition operator", self.text[last_repeat : self.at])
        parts = self.groups[-1].parts
        if not parts:
            raise _wrong("missing argument to repetition operator", self.text[start : self.at])
        parts[-1] = Repeat(parts[-1], low, high, greedy)
        if self.text[start] == "{" and (low >= 2 or (high or 0) >= 2) and not _fits(parts[-1], MAX_REPEAT):
            raise _wrong("invalid repeat count", self.text[start : self.at])

    def _escape(self) -> None:
        text, at, parts = self.text, self.at, self.groups[-1].parts
        kind = text[at + 1 : at + 2]
        simple = {"A": BEGIN, "b": WORD, "B": NO_WORD, "z": END}.get(kind)
        if simple is not None:
            parts.append(simple)
            self.at += 2
        elif kind == "C":
            raise _wrong("invalid escape sequence", text[at : at + 2])
        elif kind == "Q":
            literal, _, _ = text[at + 2 :].partition(r"\E")
            for character in literal:
                self._literal(character)
            self.at = min(len(text), at + 2 + len(literal) + 2)
        elif (found := self._class_escape()) is not None:
            parts.append(Chars(f"[{found}]", self.flags.fold))
        else:
            parts.append(Chars(_char(self._character_escape()), self.flags.fold))

    def _class_escape(self) -> str | None:
        """`\\d`, `\\pL` and their like, as what stands in brackets."""
        kind = self.text[self.at + 1 : self.at + 2]
        if kind and kind in "pP":
            return self._unicode_class(kind)
        if (found := _PERL.get(kind) or _PERL_NOT.get(kind)) is not None:
            self.at += 2
            return found
        return None

    def _unicode_class(self, kind: str) -> str:
        rest = self.text[self.at :]
        if rest[2:3] == "{":
            end = rest.find("}")
            if end < 0:
                raise _wrong("invalid character class range", rest)
            sequence, name = rest[: end + 1], rest[3:end]
        else:
            sequence, name = rest[:3], rest[2:3]
        negated = (kind == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name != "Any" and name not in _CATEGORIES:
            raise _wrong("invalid character class range", sequence)
        self.at += len(sequence)
        return _unicode_ranges(name, negated)

    def _character_escape(self) -> int:
        text, at = self.text, self.at
        kind = text[at + 1 : at + 2]
        if not kind:
            raise _wrong("trailing backslash at end of expression", "")
        self.at += 2
        if kind in _CONTROL:
            return _CONTROL[kind]
        if kind in "01234567" and (kind == "0" or text[self.at : self.at + 1] in tuple("01234567")):
            octal = re.compile("[0-7]{1,3}").match(text, at + 1)
            digits = octal.group() if octal else "0"
            self.at = at + 1 + len(digits)
            return int(digits, 8)
        if kind == "x":
            return self._hexadecimal(at)
        if kind.isascii() and not kind.isalnum():
            return ord(kind)
        raise _wrong("invalid escape sequence", text[at : self.at])

    def _hexadecimal(self, at: int) -> int:
        text = self.text
        if text.startswith("{", self.at):
            position, code = self.at + 1, 0
            while position < len(text):
                character = text[position]
                position += 1
                if character == "}":
                    if position - self.at == 2:
                        break
                    self.at = position
                    return code
                if character not in "0123456789abcdefABCDEF":
                    break
                code = code * 16 + int(character, 16)
                if code > 0x10FFFF:
                    break
            raise _wrong("invalid escape sequence", text[at:position])
        digits = text[self.at : self.at + 2]
        if re.fullmatch("[0-9a-fA-F]{2}", digits):
            self.at += 2
            return int(digits, 16)
        if len(digits) == 1:
            raise RegexError("error parsing regexp: invalid UTF-8: ``")
        raise _wrong("invalid escape sequence", text[at : self.at + len(digits)])

    def _class(self) -> Pattern:
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: list[str] = []
        first = True
        while first or not self.text.startswith("]", self.at):
            first = False
            if (named := self._posix_class()) is not None:
                ranges.append(named)
            elif self.text.startswith("\\", self.at) and (found := self._class_escape()) is not None:
                ranges.append(found)
            else:
                ranges.append(self._range(start))
        self.at += 1
        return Chars(f"[{'^' if negated else ''}{''.join(ranges)}]", self.flags.fold)

    def _posix_class(self) -> str | None:
        if not self.text.startswith("[:", self.at) or len(self.text) - self.at <= 2:
            return None
        end = self.text.find(":]", self.at + 2)
        if end < 0:
            return None
        whole = self.text[self.at : end + 2]
        name = whole[2:-2]
        found = _POSIX.get(name.removeprefix("^"))
        if found is None:
            raise _wrong("invalid character class range", whole)
        self.at = end + 2
        return _complement(found) if name.startswith("^") else found

    def _range(self, class_start: int) -> str:
        start = self.at
        low = self._class_character(class_start)
        high = low
        rest = self.text[self.at : self.at + 2]
        if len(rest) == 2 and rest[0] == "-" and rest[1] != "]":
            self.at += 1
            high = self._class_character(class_start)
            if high < low:
                raise _wrong("invalid character class range", self.text[start : self.at])
        return f"{_char(low)}-{_char(high)}"

    def _class_character(self, class_start: int) -> int:
        if self.at >= len(self.text):
            raise _wrong("missing closing ]", self.text[class_start:])
        if self.text[self.at] == "\\":
            return self._character_escape()
        self.at += 1
        return ord(self.text[self.at - 1])


def _char(code: int) -> str:
    return f"\\U{code:08x}"


def _fits(pattern: Pattern, budget: int) -> bool:
    """Whether nested counts multiply to no more than the budget."""
    match pattern:
        case Repeat():
            count = pattern.high if pattern.high is not None else pattern.low
            if (pattern.low, pattern.high) in ((0, None), (1, None), (0, 1)):
                return _fits(pattern.part, budget)
            if pattern.high == 0:
                return True
            if count > budget:
                return False
            return _fits(pattern.part, budget // count if count else budget)
        case Sequence():
            return all(_fits(part, budget) for part in pattern.parts)
        case Choice():
            return all(_fits(option, budget) for option in pattern.options)
    return True


@cache
def _complement(ranges: str) -> str:
    compiled = re.compile(f"[{ranges}]")
    return _ranges([not compiled.match(chr(code)) for code in range(0x80)]) + r"\x80-\U0010ffff"


@cache
def _unicode_ranges(name: str, negated: bool) -> str:
    if name == "Any":
        return r"\x00-\U0010ffff" if not negated else ""
    return _ranges([category(chr(code)).startswith(name) != negated for code in range(0x110000)])


def _ranges(members: list[bool]) -> str:
    found: list[str] = []
    start: int | None = None
    for code, member in enumerate([*members, False]):
        if member and start is None:
            start = code
        elif not member and start is not None:
            found.append(f"{_char(start)}-{_char(code - 1)}")
            start = None
    return "".join(found)
