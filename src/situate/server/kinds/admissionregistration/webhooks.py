"""ValidatingWebhookConfiguration and MutatingWebhookConfiguration: which webhooks are asked about which requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from situate.server.kinds.admissionregistration.rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    check_conditions,
    check_rule,
    default_matching,
    default_rules,
    name_warnings,
)
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_1035_label, subdomain
from situate.server.kinds.strategy import Strategy
from situate.server.kinds.webhook_clients import check_webhook_service, check_webhook_url, default_port
from situate.server.objects import Object

TIMEOUT_S: Final = 10
"""The default."""
MAX_TIMEOUT_S: Final = 30
VERSIONS: Final = ("v1", "v1beta1")
"""Of AdmissionReview, which the server speaks."""
NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
REINVOCATIONS: Final = ("IfNeeded", "Never")
SEGMENTS: Final = "should be a domain with at least three segments separated by dots"
ONE_CLIENT: Final = "exactly one of url or service is required"
BAD_TIMEOUT: Final = "the timeout value must be between 1 and 30 seconds"


def _webhooks(obj: Object) -> Sequence[dict[str, Any]]:
    found: Sequence[dict[str, Any]] = obj.get("webhooks") or ()
    return found


def _default(obj: Object, *, mutating: bool) -> None:
    for hook in _webhooks(obj):
        if hook.get("failurePolicy") is None:
            hook["failurePolicy"] = "Fail"
        default_matching(hook)
        if hook.get("timeoutSeconds") is None:
            hook["timeoutSeconds"] = TIMEOUT_S
        if mutating and hook.get("reinvocationPolicy") is None:
            hook["reinvocationPolicy"] = "Never"
        default_rules(hook.get("rules") or ())
        default_port(hook.get("clientConfig"))


def _validate(obj: Object, causes: Causes) -> None:
    _check(obj, causes, None)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _check(new, causes, old)


def _check(obj: Object, causes: Causes, old: Object | None) -> None:
    """What was there before a rule for it may stay."""
    before = () if old is None else _webhooks(old)
    side_effects: Sequence[str] = NO_SIDE_EFFECTS
    recognised = unique = conditions = True
    if old is not None:
        if not all(one.get("sideEffects") in NO_SIDE_EFFECTS for one in before):
            side_effects = SIDE_EFFECTS
        recognised = all(
            not one.get("admissionReviewVersions") or _is_spoken(one["admissionReviewVersions"]) for one in before
        )
        names = [one.get("name", "") for one in before]
        unique = len(set(names)) == len(names)
        kept = [one.get("matchConditions") for one in before]
        conditions = kept != [one.get("matchConditions") for one in _webhooks(obj)]
    seen: set[str] = set()
    for index, hook in enumerate(_webhooks(obj)):
        path = f"webhooks[{index}]"
        _check_webhook(hook, path, causes, side_effects, conditions)
        _check_versions(
            hook.get("admissionReviewVersions") or (), f"{path}.admissionReviewVersions", causes, recognised
        )
        if unique and hook.get("name"):
            causes.unique(hook["name"], seen, f"{path}.name")


def _check_webhook(
    hook: Mapping[str, Any], path: str, causes: Causes, side_effects: Sequence[str], conditions: bool
) -> None:
    _check_name(hook.get("name", ""), f"{path}.name", causes)
    for index, rule in enumerate(hook.get("rules") or ()):
        check_rule(rule, f"{path}.rules[{index}]", causes)
    for name, values in (("failurePolicy", FAILURE_POLICIES), ("matchPolicy", MATCH_POLICIES)):
        if hook.get(name) is not None:
            causes.one_of(hook[name], values, f"{path}.{name}")
    effects = hook.get("sideEffects")
    if effects is None:
        causes.required(f"{path}.sideEffects", f"must specify one of {', '.join(side_effects)}")
    else:
        causes.one_of(effects, side_effects, f"{path}.sideEffects")
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= MAX_TIMEOUT_S:
        causes.invalid(f"{path}.timeoutSeconds", timeout, BAD_TIMEOUT)
    for name in ("namespaceSelector", "objectSelector"):
        causes.label_selector(hook.get(name), f"{path}.{name}")
    if hook.get("reinvocationPolicy") is not None:
        causes.one_of(hook["reinvocationPolicy"], REINVOCATIONS, f"{path}.reinvocationPolicy")
    _check_client(hook.get("clientConfig") or {}, f"{path}.clientConfig", causes)
    if conditions:
        check_conditions(hook.get("matchConditions") or (), f"{path}.matchConditions", causes)


def _check_name(name: str, path: str, causes: Causes) -> None:
    if not name:
        causes.required(path)
    elif problems := subdomain(name):
        causes.invalid(path, name, ",".join(problems))
    elif name.count(".") < 2:
        causes.invalid(path, name, SEGMENTS)


def _check_client(client: Mapping[str, Any], path: str, causes: Causes) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        causes.required(path, ONE_CLIENT)
    elif url is not None:
        check_webhook_url(url, f"{path}.url", causes)
    elif service is not None:
        check_webhook_service(service, f"{path}.service", causes)


def _is_spoken(versions: Sequence[str]) -> bool:
    return any(one in VERSIONS for one in versions)


def _check_versions(versions: Sequence[str], path: str, causes: Causes, recognised: bool) -> None:
    if not versions:
        causes.required(path, f"must specify one of {', '.join(VERSIONS)}")
        return
    seen: set[str] = set()
    for index, one in enumerate(versions):
        if one in seen:
            causes.invalid(f"{path}[{index}]", one, "duplicate version")
            continue
        seen.add(one)
        causes.check(dns_1035_label, one, f"{path}[{index}]")
    if recognised and not _is_spoken(versions):
        causes.invalid(path, versions, f"must include at least one of {', '.join(VERSIONS)}")


def _strategy(*, mutating: bool) -> Strategy:
    return Strategy(
        default=partial(_default, mutating=mutating),
        validate=_validate,
        validate_update=_validate_update,
        warnings=name_warnings,
        counts_generation=True,
        unconditional_update=False,
    )


def _count(obj: Object) -> int:
    return len(_webhooks(obj))


VALIDATING: Final = Kind(
    "admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration C - api-extensions",
    strategy=_strategy(mutating=False),
    columns="Name!, Webhooks, Age",
    cells={"Webhooks": _count},
    description="ValidatingWebhookConfiguration names webhooks that may refuse requests.",
    words={
        "ValidatingWebhook.rules": "The operations on resources that it is asked about.",
        "ValidatingWebhook.failurePolicy": "Whether a request fails (Fail) or goes on (Ignore) without an answer.",
        "ValidatingWebhook.matchConditions": "Expressions that must all be true of a request.",
        "ValidatingWebhook.sideEffects": "Whether it changes anything: None, or NoneOnDryRun.",
    },
)
MUTATING: Final = Kind(
    "admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration C - api-extensions",
    strategy=_strategy(mutating=True),
    columns="Name!, Webhooks, Age",
    cells={"Webhooks": _count},
    description="MutatingWebhookConfiguration names webhooks that may change objects or refuse requests.",
    words={
        "MutatingWebhook.reinvocationPolicy": "Whether it is asked again after others have changed the object.",
        "WebhookClientConfig.caBundle": "The authorities, as PEM, that the webhook's certificate is checked with.",
        "WebhookClientConfig.service": "A Service whose endpoints are asked.",
    },
)
