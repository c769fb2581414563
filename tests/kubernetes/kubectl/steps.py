"""What is said to kubectl, as data: a step is one command, a script is steps in order in a namespace of their own.

Scripts are the files in scripts/, and say

    - says: what this step is about
      run: what is typed after `kubectl`, with a shell's quotes
      given: what kubectl reads, if anything: text, or manifests/ by name, with words of them exchanged
      env: {NAME: value}
      exits: 1, if it must fail
      compare: which part of the output must be the same on both servers
      because: why that is not all of it

Without `compare`, everything is compared: exit code, output and complaints.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent

View = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Step:
    """One run of kubectl."""

    says: str
    command: str
    stdin: str
    env: Mapping[str, str]
    code: int
    view: View
    because: str


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    steps: tuple[Step, ...] = field(repr=False)

    @property
    def namespace(self) -> str:
        return f"kubectl-{self.name}"


def scripts() -> list[Script]:
    return [Script(path.stem, _steps(path)) for path in sorted((HERE / "scripts").glob("*.yaml"))]


def _steps(path: Path) -> tuple[Step, ...]:
    return tuple(
        Step(
            one["says"],
            one["run"],
            _given(one.get("given", "")),
            one.get("env", {}),
            one.get("exits", 0),
            _view(one["compare"]) if "compare" in one else whole,
            one.get("because", ""),
        )
        for one in yaml.safe_load(path.read_text())
    )


def manifest(name: str, exchanged: Mapping[str, str] | None = None) -> str:
    """One of manifests/, with these words in place of those."""
    text = (HERE / "manifests" / f"{name}.yaml").read_text()
    for old, new in (exchanged or {}).items():
        if old not in text:
            raise ValueError(f"there is no {old!r} in {name}.yaml")
        text = text.replace(old, new)
    return text


def _given(given: Any) -> str:
    if isinstance(given, str) and (not given or "\n" in given):
        return given
    if isinstance(given, str):
        return manifest(given)
    texts = [manifest(one) if isinstance(one, str) else manifest(*next(iter(one.items()))) for one in given]
    return "---\n".join(texts)


# ── parts of an output ──────────────────────────────────────────────────────────────────────────────────────────────


def whole(text: str) -> str:
    return text


def _view(named: Any) -> View:
    if isinstance(named, str):
        return PLAIN[named]
    name, argument = next(iter(named.items()))
    return WITH_ARGUMENT[name](argument)


def _nothing(_: str) -> str:
    return ""


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _sorted_lines(text: str) -> str:
    return "\n".join(sorted(text.splitlines()))


def _as_json(text: str) -> str:
    """The same document, however its fields are ordered."""
    try:
        return json.dumps(json.loads(text), indent=1, sort_keys=True)
    except ValueError:
        return text


def _fields(text: str) -> str:
    """Of `kubectl explain`: names, types and values, not what is said about them."""
    signs = ("\t<", "  enum: ", "GROUP: ", "KIND: ", "VERSION: ")
    return "\n".join(line.rstrip() for line in text.splitlines() if any(sign in line for sign in signs))


def _lines_of(beginnings: list[str]) -> View:
    return lambda text: "\n".join(line for line in text.splitlines() if line.startswith(tuple(beginnings)))


def _without(parts: list[str]) -> View:
    return lambda text: "\n".join(line for line in text.splitlines() if not any(part in line for part in parts))


def _beginning(length: int) -> View:
    return lambda text: text[:length]


PLAIN: Mapping[str, View] = {
    "exit code": _nothing,
    "first line": _first_line,
    "sorted lines": _sorted_lines,
    "JSON": _as_json,
    "fields": _fields,
}
WITH_ARGUMENT: Mapping[str, Callable[[Any], View]] = {
    "lines of": _lines_of,
    "without": _without,
    "beginning": _beginning,
}
