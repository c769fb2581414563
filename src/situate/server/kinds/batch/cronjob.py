"""CronJobs: defaults, preparation and validation."""

import re
from collections.abc import Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

from situate.core.reconcile.cron import ScheduleError, parse_schedule
from situate.server.kinds.batch.cron_messages import schedule_problem
from situate.server.kinds.batch.job_spec import default_pods, spec_warnings, validate_spec
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.status import name_warnings, reset_status
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object
from situate.wire.caching import cached_if_short

_SPEC: Final = FieldChecks("batch.v1.CronJobSpec")
MAX_NAME: Final = 52
"""The controller appends up to 11 characters to name a Job."""
SUCCESSFUL: Final = 3
FAILED: Final = 1
_ZONE_PART = re.compile(r"[A-Za-z._0-9+][A-Za-z.\-_0-9+]{0,13}", re.ASCII).fullmatch


def _default(obj: Object) -> None:
    spec: dict[str, Any] = obj.setdefault("spec", {})
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    default_pods(template.setdefault("spec", {}))
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", SUCCESSFUL)
    spec.setdefault("failedJobsHistoryLimit", FAILED)


def _validate(obj: Object, causes: Causes) -> None:
    _validate_spec(obj.get("spec", {}), None, causes)
    name = obj.get("metadata", {}).get("name", "")
    if len(name) > MAX_NAME:
        causes.invalid("metadata.name", name, f"must be no more than {MAX_NAME} characters")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _validate_spec(new.get("spec", {}), old.get("spec", {}), causes)


def _validate_spec(spec: Mapping[str, Any], was: Mapping[str, Any] | None, causes: Causes) -> None:
    _schedule(spec, was, causes)
    _SPEC.check(spec, "spec", causes, "startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (was is None or was.get("timeZone") != zone):
        _zone(zone, causes)
    _SPEC.check(spec, "spec", causes, "concurrencyPolicy")
    job = spec.get("jobTemplate", {}).get("spec", {})
    validate_spec(job, "spec.jobTemplate.spec", causes)
    if "selector" in job:
        causes.invalid("spec.jobTemplate.spec.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        causes.not_supported("spec.jobTemplate.spec.manualSelector", True, ["nil", "false"])
    _SPEC.check(spec, "spec", causes, "successfulJobsHistoryLimit failedJobsHistoryLimit")


def _schedule(spec: Mapping[str, Any], was: Mapping[str, Any] | None, causes: Causes) -> None:
    schedule, at = spec.get("schedule", ""), "spec.schedule"
    if not schedule:
        causes.required(at)
        return
    problem = _problem(schedule)
    if problem:
        causes.invalid(at, schedule, problem)
    if "TZ" not in schedule:
        return
    if was is None or "TZ" not in was.get("schedule", ""):
        causes.invalid(at, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif "timeZone" in spec:
        causes.invalid(at, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


@cached_if_short(entries=1_024, length=256)
def _problem(schedule: str) -> str:
    """Empty if the controller can parse the schedule."""
    zone, _, rest = schedule.partition(" ")
    text = rest.strip() if zone.startswith(("TZ=", "CRON_TZ=")) else schedule
    try:
        parse_schedule(text)
    except ScheduleError as error:
        return schedule_problem(text) or str(error)
    return ""


def _zone(zone: str, causes: Causes) -> None:
    at = "spec.timeZone"
    if not zone:
        causes.invalid(at, zone, "timeZone must be nil or non-empty string")
    elif any(part in (".", "..") or not _ZONE_PART(part) for part in zone.split("/")):
        causes.invalid(at, zone, f"unknown time zone {zone}")
    elif zone.lower() == "local":
        causes.invalid(at, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    elif not _is_known(zone):
        causes.invalid(at, zone, f"unknown time zone {zone}")


@cached_if_short(entries=1_024, length=256)
def _is_known(zone: str) -> bool:
    """Uses this machine's time zones. UTC is always known."""
    if zone == "UTC":
        return True
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        return False
    return True


def _warnings(obj: Object) -> list[str]:
    job = obj.get("spec", {}).get("jobTemplate", {}).get("spec", {})
    return [*name_warnings(obj), *spec_warnings(job, "spec.jobTemplate.spec")]


KIND: Final = Kind(
    "batch/v1 cronjobs CronJob N cj all | status",
    strategy=Strategy(
        default=_default,
        prepare_create=reset_status(),
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        warnings=_warnings,
        counts_generation=True,
    ),
    columns="""
        Name!, Schedule = spec.schedule, Timezone = spec.timeZone|<none>, Suspend? = text(spec.suspend)|<unset>,
        Active# = count(status.active), Last Schedule = since(status.lastScheduleTime)|<none>, Age,
        +Containers = containers(spec.jobTemplate.spec.template), +Images = images(spec.jobTemplate.spec.template),
        +Selector = selector(spec.jobTemplate.spec.selector)
        """,
    description="CronJob starts a Job at the times of a schedule.",
)
