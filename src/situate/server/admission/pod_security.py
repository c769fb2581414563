"""PodSecurity: holds pods to the Pod Security Standards that their namespace's labels ask for.

`enforce` refuses pods, `warn` warns of pods and of workloads' templates, `audit` annotates the request in the audit
log. The standards themselves are in `pod_security_checks`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from situate.server.admission.pod_security_checks import (
    BASELINE,
    NEWEST,
    PRIVILEGED,
    RESTRICTED,
    PolicyViolation,
    findings,
)
from situate.server.errors import Cause, forbidden, invalid
from situate.server.kinds.field_errors import invalid as invalid_value
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.warning import annotate, warn
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

NAMESPACE: Final = BY_KIND["v1", "Namespace"]
POD: Final = BY_KIND["v1", "Pod"]
PREFIX: Final = "pod-security.kubernetes.io/"
"""Of the labels of a namespace, and of annotations in the audit log."""
LATEST: Final = "latest"
LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)
"""From what allows everything to what allows least."""
MOST_PODS: Final = 3_000
"""Of a namespace whose level rises, how many pods are checked, to warn of them."""
AT_ONCE: Final = 25
"""Pods to read before other work gets its turn."""
_UNCHECKED: Final = ("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status")
"""Subresources of pods that change nothing that is checked."""
_OWN_TEMPLATE: Final = ("spec", "template")
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "/replicationcontrollers": _OWN_TEMPLATE,
    "/podtemplates": ("template",),
    "apps/replicasets": _OWN_TEMPLATE,
    "apps/deployments": _OWN_TEMPLATE,
    "apps/statefulsets": _OWN_TEMPLATE,
    "apps/daemonsets": _OWN_TEMPLATE,
    "batch/jobs": _OWN_TEMPLATE,
    "batch/cronjobs": ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind has the template of its pods."""
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,17})")
_LABELS: Final = tuple(PREFIX + name for mode in ("enforce", "audit", "warn") for name in (mode, f"{mode}-version"))
_ANY_LABEL: Final = frozenset(_LABELS)


