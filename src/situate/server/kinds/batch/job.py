"""Jobs: defaults, the generated selector, preparation and validation."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.server.kinds.batch.job_spec import INDEXED, NON_INDEXED, default_pods, spec_warnings, validate_spec
from situate.server.kinds.batch.job_status import validate_status
from situate.server.kinds.conditions import is_true
from situate.server.kinds.core.podtemplate import validate_template_update
from situate.server.kinds.field_errors import IMMUTABLE, Causes
from situate.server.kinds.go_structs import FAILURE_POLICY, SUCCESS_POLICY, Layout, go_struct
from situate.server.kinds.kind import Kind
from situate.server.kinds.label_selectors import DOES_NOT_MATCH, matches, template_labels, validate_selector
from situate.server.kinds.names import dns_label
from situate.server.kinds.status import name_warnings
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object
from situate.server.tables.cells import condition
from situate.server.tables.durations import between, since

BACKOFF: Final = 6
NO_LIMIT: Final = 2**31 - 1
_BATCH: Final = "batch.kubernetes.io/"
_BY_NAME: Final = ("job-name", f"{_BATCH}job-name")
_BY_UID: Final = ("controller-uid", f"{_BATCH}controller-uid")
_LABELS: Final = (_BY_UID[0], _BY_NAME[0], _BY_UID[1], _BY_NAME[1])
_IMMUTABLE: Final[Mapping[str, Layout | None]] = {
    "completionMode": None,
    "podFailurePolicy": FAILURE_POLICY,
    "backoffLimitPerIndex": None,
    "managedBy": None,
    "successPolicy": SUCCESS_POLICY,
}
_DIRECTIVES: Final = ("nodeSelector", "tolerations", "schedulingGates")
"""Scheduling directives, which may change until the first pod exists."""


def _default(obj: Object) -> None:
    spec: dict[str, Any] = obj.setdefault("spec", {})
    default_pods(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", NO_LIMIT if "backoffLimitPerIndex" in spec else BACKOFF)
    labels = template_labels(spec["template"])
    meta = obj.setdefault("metadata", {})
    if labels and not meta.get("labels"):
        # The same dict, not a copy: labels that are added for the selector belong to both.
        meta["labels"] = labels
    spec.setdefault("completionMode", NON_INDEXED)
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _prepare_create(obj: Object) -> None:
    obj["status"] = {}
    if not obj["spec"].get("manualSelector"):
        _select_own(obj)


def _select_own(obj: Object) -> None:
    """Generate pod labels from the Job's name and uid, and a selector. Existing labels stay, right or wrong."""
    spec, meta = obj["spec"], obj["metadata"]
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for key in _BY_NAME:
        labels.setdefault(key, meta.get("name", ""))
    for key in _BY_UID:
        labels.setdefault(key, meta.get("uid", ""))
    asked = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    asked.setdefault(_BY_UID[1], meta.get("uid", ""))
    if not meta.get("labels"):
        meta["labels"] = dict(labels)


def _validate(obj: Object, causes: Causes) -> None:
    _validate_all(obj, causes, prefixed=True)


def _validate_all(obj: Object, causes: Causes, *, prefixed: bool) -> None:
    spec, name = obj.get("spec", {}), obj.get("metadata", {}).get("name", "")
    if not spec.get("manualSelector") and "selector" in spec:
        _made_selector(obj, causes, prefixed=prefixed)
    _validate_spec(spec, causes)
    completions = spec.get("completions", 0)
    if spec.get("completionMode") == INDEXED and completions > 0:
        last = f"{name}-{completions - 1}"
        if dns_label(last):
            causes.invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {last}")


def _made_selector(obj: Object, causes: Causes, *, prefixed: bool) -> None:
    """Check a generated selector. Old Jobs have only the labels without a prefix."""
    meta, spec = obj.get("metadata", {}), obj.get("spec", {})
    uid, name = meta.get("uid", ""), meta.get("name", "")
    causes.require(uid, "metadata.uid")
    labels = template_labels(spec.get("template", {})) or {}
    expected = {key: uid if key in _BY_UID else name for key in (_LABELS if prefixed else _LABELS[:2])}
    for key, value in expected.items():
        at = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            causes.required(at, f"must be '{value}'")
        elif labels[key] != value:
            causes.invalid(at, dict(sorted(labels.items())), f"must be '{value}'")
    if validate_selector(spec["selector"], "", Causes()) and not matches(spec["selector"], expected):
        causes.invalid("spec.selector", _ordered(spec["selector"]), "`selector` not auto-generated")


