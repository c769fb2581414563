"""The order of an agent's reports. Pure.

An agent takes its node's lease in a new term (`leaseTransitions`). Every report has the term and an increasing number.
So late, repeated and reordered reports, and those of a replaced agent, are recognized.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

REPORT: Final = "situate.dev/report"
"""Annotation of a pod or node: the report of its agent that wrote the status."""
ACKNOWLEDGED: Final = "situate.dev/snapshot-version"
"""Annotation of a node's lease: the snapshot version that its agent has saved."""

_TEXT: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})", re.ASCII)


class AgentReport(NamedTuple):
    term: int
    number: int

    def __str__(self) -> str:
        return f"{self.term}.{self.number}"

    def next(self) -> AgentReport:
        return AgentReport(self.term, self.number + 1)


def parse_report(text: str | None) -> AgentReport | None:
    """None if the text is not a report."""
    found = _TEXT.fullmatch(text or "")
    return None if found is None else AgentReport(int(found[1]), int(found[2]))


def repeated_reason(said: str) -> str:
    """Why a report of the stored number must be rejected that would change what is stored."""
    return f"report {said} was taken already, and this one differs from what is stored"


def stale_reason(said: str, held: str | None, term: int | None) -> str:
    """Why a report must be rejected; "" if it is current. `term`: of the node's lease; None: there is none.

    The lease decides whose reports count: if it was deleted and created again, its terms may be lower than before.
    """
    report, before = parse_report(said), parse_report(held)
    if report is None:
        return f"{said!r} is no report: it must be a term and a number, as 3.17"
    if term is not None and report.term != term:
        return f"report {report} is stale: the node's lease is in term {term}"
    if before is None or (term is not None and before.term != term) or report > before:
        return ""
    return f"report {report} is stale: {before} was taken already"
