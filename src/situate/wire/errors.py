"""Errors of input, in one line: file, object, field, what is wrong.

Readers raise only InputError for invalid bytes. To show it, use `str(error)`.
"""

import re
from collections.abc import Mapping

MAX_LINE = 1_000  # characters; hostile input must not fill the screen
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
"""What a 409 says when other writers changed the object while a request was being applied."""
_CONFLICT = 409

# Line breaks of every kind, and other control characters of terminals.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_DECODER_MESSAGE = re.compile(r"(?P<text>.*?) - at `(?P<path>[^`]*)`", re.DOTALL)
_TYPE_MISMATCH = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`")
_OUT_OF_RANGE = re.compile(r"Expected `int` (?P<bound>[<>]= -?[0-9]+)")
_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_QUANTITY = {"str", "int", "float"}


def is_modified(status: int, message: str) -> bool:
    """Whether an API error says that other writers changed the object meanwhile: the same request may succeed."""
    return status == _CONFLICT and MODIFIED in message


class InputError(ValueError):
    """What is wrong with the input. `str()` is the one line for people; the parts are for programs."""

    def __init__(self, problem: str, *, file: str = "", subject: str = "", path: str = "") -> None:
        super().__init__(problem, file, subject, path)
        self.file = file
        self.subject = subject
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        parts = (self.file, self.subject, self.path, self.problem)
        line = _CONTROL.sub(" ", ": ".join(part for part in parts if part))
        return line if len(line) <= MAX_LINE else line[:MAX_LINE] + "..."


def from_decoder(message: str, value: object) -> tuple[str, str]:
    """The error of a decoder about `value`, as (field path, what is wrong).

    The decoder does not say which key of a mapping it stumbled over; `value`, the object it was given, tells.
    """
    found = _DECODER_MESSAGE.fullmatch(message)
    text, path = (found["text"], found["path"]) if found else (message, "$")
    mismatch = _TYPE_MISMATCH.fullmatch(text)
    if mismatch is not None:
        wanted, got = mismatch["wanted"], mismatch["got"]
        if path.endswith("[...]"):
            path = _with_key(path, got, value)
        text = f"expected {_in_words(wanted)}, got {_in_words(got)}"
    elif (bounded := _OUT_OF_RANGE.fullmatch(text)) is not None:
        text = f"expected an integer {bounded['bound']}"
    path = path.removesuffix("[...]")
    return path.removeprefix("$").removeprefix("."), text


def _in_words(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null"] or ["null"]
    if set(names) == _QUANTITY:
        return "a quantity (a string or a number)"
    return " or ".join(_WORDS.get(name, name) for name in names)


def _with_key(path: str, got: str, value: object) -> str:
    """Replace the decoder's `[...]` by the key of the first entry of the wrong type."""
    parent = path.removesuffix("[...]")
    for step in re.findall(r"\.([^.\[]+)|\[([0-9]+)\]", parent):
        name, index = step
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if _type_name(entry) == got:
                return f"{parent}[{key}]"
    return parent


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "object"
    return "array" if isinstance(value, list) else type(value).__name__