def _ordered(selector: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(selector)
    if "matchLabels" in found:
        found["matchLabels"] = dict(sorted(found["matchLabels"].items()))
    return found


def _validate_spec(spec: Mapping[str, Any], causes: Causes) -> None:
    validate_spec(spec, "spec", causes)
    selector = spec.get("selector")
    if selector is None:
        causes.required("spec.selector")
    labels = template_labels(spec.get("template", {}))
    if validate_selector(selector, "spec.selector", causes) and not matches(selector, labels or {}):
        causes.invalid("spec.template.metadata.labels", labels, DOES_NOT_MATCH)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    spec, was = new.get("spec", {}), old.get("spec", {})
    known = template_labels(was.get("template", {})) or {}
    _validate_all(new, causes, prefixed=_BY_NAME[1] in known and _BY_UID[1] in known)
    _validate_spec(spec, causes)
    _completions(spec, was, causes)
    causes.immutable(spec.get("selector"), was.get("selector"), "spec.selector")
    _template(spec, was, _may_move(old), causes)
    for name, shape in _IMMUTABLE.items():
        if spec.get(name) != was.get(name):
            shown = go_struct(spec.get(name), shape) if shape else spec.get(name)
            causes.invalid(f"spec.{name}", shown, IMMUTABLE)


def _completions(spec: Mapping[str, Any], was: Mapping[str, Any], causes: Causes) -> None:
    new, old = spec.get("completions"), was.get("completions")
    if spec.get("completionMode") != INDEXED:
        causes.immutable(new, old, "spec.completions")
    elif new not in (old, None, spec.get("parallelism")):
        causes.invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")


def _may_move(old: Object) -> bool:
    """Whether scheduling directives and resources may still change: the Job is suspended and has no pods."""
    status = old.get("status", {})
    idle = "startTime" not in status or is_true(status.get("conditions", ()), "Suspended")
    return bool(old.get("spec", {}).get("suspend")) and idle and not status.get("active")


def _template(spec: Mapping[str, Any], was: Mapping[str, Any], may_move: bool, causes: Causes) -> None:
    new, old = spec.get("template", {}), was.get("template", {})
    if may_move:
        allowed = _moved(new, old)
        if new.get("spec") != allowed.get("spec"):
            validate_template_update(new.get("spec", {}), allowed.get("spec", {}), "spec.template.spec", causes)
    else:
        validate_template_update(new, old, "spec.template", causes)


def _moved(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """The old template with those fields of the new one that may change."""
    allowed = copy.deepcopy(dict(old))
    pod, asked = allowed.setdefault("spec", {}), new.get("spec", {})
    for name in _DIRECTIVES:
        _take(pod, asked, name)
    affinity = dict(pod.get("affinity", {}))
    _take(affinity, asked.get("affinity", {}), "nodeAffinity")
    if affinity or "affinity" in asked:
        pod["affinity"] = affinity
    else:
        pod.pop("affinity", None)
    for name in ("containers", "initContainers"):
        mine, theirs = pod.get(name, ()), asked.get(name, ())
        if len(mine) == len(theirs):
            for one, other in zip(mine, theirs, strict=True):
                if one.get("name") == other.get("name"):
                    _take(one, other, "resources")
    return allowed


def _take(into: dict[str, Any], source: Mapping[str, Any], name: str) -> None:
    if name in source:
        into[name] = source[name]
    else:
        into.pop(name, None)


def _selectable(obj: Object) -> Mapping[str, str]:
    return {"status.successful": str(obj.get("status", {}).get("succeeded", 0))}


def _warnings(obj: Object) -> list[str]:
    return [*name_warnings(obj), *spec_warnings(obj.get("spec", {}), "spec")]


def _status_shown(obj: Object) -> str:
    conditions = (obj.get("status") or {}).get("conditions")
    for kind in ("Complete", "Failed"):
        if _true(conditions, kind):
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _true(conditions, kind):
            return kind
    return "Running"


def _true(conditions: Sequence[Object] | None, kind: str) -> bool:
    found = condition(conditions, kind)
    return found is not None and found.get("status") == "True"


def _completions_shown(obj: Object) -> str:
    spec, succeeded = obj.get("spec") or {}, (obj.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: Object, now_ns: int) -> str:
    status = obj.get("status") or {}
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return between(start, end) if end else since(start, now_ns)


KIND: Final = Kind(
    "batch/v1 jobs Job N - all | status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=validate_status,
        selectable=_selectable,
        warnings=_warnings,
        counts_generation=True,
    ),
    columns="Name!, Status, Completions, Duration, Age, +Containers, +Images, +Selector",
    cells={"Status": _status_shown, "Completions": _completions_shown},
    timed={"Duration": _duration},
    description="Job runs pods until enough of them have succeeded.",
    words={
        "JobSpec.backoffLimit": "The number of pods that may fail before the Job fails. Defaults to 6.",
        "JobSpec.completions": "How many pods must succeed.",
        "JobSpec.parallelism": "How many pods run at once.",
    },
)
