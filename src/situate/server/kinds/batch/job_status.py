"""The status of a Job: which states a controller may not write.

A rule applies only when its field changes, so that an old mistake does not block other changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from situate.core.model.timestamp import TimestampError, epoch_ms
from situate.server.kinds.batch.indexes import IndexesError, count_indexes, overlap
from situate.server.kinds.batch.job_spec import INDEXED
from situate.server.kinds.conditions import is_true
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import IMMUTABLE, Causes
from situate.server.objects import Object

COMPLETE, FAILED = "Complete", "Failed"
FAILURE_TARGET, CRITERIA_MET = "FailureTarget", "SuccessCriteriaMet"
_STATUS: Final = FieldChecks("batch.v1.JobStatus")
_AT: Final = "status.conditions"


@dataclass(frozen=True, slots=True)
class _Change:
    """Before and after."""

    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    was: Mapping[str, Any]

    def has(self, kind: str) -> bool:
        return is_true(self.status.get("conditions", ()), kind)

    def had(self, kind: str) -> bool:
        return is_true(self.was.get("conditions", ()), kind)

    def turned(self, *kinds: str) -> bool:
        return any(self.has(kind) != self.had(kind) for kind in kinds)

    def changed(self, *names: str) -> bool:
        return any(self.status.get(name) != self.was.get(name) for name in names)

    @property
    def finished(self) -> bool:
        return self.has(COMPLETE) or self.has(FAILED)

    @property
    def just_finished(self) -> bool:
        return self.finished != (self.had(COMPLETE) or self.had(FAILED))

    @property
    def indexed(self) -> bool:
        return bool(self.spec.get("completionMode") == INDEXED)


def validate_status(new: Object, old: Object, causes: Causes) -> None:
    change = _Change(new.get("spec", {}), new.get("status", {}), old.get("status", {}))
    _STATUS.check(change.status, "status", causes, "active succeeded failed ready terminating")
    rules: tuple[Callable[[_Change, Causes], None], ...] = (
        _uncounted,
        _endings,
        _times,
        _reasons,
        _leftovers,
        _indexes,
        _pods,
        _criteria,
        _no_way_back,
    )
    for rule in rules:
        rule(change, causes)


def _uncounted(change: _Change, causes: Causes) -> None:
    held = change.status.get("uncountedTerminatedPods", {})
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(held.get(name, ())):
            at = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                causes.invalid(at, uid, "must not be empty")
            elif uid in seen:
                causes.duplicate(at, uid)
            seen.add(uid)


def _endings(change: _Change, causes: Causes) -> None:
    if change.turned(COMPLETE, FAILED) and change.has(COMPLETE) and change.has(FAILED):
        causes.invalid_struct(_AT, "cannot set Complete=True and Failed=true conditions")
    if change.turned(COMPLETE, FAILURE_TARGET) and change.has(COMPLETE) and change.has(FAILURE_TARGET):
        causes.invalid_struct(_AT, "cannot set Complete=True and FailureTarget=true conditions")


def _times(change: _Change, causes: Causes) -> None:
    end, at = change.status.get("completionTime"), "status.completionTime"
    if change.turned(COMPLETE) or change.changed("completionTime"):
        if end and not change.has(COMPLETE):
            causes.invalid(at, end, "cannot set completionTime when there is no Complete=True condition")
        if not end and change.has(COMPLETE):
            causes.required(at, "completionTime is required for Complete jobs")
    start = change.status.get("startTime")
    if change.changed("startTime", "completionTime") and start and end and _before(end, start):
        causes.invalid(at, end, "must be equal to or after `startTime`")


def _before(one: str, other: str) -> bool:
    try:
        return epoch_ms(one) < epoch_ms(other)
    except TimestampError:
        return False


def _reasons(change: _Change, causes: Causes) -> None:
    looked_at = change.turned(FAILED) or change.changed("failedIndexes")
    if looked_at and change.has(FAILED) and not change.has(FAILURE_TARGET):
        causes.invalid_struct(_AT, "cannot set Failed=True condition without the FailureTarget=true condition")
    if change.turned(COMPLETE, CRITERIA_MET) and change.has(COMPLETE) and not change.has(CRITERIA_MET):
        causes.invalid_struct(_AT, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _leftovers(change: _Change, causes: Causes) -> None:
    """Check what a finished Job may not have."""
    if not change.finished:
        return
    status, spec = change.status, change.spec
    if (change.just_finished or change.changed("active")) and status.get("active", 0) > 0:
        causes.invalid("status.active", status["active"], "active>0 is invalid for finished job")
    never_ran = spec.get("suspend") and spec.get("completions") == 0
    if (change.just_finished or change.changed("startTime")) and not never_ran and not status.get("startTime"):
        causes.required("status.startTime", "startTime is required for finished job")
    held = status.get("uncountedTerminatedPods", {})
    if (change.just_finished or change.changed("uncountedTerminatedPods")) and any(held.values()):
        shown = {"Succeeded": held.get("succeeded"), "Failed": held.get("failed")}
        causes.invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job")


def _indexes(change: _Change, causes: Causes) -> None:
    spec, status = change.spec, change.status
    done, failed, completions = status.get("completedIndexes", ""), status.get("failedIndexes"), spec.get("completions")
    if change.changed("completedIndexes") and completions is not None:
        _readable(done, completions, "completedIndexes", causes)
    per_index = "backoffLimitPerIndex" in spec
    if change.changed("failedIndexes") and completions is not None and per_index and failed is not None:
        _readable(failed, completions, "failedIndexes", causes)
    if change.changed("completedIndexes") and done and not change.indexed:
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        causes.invalid("status.completedIndexes", done, text)
    if change.changed("failedIndexes") and failed is not None and not per_index:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        causes.invalid("status.failedIndexes", failed, text)
    if change.changed("failedIndexes", "completedIndexes") and completions is not None and failed is not None:
        both = overlap(done, failed, completions)
        if both is not None:
            text = f"failedIndexes and completedIndexes overlap at index: {both}"
            causes.invalid("status.failedIndexes", failed, text)


def _readable(text: str, completions: int, name: str, causes: Causes) -> None:
    try:
        count_indexes(text, completions)
    except IndexesError as error:
        causes.invalid(f"status.{name}", text, f"error parsing {name}: {error}")


def _pods(change: _Change, causes: Causes) -> None:
    status = change.status
    ending, ready = status.get("terminating", 0), status.get("ready", 0)
    if (change.just_finished or change.changed("terminating")) and ending > 0 and change.finished:
        causes.invalid("status.terminating", ending, "terminating>0 is invalid for finished job")
    if change.changed("ready", "active") and ready > status.get("active", 0):
        causes.invalid("status.ready", ready, "cannot set more ready pods than active")


def _criteria(change: _Change, causes: Causes) -> None:
    if change.has(CRITERIA_MET) and change.has(FAILED):
        causes.invalid_struct(_AT, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if change.has(CRITERIA_MET) and change.has(FAILURE_TARGET):
        causes.invalid_struct(_AT, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if "successPolicy" in change.spec and not change.has(CRITERIA_MET) and change.has(COMPLETE):
        causes.invalid_struct(_AT, "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")


def _no_way_back(change: _Change, causes: Causes) -> None:
    status, was, spec = change.status, change.was, change.spec
    for kind in (FAILED, COMPLETE, FAILURE_TARGET):
        if change.had(kind) and not change.has(kind):
            causes.invalid_struct(_AT, f"cannot disable the terminal {kind}=True condition")
    if status.get("failed", 0) < was.get("failed", 0):
        causes.invalid("status.failed", status.get("failed", 0), "cannot decrease the failed counter")
    elastic = change.indexed and spec.get("completions") == spec.get("parallelism")
    if not elastic and status.get("succeeded", 0) < was.get("succeeded", 0):
        causes.invalid("status.succeeded", status.get("succeeded", 0), "cannot decrease the succeeded counter")
    if status.get("completionTime") and was.get("completionTime") and change.changed("completionTime"):
        causes.invalid("status.completionTime", status["completionTime"], IMMUTABLE)
    if was.get("startTime") and change.changed("startTime") and not spec.get("suspend") and not _resumed(change):
        causes.invalid("status.startTime", status.get("startTime"), "field is immutable for unsuspended job once set")
    if change.had(CRITERIA_MET) and not change.has(CRITERIA_MET):
        causes.invalid_struct(_AT, "cannot disable the SuccessCriteriaMet=True condition")
    if change.had(COMPLETE) and not change.had(CRITERIA_MET) and change.has(CRITERIA_MET):
        causes.invalid_struct(_AT, "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")


def _resumed(change: _Change) -> bool:
    off = any(
        one.get("type") == "Suspended" and one.get("status") == "False" for one in change.status.get("conditions", ())
    )
    return off and change.had("Suspended")