class Standard(NamedTuple):
    """A level as of a version, such as baseline:v1.30."""

    level: str = PRIVILEGED
    version: str = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def minor(self) -> int:
        return NEWEST if self.version == LATEST else int(self.version[3:])

    def findings(self, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> list[PolicyViolation]:
        return findings(self.level, self.minor, metadata, spec)


class Policy(NamedTuple):
    """What a namespace asks for."""

    enforce: Standard = Standard()
    audit: Standard = Standard()
    warn: Standard = Standard()
    causes: tuple[Cause, ...] = ()
    """What is wrong with its labels."""

    @property
    def allows_all(self) -> bool:
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED and not self.causes


ALLOWS_ALL: Final = Policy()
"""Of a namespace that asks for nothing."""
_ALLOWED: Final = {f"{PREFIX}enforce-policy": str(Standard())}


class PodSecurity:
    """Decides after validation, and changes nothing."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def check(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None:
            return
        resource = target.resource
        if resource is POD:
            if target.subresource not in _UNCHECKED and (old is None or _changes_images(new, old)):
                self._check_pod(target, new)
        elif target.subresource:
            return
        elif resource is NAMESPACE:
            await self._check_namespace(new, old)
        elif (path := _TEMPLATES.get(resource.stored_as)) is not None:
            self._check_template(target, new, path)

    def _check_pod(self, target: Target, pod: Object) -> None:
        policy = self._policy(target.namespace)
        if policy is ALLOWS_ALL or policy.allows_all:
            annotate(_ALLOWED)
            return
        standard, metadata, spec = policy.enforce, pod["metadata"], pod.get("spec") or {}
        said = {f"{PREFIX}enforce-policy": str(standard)}
        try:
            if found := standard.findings(metadata, spec):
                why = f'violates PodSecurity "{standard}": {_listed(found)}'
                raise forbidden("pods", "", metadata.get("name", ""), why)
            _warn(policy, metadata, spec)
        finally:
            annotate(said | _audited(policy, metadata, spec))

    def _check_template(self, target: Target, owner: Object, path: tuple[str, ...]) -> None:
        policy = self._policy(target.namespace)
        if policy.warn.level == policy.audit.level == PRIVILEGED and not policy.causes:
            return
        template: Any = owner
        for field in path:
            template = (template or {}).get(field)
        if template:
            metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
            _warn(policy, metadata, spec)
            annotate(_audited(policy, metadata, spec))

    async def _check_namespace(self, new: Object, old: Object | None) -> None:
        name, policy = new["metadata"]["name"], _policy_of(new["metadata"].get("labels") or {})
        before = Policy() if old is None else _policy_of(old["metadata"].get("labels") or {})
        if policy.causes and policy.causes != before.causes:
            raise invalid("Namespace", "", name, policy.causes)
        if old is None or policy.enforce == before.enforce:
            return
        same = policy.enforce.version == before.enforce.version
        if same and LEVELS.index(policy.enforce.level) <= LEVELS.index(before.enforce.level):
            return
        if policy.enforce.level != PRIVILEGED:
            warn(await _of_existing(name, policy.enforce, list(self._cache.all(POD, name))))

    def _policy(self, namespace: str) -> Policy:
        found = self._cache.get(NAMESPACE, "", namespace)
        return ALLOWS_ALL if found is None else _policy_of(found.labels)


def _changes_images(new: Object, old: Object) -> bool:
    """What else of a running pod may change is not checked."""
    spec, was = new.get("spec") or {}, old.get("spec") or {}
    for field in ("containers", "initContainers"):
        if [one.get("image") for one in spec.get(field) or ()] != [one.get("image") for one in was.get(field) or ()]:
            return True
    known = {one.get("name"): one.get("image") for one in was.get("ephemeralContainers") or ()}
    return any(known.get(one.get("name")) != one.get("image") for one in spec.get("ephemeralContainers") or ())


def _listed(found: Iterable[PolicyViolation]) -> str:
    return ", ".join(map(str, found))


def _warn(policy: Policy, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    if found := policy.warn.findings(metadata, spec):
        warn([f'would violate PodSecurity "{policy.warn}": {_listed(found)}'])


def _audited(policy: Policy, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, str]:
    said = {}
    if policy.causes:
        each = [f"{cause.field}: {cause.message}" for cause in policy.causes]
        listed = each[0] if len(each) == 1 else f"[{', '.join(each)}]"
        said[f"{PREFIX}error"] = f"Failed to parse policy: {listed}"
    if found := policy.audit.findings(metadata, spec):
        said[f"{PREFIX}audit-violations"] = f'would violate PodSecurity "{policy.audit}": {_listed(found)}'
    return said


async def _of_existing(namespace: str, standard: Standard, pods: list[StoredObject]) -> list[str]:
    """Warnings of the pods that a namespace has already. One pod of each controller comes first. Other requests get
    their turns meanwhile."""
    first: list[Object] = []
    others: list[Object] = []
    controllers = set[str]()
    for number, held in enumerate(pods, 1):
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
        pod = held.object(POD)
        owners = pod["metadata"].get("ownerReferences") or ()
        uid = next((one.get("uid", "") for one in owners if one.get("controller")), "")
        (others if uid in controllers else first).append(pod)
        if uid:
            controllers.add(uid)
    names: dict[str, list[str]] = {}
    checked = [*first, *others][:MOST_PODS]
    for number, pod in enumerate(checked, 1):
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
        if found := standard.findings(pod["metadata"], pod.get("spec") or {}):
            names.setdefault(", ".join(one.reason for one in found), []).append(pod["metadata"]["name"])
    said = []
    if len(checked) < len(pods):
        said.append(
            f"new PodSecurity enforce level only checked against the first {len(checked)} of {len(pods)} existing pods"
        )
    if names:
        said.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{standard}"')
    return said + sorted(f"{_and_others(these)}: {reason}" for reason, these in names.items())


def _and_others(names: list[str]) -> str:
    more = len(names) - 1
    return min(names) + (f" (and {more} other {'pod' if more == 1 else 'pods'})" if more else "")


# -- labels --------------------------------------------------------------------------------------------------------


def _policy_of(labels: Mapping[str, str]) -> Policy:
    if _ANY_LABEL.isdisjoint(labels):
        return ALLOWS_ALL
    return _parsed(tuple(labels.get(label) for label in _LABELS))


@lru_cache(maxsize=512)
def _parsed(values: tuple[str | None, ...]) -> Policy:
    """A wrong level means restricted where it enforces, else privileged; a wrong version means the latest."""
    causes: list[Cause] = []
    standards = []
    for at, wrong_means in ((0, RESTRICTED), (2, PRIVILEGED), (4, PRIVILEGED)):
        level, version = values[at], values[at + 1]
        level, version = PRIVILEGED if level is None else level, LATEST if version is None else version
        if level not in LEVELS:
            causes.append(_wrong(at, level, f"must be one of {', '.join(LEVELS)}"))
            level = wrong_means
        if version != LATEST and not _VERSION.fullmatch(version):
            causes.append(_wrong(at + 1, version, 'must be "latest" or "v1.x"'))
            version = LATEST
        standards.append(Standard(level, version))
    enforce, audit, to_warn = standards
    if values[0] in LEVELS and values[4] is None:  # what is refused is warned of in templates
        to_warn = Standard(enforce.level, to_warn.version if values[5] is not None else enforce.version)
    return Policy(enforce, audit, to_warn, tuple(causes))


def _wrong(at: int, value: str, detail: str) -> Cause:
    return invalid_value(f"metadata.labels[{_LABELS[at]}]", value, detail)
