"""The rules of `situate check`, each with a stable code; and a finding: where it is, and what to do about it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final

from situate.cli.input.workloads import PodWorkload


@unique
class Severity(IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A code is never reused for another rule, because pipelines ignore rules by code."""

    code: str
    severity: Severity
    title: str


NO_REQUESTS: Final = CheckRule("SIT001", Severity.WARNING, "a container requests no cpu or no memory")
NO_LIMITS: Final = CheckRule("SIT002", Severity.WARNING, "a container has no memory limit")
TOO_LARGE: Final = CheckRule("SIT003", Severity.ERROR, "no node is large enough for the requests")
NODE_NAME: Final = CheckRule("SIT004", Severity.WARNING, "nodeName is set by hand")
TOGETHER: Final = CheckRule("SIT005", Severity.WARNING, "nothing spreads the replicas")
ONE_NODE: Final = CheckRule("SIT006", Severity.WARNING, "only one node satisfies the node requirements")
IMPOSSIBLE: Final = CheckRule("SIT007", Severity.ERROR, "a required affinity cannot be satisfied")
NO_DRAIN: Final = CheckRule("SIT008", Severity.ERROR, "a disruption budget blocks every drain")
NO_SPREAD: Final = CheckRule("SIT009", Severity.ERROR, "a spread constraint cannot be satisfied")
NO_PRIORITY: Final = CheckRule("SIT010", Severity.ERROR, "the priority class does not exist")
NOWHERE: Final = CheckRule("SIT011", Severity.ERROR, "no node accepts it, even if all are empty")
NO_CLAIM: Final = CheckRule("SIT012", Severity.ERROR, "a claim for devices, or its template, does not exist")
NO_DEVICE_CLASS: Final = CheckRule("SIT013", Severity.ERROR, "a device class does not exist")
BAD_SELECTOR: Final = CheckRule("SIT014", Severity.ERROR, "a selector of devices does not compile")
FAILING_SELECTOR: Final = CheckRule("SIT015", Severity.ERROR, "a selector of devices fails on devices")
NO_DEVICES: Final = CheckRule("SIT016", Severity.ERROR, "no node can satisfy a claim for devices, even if all are free")
TWO_CLASSES: Final = CheckRule("SIT017", Severity.WARNING, "two device classes serve one extended resource")

RULES: Final = (
    NO_REQUESTS, NO_LIMITS, TOO_LARGE, NODE_NAME, TOGETHER, ONE_NODE, IMPOSSIBLE, NO_DRAIN, NO_SPREAD, NO_PRIORITY,
    NOWHERE, NO_CLAIM, NO_DEVICE_CLASS, BAD_SELECTOR, FAILING_SELECTOR, NO_DEVICES, TWO_CLASSES,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    rule: CheckRule
    subject: str
    """The object: `Deployment shop/web`."""
    file: str
    field: str
    problem: str
    change: str


Row = tuple[CheckRule, str, str, str]
"""Of one workload: the rule, the field within the pod's spec, the problem and the change."""


def findings(one: PodWorkload, rows: Iterable[Row]) -> Iterator[Finding]:
    for rule, field, problem, change in rows:
        yield Finding(rule, one.subject, one.file, f"{one.path}.{field}", problem, change)
