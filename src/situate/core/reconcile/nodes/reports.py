"""Which report of a node's agent is newer, and whose counts. Pure.

An agent takes its node's lease when it begins, in a term of its own (`leaseTransitions`). All that it reports has the
term and a number that grows. So what is late, doubled, out of order, or from an agent that was replaced is known to be.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["ACKNOWLEDGED", "REPORT", "AgentReport", "parse_report", "stale_reason"]

REPORT: Final = "situate.dev/report"
"""Annotation of a pod or a node: the report of its agent that its status is from."""
ACKNOWLEDGED: Final = "situate.dev/snapshot-version"
"""Annotation of a node's lease: the version of the node's snapshot that its agent has taken over."""

_TEXT: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})", re.ASCII)


class AgentReport(NamedTuple):
    term: int
    number: int

    def __str__(self) -> str:
        return f"{self.term}.{self.number}"

    def next(self) -> AgentReport:
        return AgentReport(self.term, self.number + 1)


def parse_report(text: str | None) -> AgentReport | None:
    """None for what is none."""
    found = _TEXT.fullmatch(text or "")
    return None if found is None else AgentReport(int(found[1]), int(found[2]))


def stale_reason(said: str, held: str | None, term: int | None) -> str:
    """Why a report must not be taken, in words; "" if it may. `term`: of the node's lease; None: there is none.

    The lease says whose reports count: if it was lost and begun anew, its terms may be lower than those before.
    """
    report, before = parse_report(said), parse_report(held)
    if report is None:
        return f"{said!r} is no report: it must be a term and a number, as 3.17"
    if term is not None and report.term != term:
        return f"report {report} is stale: the node's lease is in term {term}"
    if before is None or (term is not None and before.term != term) or report > before:
        return ""
    return f"report {report} is stale: {before} was taken already"
