"""The audit policy: which requests the audit log has, at which stages, and how much of them (audit.k8s.io/v1 Policy).

As in kube-apiserver, the first rule that matches a request decides, and a request that no rule matches is not logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from situate.loop.logs import Log
from situate.server.identity.authorization.attributes import Attributes
from situate.server.kinds.names import subdomain
from situate.server.requests import Caller
from situate.wire.errors import InputError, from_decoder
from situate.wire.yaml import load_yaml

API_VERSION: Final = "audit.k8s.io/v1"
KIND: Final = "Policy"
LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")
STAGES: Final = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
MAX_FILE_BYTES: Final = 1 << 20

NONE: Final = "None"
METADATA: Final = "Metadata"
REQUEST_RESPONSE: Final = "RequestResponse"
BODIES: Final = ("Request", REQUEST_RESPONSE)

BOTH: Final = "rules cannot apply to both regular resources and non-resource URLs"
SLASH: Final = "non-resource URL rules must begin with a '/' character"
STAR: Final = "non-resource URL wildcards '*' must be the final character of the rule"
NAMES_ALONE: Final = "using resourceNames requires at least one resource"

_log = Log(__name__)


class GroupResources(Struct, frozen=True, rename="camel"):
    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()


class AuditRule(Struct, frozen=True, rename="camel"):
    level: str = ""
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool | None = None


class AuditPolicy(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] = {}
    rules: tuple[AuditRule, ...] = ()
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool = False


class AuditDecision(NamedTuple):
    """How much of a request is logged."""

    level: str
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


NOT_LOGGED: Final = AuditDecision(NONE)


def decide(policy: AuditPolicy, caller: Caller | None, attributes: Attributes) -> AuditDecision:
    for rule in policy.rules:
        if _matches(rule, caller, attributes):
            if rule.level == NONE:
                return NOT_LOGGED
            managed = rule.omit_managed_fields
            return AuditDecision(
                rule.level,
                _omitted(policy.omit_stages, rule.omit_stages),
                policy.omit_managed_fields if managed is None else managed,
            )
    return NOT_LOGGED


@lru_cache(maxsize=1_024)
def _omitted(first: tuple[str, ...], second: tuple[str, ...]) -> frozenset[str]:
    return frozenset((*first, *second))


def _matches(rule: AuditRule, caller: Caller | None, attributes: Attributes) -> bool:
    if rule.users and (caller is None or caller.name not in rule.users):
        return False
    if rule.user_groups and (caller is None or not any(group in rule.user_groups for group in caller.groups)):
        return False
    if rule.verbs and attributes.verb not in rule.verbs:
        return False
    if rule.namespaces or rule.resources:
        return bool(attributes.resource) and _matches_resource(rule, attributes)
    if rule.non_resource_urls:
        return not attributes.resource and any(_matches_path(attributes.path, one) for one in rule.non_resource_urls)
    return True


def _matches_path(path: str, pattern: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _matches_resource(rule: AuditRule, attributes: Attributes) -> bool:
    if rule.namespaces and attributes.namespace not in rule.namespaces:
        return False
    if not rule.resources:
        return True
    resource, sub = attributes.resource, attributes.subresource
    # `pods/*` is pods and all their subresources, `*/status` the status of everything.
    names = {"*", f"{resource}/{sub}" if sub else resource, f"{resource}/*"} | ({f"*/{sub}"} if sub else set())
    for group in rule.resources:
        if group.group != attributes.group:
            continue
        if not group.resources:
            return True
        if group.resource_names and attributes.name not in group.resource_names:
            continue
        if not names.isdisjoint(group.resources):
            return True
    return False


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_policy(path: Path) -> AuditPolicy:
    """Raises InputError, in one line."""
    name = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"the audit policy cannot be read: {error.strerror}", file=name) from None
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"the audit policy is larger than {MAX_FILE_BYTES} bytes", file=name)
    documents = [one for one in load_yaml(data, name) if one is not None]
    if len(documents) != 1:
        raise InputError(f"an audit policy is one YAML document; this file has {len(documents)}", file=name)
    try:
        policy = msgspec.convert(documents[0], AuditPolicy)
    except msgspec.ValidationError as error:
        field, what = from_decoder(str(error), documents[0])
        raise InputError(f"not an audit policy: {what}", file=name, path=field) from None
    if (policy.api_version, policy.kind) != (API_VERSION, KIND):
        what = f'it is a "{policy.kind}" of "{policy.api_version}", and must be a "{KIND}" of "{API_VERSION}"'
        raise InputError(f"not an audit policy: {what}", file=name)
    if not policy.rules:
        raise InputError("the audit policy has no rules: nothing would be logged", file=name, path="rules")
    for path_, what in _problems(policy):
        raise InputError(what, file=name, path=path_)
    for unknown in _unknown(documents[0]):
        # kube-apiserver accepts such a policy, too, and warns.
        _log.warning("The audit policy has an unknown field, which is ignored", file=name, field=unknown)
    return policy


def _problems(policy: AuditPolicy) -> Iterator[tuple[str, str]]:
    """In kube-apiserver's words."""
    yield from _wrong_stages(policy.omit_stages, "omitStages")
    for index, rule in enumerate(policy.rules):
        at = f"rules[{index}]"
        if not rule.level:
            yield f"{at}.level", "Required value"
        elif rule.level not in LEVELS:
            yield f"{at}.level", _unsupported(rule.level, LEVELS)
        yield from _wrong_urls(rule, at)
        yield from _wrong_resources(rule, at)
        yield from _wrong_stages(rule.omit_stages, f"{at}.omitStages")
        if rule.non_resource_urls and (rule.resources or rule.namespaces):
            yield f"{at}.nonResourceURLs", f"Invalid value: {BOTH}"


def _wrong_stages(stages: tuple[str, ...], at: str) -> Iterator[tuple[str, str]]:
    for index, stage in enumerate(stages):
        if stage not in STAGES:
            yield f"{at}[{index}]", _unsupported(stage, STAGES)


def _wrong_urls(rule: AuditRule, at: str) -> Iterator[tuple[str, str]]:
    for index, url in enumerate(rule.non_resource_urls):
        where = f"{at}.nonResourceURLs[{index}]"
        if url == "*":
            continue
        if not url.startswith("/"):
            yield where, f'Invalid value: "{url}": {SLASH}'
        if "*" in url[:-1]:
            yield where, f'Invalid value: "{url}": {STAR}'


def _wrong_resources(rule: AuditRule, at: str) -> Iterator[tuple[str, str]]:
    for index, group in enumerate(rule.resources):
        where = f"{at}.resources[{index}]"
        if group.group:
            for why in subdomain(group.group):
                yield f"{where}.group", f'Invalid value: "{group.group}": {why}'
        if group.resource_names and not group.resources:
            yield f"{where}.resourceNames", f"Invalid value: {NAMES_ALONE}"


def _unsupported(value: str, known: tuple[str, ...]) -> str:
    return f'Unsupported value: "{value}": supported values: ' + ", ".join(f'"{one}"' for one in known)


def _unknown(policy: Any) -> Iterator[str]:
    yield from _other_keys(policy, AuditPolicy, "")
    for index, rule in enumerate(policy.get("rules", ())):
        yield from _other_keys(rule, AuditRule, f"rules[{index}].")
        for number, group in enumerate(rule.get("resources") or ()):
            yield from _other_keys(group, GroupResources, f"rules[{index}].resources[{number}].")


def _other_keys(value: Any, kind: type[Struct], at: str) -> Iterator[str]:
    known = {one.encode_name for one in msgspec.structs.fields(kind)}
    return (f"{at}{key}" for key in value if key not in known)
