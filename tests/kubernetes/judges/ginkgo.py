"""Reads the reports of Ginkgo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubernetes.judges.common import Outcome

MAX_REASON = 300


def read_report(path: Path, prefix: str = "") -> Outcome:
    """Empty if the suite has left no report."""
    outcome = Outcome()
    if not path.exists():
        return outcome
    for suite in json.loads(path.read_text()):
        for spec in suite.get("SpecReports") or []:
            _add(outcome, spec, prefix)
    return outcome


def _add(outcome: Outcome, spec: dict[str, Any], prefix: str) -> None:
    name = " ".join([*(spec.get("ContainerHierarchyTexts") or []), spec.get("LeafNodeText", "")])
    kind, state = spec.get("LeafNodeType"), spec["State"]
    if kind != "It":
        if state not in ("passed", "skipped"):
            outcome.failed[f"{prefix}{kind} {name}".strip()] = _reason(spec)
    elif state == "passed":
        outcome.passed.add(prefix + name)
    elif state in ("skipped", "pending"):
        if state == "pending" or spec.get("Failure"):  # without a failure, it was not chosen, or not reached
            outcome.skipped.add(prefix + name)
    else:
        outcome.failed[prefix + name] = _reason(spec)


def _reason(spec: dict[str, Any]) -> str:
    return " ".join(str(spec.get("Failure", {}).get("Message", "")).split())[:MAX_REASON]
