"""Semantic versions in expressions: `semver("1.2.3").isLessThan(...)`."""

import re
from dataclasses import dataclass
from typing import Any, Final

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.formatting import go_quote
from situate.core.cel.functions import Function, Library, member, overload
from situate.core.cel.libraries.quantity import parse_cost
from situate.core.cel.meter import one
from situate.core.cel.types import BOOL, INT, STRING, struct
from situate.core.cel.values import INT64_MAX, UINT64_MAX, ExtensionValue, Value

SEMVER: Final = struct("kubernetes.Semver")

_DIGITS = re.compile(r"[0-9]*", re.ASCII)
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]*", re.ASCII)


class SemverError(ValueError):
    """Not a semantic version; the message is that of the Go package blang/semver."""


@dataclass(frozen=True, slots=True)
class ParsedVersion:
    numbers: tuple[int, int, int]
    pre_release: tuple[tuple[int, int, str], ...]  # (0, number, "") sorts before (1, 0, text)
    text: str

    def compare(self, other: "ParsedVersion") -> int:
        if self.numbers != other.numbers:
            return 1 if self.numbers > other.numbers else -1
        if self.pre_release == other.pre_release:
            return 0
        if not self.pre_release or not other.pre_release:
            return -1 if self.pre_release else 1
        return 1 if self.pre_release > other.pre_release else -1


class Semver(ExtensionValue):
    __slots__ = ("version",)
    type_name = "kubernetes.Semver"
    unhashable = "cel.Semver"

    def __init__(self, version: ParsedVersion) -> None:
        self.version = version

    @property
    def go_native(self) -> str:
        return f"(semver.Version){self.version.text}"

    def equal(self, other: Value) -> Value:
        if not isinstance(other, Semver):
            return no_such_overload()
        return self.version.compare(other.version) == 0


def parse_semver(text: str) -> ParsedVersion:
    """Raises SemverError."""
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major, minor = _number("major", parts[0]), _number("minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch_text, minus, pre_release = rest.partition("-")
    patch = _number("patch", patch_text)
    identifiers = tuple(_pre_release(part) for part in pre_release.split(".")) if minus else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise SemverError("Build meta data is empty")
        if not _IDENTIFIER.fullmatch(part):
            raise SemverError(f"Invalid character(s) found in build meta data {go_quote(part)}")
    return ParsedVersion((major, minor, patch), identifiers, text)


def _number(which: str, text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in {which} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f"{which.capitalize()} number must not contain leading zeroes {go_quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT64_MAX:
        raise SemverError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    return int(text)


def _pre_release(text: str) -> tuple[int, int, str]:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}")
        return 0, _unsigned(text), ""
    if not _IDENTIFIER.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return 1, 0, text


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part.encode()) > 1:
            short = part.lstrip("0")
            parts[index] = short if short and short[0] in "0123456789" else "0" + short
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _semver(text: str, normalize: bool = False) -> Any:
    try:
        return Semver(parse_semver(_normalized(text) if normalize else text))
    except SemverError as error:
        return ErrorValue(str(error))


def _is_semver(text: str, normalize: bool = False) -> bool:
    return isinstance(_semver(text, normalize), Semver)


def _part(index: int) -> Any:
    def part(semver: Semver) -> int:
        number = semver.version.numbers[index]
        return number if number <= INT64_MAX else number - 2**64

    return part


def _compare(left: Semver, right: Semver) -> int:
    return left.version.compare(right.version)


_TWO = (SEMVER, SEMVER)
LIBRARY = Library(
    (
        Function(
            "semver",
            (
                overload("string_to_semver", (STRING,), SEMVER, _semver),
                overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _semver),
            ),
            cost=parse_cost,
        ),
        Function(
            "isSemver",
            (
                overload("is_semver_string", (STRING,), BOOL, _is_semver),
                overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
            ),
            cost=parse_cost,
        ),
        Function(
            "isGreaterThan",
            (member("semver_is_greater_than", _TWO, BOOL, lambda one, other: _compare(one, other) == 1),),
        ),
        Function(
            "isLessThan",
            (member("semver_is_less_than", _TWO, BOOL, lambda one, other: _compare(one, other) == -1),),
        ),
        Function("compareTo", (member("semver_compare_to", _TWO, INT, _compare),)),
        Function("major", (member("semver_major", (SEMVER,), INT, _part(0)),), cost=one),
        Function("minor", (member("semver_minor", (SEMVER,), INT, _part(1)),), cost=one),
        Function("patch", (member("semver_patch", (SEMVER,), INT, _part(2)),), cost=one),
    )
)
