"""Findings as SARIF 2.1.0, which code-scanning services read. A finding has the line of its field, if a file has it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from situate import __version__
from situate.cli.commands.check.rules import RULES, Finding, Severity

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
LARGEST_BYTES: Final = 1 << 20
"""Of a file in which to look for lines: a manifest that somebody edits is smaller, and nobody edits a dump."""
FIRST_LINE: Final = 1
STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def sarif(found: Sequence[Finding]) -> dict[str, Any]:
    rules = [
        {
            "id": rule.code,
            "shortDescription": {"text": rule.title},
            "defaultConfiguration": {"level": LEVELS[rule.severity]},
        }
        for rule in RULES
    ]
    places = {rule.code: at for at, rule in enumerate(RULES)}
    driver = {"name": "situate", "semanticVersion": __version__, "rules": rules}
    results = [
        {
            "ruleId": one.rule.code,
            "ruleIndex": places[one.rule.code],
            "level": LEVELS[one.rule.severity],
            "message": {"text": f"{one.subject}: {one.problem}. To fix it: {one.change}."},
            "locations": [_location(one)],
            "partialFingerprints": {"finding/v1": f"{one.rule.code} {one.subject} {one.field}"},
        }
        for one in found
    ]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _location(one: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": f"{one.subject} {one.field}"}]}
    path = Path(one.file)
    if one.file and path.is_file():
        location["physicalLocation"] = {
            "artifactLocation": {"uri": path.as_posix()},
            "region": {"startLine": _line(path, one.subject, one.field)},
        }
    return location


def _line(path: Path, subject: str, field: str) -> int:
    """Where the field is, or the nearest part above it that the file has."""
    kind, _, name = subject.rpartition(" ")
    node = _objects(path).get((kind, name.rpartition("/")[2]))
    if node is None:
        return FIRST_LINE
    line = node.start_mark.line
    for key, index in STEP.findall(field):
        if key and isinstance(node, yaml.MappingNode):
            node, line = next(
                ((value, at.start_mark.line) for at, value in node.value if at.value == key), (None, line)
            )
        elif index and isinstance(node, yaml.SequenceNode):
            node = _item(node, index)
            line = node.start_mark.line if node is not None else line
        if node is None:
            break
    return int(line) + FIRST_LINE


def _item(node: yaml.SequenceNode, index: str) -> yaml.Node | None:
    """By its place, or by its name."""
    if index.isdecimal():
        return node.value[int(index)] if int(index) < len(node.value) else None
    return next((item for item in node.value if _text(item, "name") == index), None)


@cache
def _objects(path: Path) -> Mapping[tuple[str, str], yaml.Node]:
    """The objects of a file by kind and name. It was read before, so its depth and its aliases are within limits."""
    if path.stat().st_size > LARGEST_BYTES:
        return {}
    found: dict[tuple[str, str], yaml.Node] = {}
    try:
        documents = list(yaml.compose_all(path.read_text(), Loader=yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}
    for document in documents:
        for node in (document, *_items(document)):
            kind, name = _text(node, "kind"), _text(_value(node, "metadata"), "name")
            if kind and name:
                found.setdefault((kind, name), node)
    return found


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    items = _value(node, "items")
    return list(items.value) if isinstance(items, yaml.SequenceNode) else []


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for at, value in node.value if at.value == key), None)


def _text(node: yaml.Node | None, key: str) -> str:
    value = _value(node, key)
    return str(value.value) if isinstance(value, yaml.ScalarNode) else ""
