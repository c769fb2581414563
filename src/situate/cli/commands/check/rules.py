"""What a check finds: a stable code, how bad it is, where it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final


@unique
class Severity(IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Rule:
    """A code is never given to another rule, so that a pipeline may go on ignoring it."""

    code: str
    severity: Severity
    title: str


NO_REQUESTS: Final = Rule("SIT001", Severity.WARNING, "a container asks for no cpu or no memory")
NO_LIMITS: Final = Rule("SIT002", Severity.WARNING, "a container has no memory limit")
TOO_LARGE: Final = Rule("SIT003", Severity.ERROR, "no node could ever give what is asked for")
NODE_NAME: Final = Rule("SIT004", Severity.WARNING, "nodeName is set by hand")
TOGETHER: Final = Rule("SIT005", Severity.WARNING, "nothing keeps several replicas apart")
ONE_NODE: Final = Rule("SIT006", Severity.WARNING, "only one node satisfies what is required of nodes")
IMPOSSIBLE: Final = Rule("SIT007", Severity.ERROR, "a required affinity cannot be satisfied")
NO_DRAIN: Final = Rule("SIT008", Severity.ERROR, "a disruption budget blocks every drain")
NO_SPREAD: Final = Rule("SIT009", Severity.ERROR, "a spread constraint cannot hold")
NO_PRIORITY: Final = Rule("SIT010", Severity.ERROR, "the priority class is not there")
NOWHERE: Final = Rule("SIT011", Severity.ERROR, "no node would take it, even if all were empty")

RULES: Final = (
    NO_REQUESTS, NO_LIMITS, TOO_LARGE, NODE_NAME, TOGETHER, ONE_NODE, IMPOSSIBLE, NO_DRAIN, NO_SPREAD, NO_PRIORITY,
    NOWHERE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    subject: str
    """The object: `Deployment shop/web`."""
    file: str
    field: str
    problem: str
    change: str
