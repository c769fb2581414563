"""The specification of a Job, in a Job and in a CronJob's template: defaults and validation."""

import re
from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.batch.policies import failure_policy, success_policy
from situate.server.kinds.core.podtemplate import default_template, template_warnings, validate_template
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.go_structs import SUCCESS_POLICY, go_struct
from situate.server.kinds.names import pattern_text, subdomain

_SPEC: Final = FieldChecks("batch.v1.JobSpec")
INDEXED, NON_INDEXED = "Indexed", "NonIndexed"
NEVER, ON_FAILURE = "Never", "OnFailure"
MAX_PARALLEL: Final = 100_000
MAX_FAILED: Final = 100_000
MANY: Final = 100_000
"""Above this many completions, the lists of indexes in the status must stay short."""
MAX_OF_MANY: Final = 10_000
MAX_MANAGED_BY: Final = 63
NOT_INDEXED: Final = "requires indexed completion mode"

_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_IS_PATH = re.compile(_PATH, re.ASCII).fullmatch


def default_pods(spec: dict[str, Any]) -> None:
    """Set the defaults that Jobs and CronJobs share."""
    default_template(spec.setdefault("template", {}))
    for rule in spec.get("podFailurePolicy", {}).get("rules", ()):
        for pattern in rule.get("onPodConditions", ()):
            pattern["status"] = pattern.get("status") or "True"


def validate_spec(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Validate everything but the selector."""
    _SPEC.check(spec, path, causes)
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        causes.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if "managedBy" in spec:
        _managed_by(spec["managedBy"], f"{path}.managedBy", causes)
    mode = spec.get("completionMode")
    _SPEC.check(spec, path, causes, "completionMode")
    if mode == INDEXED:
        _indexed(spec, path, causes)
    elif mode is None or mode == NON_INDEXED:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if name in spec:
                causes.invalid(f"{path}.{name}", spec[name], NOT_INDEXED)
    if "podFailurePolicy" in spec:
        failure_policy(spec, f"{path}.podFailurePolicy", causes)
    if "successPolicy" in spec:
        if mode == INDEXED:
            success_policy(spec, f"{path}.successPolicy", causes)
        else:
            causes.invalid(f"{path}.successPolicy", go_struct(spec["successPolicy"], SUCCESS_POLICY), NOT_INDEXED)
    _replacement(spec, f"{path}.podReplacementPolicy", causes)
    validate_template(spec.get("template", {}), f"{path}.template", causes)
    _restarts(spec, f"{path}.template.spec.restartPolicy", causes)


def _managed_by(name: str, path: str, causes: Causes) -> None:
    host, _, rest = name.partition("/")
    if not name:
        causes.required(path)
    elif not host or not rest:
        causes.invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        causes.check(subdomain, host, path)
        if not _IS_PATH(rest):
            causes.invalid(path, rest, pattern_text("Invalid path", _PATH))
    if len(name) > MAX_MANAGED_BY:
        causes.too_long(path, MAX_MANAGED_BY)


def _indexed(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 0)
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        causes.required(f"{path}.completions", f"when completion mode is {INDEXED}")
    if parallelism > MAX_PARALLEL:
        text = f"must be less than or equal to {MAX_PARALLEL} when completion mode is {INDEXED}"
        causes.invalid(f"{path}.parallelism", parallelism, text)
    if completions is not None and failed is not None and failed > completions:
        causes.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > MAX_FAILED:
        causes.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {MAX_FAILED}")
    if (completions or 0) > MANY and "backoffLimitPerIndex" in spec:
        _many(parallelism, failed, path, causes)


def _many(parallelism: int, failed: int | None, path: str, causes: Causes) -> None:
    text = (
        f"must be less than or equal to {MAX_OF_MANY} when completions are above {MANY} and used with backoff limit "
        "per index"
    )
    if failed is None:
        causes.required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {MANY}")
    if parallelism > MAX_OF_MANY:
        causes.invalid(f"{path}.parallelism", parallelism, text)
    if failed is not None and failed > MAX_OF_MANY:
        causes.invalid(f"{path}.maxFailedIndexes", failed, text)


def _replacement(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    allowed = ["Failed"] if "podFailurePolicy" in spec else ["Failed", "TerminatingOrFailed"]
    causes.one_of(spec.get("podReplacementPolicy", "Failed"), allowed, path)


def _restarts(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    policy = spec.get("template", {}).get("spec", {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        causes.required(path, f'valid values: "{ON_FAILURE}", "{NEVER}"')
    elif policy not in (ON_FAILURE, NEVER):
        causes.not_supported(path, policy, [ON_FAILURE, NEVER])
    elif "podFailurePolicy" in spec and policy != NEVER:
        text = f'only "{NEVER}" is supported when podFailurePolicy is specified'
        causes.invalid(path, policy, text)


def spec_warnings(spec: Mapping[str, Any], path: str) -> list[str]:
    found = template_warnings(spec.get("template", {}), f"{path}.template")
    many = (spec.get("completions") or 0) > MANY and (spec.get("parallelism") or 0) > MAX_OF_MANY
    if not many or spec.get("completionMode") != INDEXED:
        return found
    text = (
        "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
        "might not be able to track completedIndexes when a big number of indexes fail"
    )
    return [f"{path}: {text}", *found]
