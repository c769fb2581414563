"""Validation of pods and their updates: images, the deadline, tolerations and gates may change, within limits."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.addresses import ip, is_dual_stack
from situate.server.kinds.core.pod.containers import check_images_trimmed
from situate.server.kinds.core.pod.scheduling import REQUIRED
from situate.server.kinds.core.pod.spec import MIRROR, pod_annotations, validate_spec
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import between_text, subdomain
from situate.server.objects import Object

ONLY_THESE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_INT32_MAX: Final = 2**31 - 1
REMEMBERED: Final = 1_024
_encode: Final = msgspec.json.Encoder().encode
_right: Final[set[bytes]] = set()
"""Encoded specs that are known to be valid."""
_SYSTEM_CONDITIONS: Final = frozenset(("PodScheduled", "Ready", "Initialized"))


def validate(pod: Object, causes: Causes) -> None:
    """Validate a new pod. Most pods repeat the spec of an earlier one, so valid specs are cached, unless their validity
    depends on more than the spec."""
    spec = pod["spec"]
    alone = "volumes" not in spec and not pod["metadata"].get("annotations")
    known = _encode(spec) if alone else b""
    if known in _right:
        return
    before = len(causes)
    _validate(pod, spec, causes)
    if alone and len(causes) == before:
        if len(_right) >= REMEMBERED:
            _right.clear()
        _right.add(known)


def _validate(pod: Object, spec: Mapping[str, Any], causes: Causes) -> None:
    _whole(pod, spec, causes)
    if spec.get("ephemeralContainers"):
        causes.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        causes.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _whole(pod: Object, spec: Mapping[str, Any], causes: Causes) -> None:
    meta = pod.get("metadata", {})
    if annotations := meta.get("annotations"):
        pod_annotations(annotations, spec, "metadata.annotations", causes)
    validate_spec(spec, "spec", causes, pod_name=meta.get("name", ""), is_pod=True)
    if "volumes" in spec and not spec.get("serviceAccountName"):
        _tokens_need_an_account(spec["volumes"], causes)
    check_images_trimmed(spec.get("containers", ()), "spec.containers", causes)
    if "initContainers" in spec:
        check_images_trimmed(spec["initContainers"], "spec.initContainers", causes)


def _tokens_need_an_account(volumes: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    for index, volume in enumerate(volumes):
        for place, source in enumerate(volume.get("projected", {}).get("sources", ())):
            if "serviceAccountToken" in source:
                where = f"spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                causes.forbidden(where, "must not be specified when serviceAccountName is not set")


def validate_ephemeral(new: Object, old: Object, causes: Causes) -> None:
    """Ephemeral containers come, and neither change nor go."""
    _whole(new, new["spec"], causes)
    path = "spec.ephemeralContainers"
    if MIRROR in (old["metadata"].get("annotations") or {}):
        causes.forbidden("", "static pods do not support ephemeral containers")
    given = {one.get("name"): one for one in new["spec"].get("ephemeralContainers", ())}
    for one in old["spec"].get("ephemeralContainers", ()):
        name = one.get("name", "")
        if name not in given:
            causes.forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n')
        elif given[name] != one:
            causes.forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n')


# ── the spec of a pod that exists ───────────────────────────────────────────────────────────────────────────────────


def validate_update(new: Object, old: Object, causes: Causes) -> None:
    mine, was = new["spec"], old["spec"]
    if mine == was and new["metadata"].get("annotations") == old["metadata"].get("annotations"):
        return  # the stored value was valid when it was stored
    _whole(new, mine, causes)
    _annotations(new, old, causes)
    for key in ("containers", "initContainers"):
        now, before = mine.get(key, ()), was.get(key, ())
        if len(now) != len(before):
            causes.forbidden(f"spec.{key}", "pod updates may not add or remove containers")
            return
    if not _deadline(mine.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds"), causes):
        return
    _tolerations(mine.get("tolerations", ()), was.get("tolerations", ()), causes)
    _gates(mine.get("schedulingGates", ()), was.get("schedulingGates", ()), causes)
    if mine != was and _without_what_may_change(mine, was, causes) != was:
        causes.forbidden("spec", ONLY_THESE)


def _annotations(new: Object, old: Object, causes: Causes) -> None:
    now, before = new["metadata"].get("annotations", {}), old["metadata"].get("annotations", {})
    for key, value in before.items():
        if now.get(key) == value:
            continue
        if key.startswith(_APP_ARMOR):
            causes.forbidden(f"metadata.annotations[{key}]", "may not remove or update AppArmor annotations")
        if key == MIRROR:
            causes.forbidden(f"metadata.annotations[{key}]", "may not remove or update mirror pod annotation")
    for key in now:
        if key in before:
            continue
        if key.startswith(_APP_ARMOR):
            causes.forbidden(f"metadata.annotations[{key}]", "may not add AppArmor annotations")
        if key == MIRROR:
            causes.forbidden(f"metadata.annotations[{key}]", "may not add mirror pod annotation")


def _deadline(new: int | None, old: int | None, causes: Causes) -> bool:
    """Returns whether to go on."""
    where = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            causes.invalid(where, None, "must not update from a positive integer to nil value")
        return True
    if not 0 <= new <= _INT32_MAX:
        causes.invalid(where, new, between_text(0, _INT32_MAX))
        return False
    if old is not None and old < new:
        causes.invalid(where, new, "must be less than or equal to previous value")
        return False
    return True


def _tolerations(new: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    now = [_but_seconds(one) for one in new]
    if not all(_but_seconds(one) in now for one in old):
        causes.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _but_seconds(toleration: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gates(new: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    before = [one.get("name", "") for one in old]
    for index, gate in enumerate(new):
        name = gate.get("name", "")
        if name not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            causes.forbidden(f"spec.schedulingGates[{index}].name", detail)


def _without_what_may_change(new: Mapping[str, Any], old: Mapping[str, Any], causes: Causes) -> dict[str, Any]:
    spec = dict(new)
    for key in ("containers", "initContainers"):
        if key in spec:
            spec[key] = [_with(one, before, "image") for one, before in zip(spec[key], old.get(key, ()), strict=True)]
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        spec = _with(spec, old, key)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        spec = _with(spec, old, "terminationGracePeriodSeconds")
    if old.get("schedulingGates"):
        spec = _gated(spec, old, causes)
    return spec


def _with(new: Mapping[str, Any], old: Mapping[str, Any], key: str) -> dict[str, Any]:
    """`new` with one field of `old`."""
    found = dict(new)
    found.pop(key, None)
    if key in old:
        found[key] = old[key]
    return found


def _gated(new: dict[str, Any], old: Mapping[str, Any], causes: Causes) -> dict[str, Any]:
    """A gated pod may still be restricted to fewer nodes."""
    mine, was = new.get("nodeSelector", {}), old.get("nodeSelector", {})
    if any(mine.get(key) != value for key, value in was.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        causes.invalid("spec.nodeSelector", mine or None, detail)
    spec = _with(new, old, "nodeSelector")
    now, before = spec.get("affinity", {}), old.get("affinity", {})
    if now.get("nodeAffinity") == before.get("nodeAffinity"):
        return spec
    _narrowed(now.get("nodeAffinity", {}), before.get("nodeAffinity", {}), causes)
    spec["affinity"] = _with(now, before, "nodeAffinity")
    if not spec["affinity"] and "affinity" not in old:
        del spec["affinity"]
    return spec


def _narrowed(new: Mapping[str, Any], old: Mapping[str, Any], causes: Causes) -> None:
    before = old.get(REQUIRED, {}).get("nodeSelectorTerms", ())
    now = new.get(REQUIRED, {}).get("nodeSelectorTerms", ())
    where = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if before and len(before) != len(now):
        causes.invalid(where, now or None, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (mine, was) in enumerate(zip(now, before, strict=False)):
        if not _only_more(mine, was):
            causes.invalid(f"{where}[{index}]", mine, "only additions are allowed (no mutations or deletions)")


def _only_more(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    if not any(old.values()):
        return not any(new.values())
    for key in ("matchExpressions", "matchFields"):
        was = old.get(key, [])
        if new.get(key, [])[: len(was)] != was:
            return False
    return True


# ── the status ──────────────────────────────────────────────────────────────────────────────────────────────────────


def validate_status(new: Object, old: Object, causes: Causes) -> None:
    if new["metadata"].get("annotations") != old["metadata"].get("annotations"):
        _annotations(new, old, causes)
        pod_annotations(new["metadata"].get("annotations", {}), new["spec"], "metadata.annotations", causes)
    status, before = new.get("status", {}), old.get("status", {})
    for index, condition in enumerate(status.get("conditions", ())):
        if condition.get("observedGeneration", 0) < 0:
            where, found = f"status.conditions[{index}].observedGeneration", condition["observedGeneration"]
            causes.invalid(where, found, "must be a non-negative integer")
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS and qualified_name_problems(kind):
            causes.check(qualified_name_problems, kind, f"status.conditions[{index}].Type")
    _nominated(status.get("nominatedNodeName", ""), before.get("nominatedNodeName", ""), old["spec"], causes)
    if status.get("observedGeneration", 0) < 0:
        found = status["observedGeneration"]
        causes.invalid("status.observedGeneration", found, "must be a non-negative integer")
    causes.immutable(status.get("qosClass", ""), before.get("qosClass", ""), "status.qosClass")
    _transitions(status, before, old["spec"], causes)
    _claim_statuses(status.get("resourceClaimStatuses", ()), new["spec"].get("resourceClaims", ()), causes)
    _addresses(status, before, causes)


def _nominated(new: str, old: str, spec: Mapping[str, Any], causes: Causes) -> None:
    if not new or new == old:
        return
    causes.check(subdomain, new, "status.nominatedNodeName")
    if spec.get("nodeName"):
        causes.forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")


def _transitions(status: Mapping[str, Any], before: Mapping[str, Any], spec: Mapping[str, Any], causes: Causes) -> None:
    """A container that has ended must not run again, unless the restart policy allows it."""
    policy = spec.get("restartPolicy")
    if policy == "Always" or any("restartPolicyRules" in one for one in spec.get("containers", ())):
        return
    now = {one.get("name"): one.get("state", {}) for one in status.get("containerStatuses", ())}
    for index, one in enumerate(before.get("containerStatuses", ())):
        ended = one.get("state", {}).get("terminated")
        if ended is None or "terminated" in now.get(one.get("name"), {"terminated": {}}):
            continue
        if policy == "Never" or ended.get("exitCode", 0) == 0:
            where = f"status.containerStatuses[{index}].state"
            causes.forbidden(where, "may not be transitioned to non-terminated state")


def _claim_statuses(statuses: Sequence[Mapping[str, Any]], claims: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    known = [one.get("name", "") for one in claims]
    seen: set[str] = set()
    for index, one in enumerate(statuses):
        at, name = f"status.resourceClaimStatuses[{index}]", one.get("name", "")
        if name not in known:
            causes.invalid(f"{at}.name", name, "must match the name of an entry in `spec.resourceClaims`")
        causes.unique(name, seen, f"{at}.name")
        if "resourceClaimName" in one:
            causes.check(subdomain, one["resourceClaimName"], f"{at}.resourceClaimName")


def _addresses(status: Mapping[str, Any], before: Mapping[str, Any], causes: Causes) -> None:
    hosts = status.get("hostIPs", ())
    if hosts and hosts[0].get("ip", "") != status.get("hostIP", ""):
        causes.invalid("status.hostIPs[0].ip", hosts[0].get("ip", ""), "must be equal to `hostIP`")
    for key in ("podIPs", "hostIPs"):
        found = [one.get("ip", "") for one in status.get(key, ())]
        if not found:
            continue
        known = [one.get("ip", "") for one in before.get(key, ())]
        for index, one in enumerate(found):
            ip(one, f"status.{key}[{index}]", causes, known)
        if len(found) > 2 or (len(found) == 2 and not is_dual_stack(found)):
            shown = [{"IP": one} for one in found]
            causes.invalid(f"status.{key}", shown, "may specify no more than one IP for each IP family")
