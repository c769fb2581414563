"""Validation of a PodSpec, of a pod or a template, in kube-apiserver's order and words."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.integers import parse_int32
from situate.core.model.names import qualified_name_problems
from situate.server.kinds.addresses import ip
from situate.server.kinds.core.pod.containers import ContainerContext, containers, ephemeral_containers, init_containers
from situate.server.kinds.core.pod.defaults import total_of
from situate.server.kinds.core.pod.scheduling import affinity, gates, spread, tolerations
from situate.server.kinds.core.pod.security import every_container, operating_system, pod_security, user_namespace
from situate.server.kinds.core.pod.volumes import volumes
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes, invalid
from situate.server.kinds.names import between_text, dns_label, subdomain, underscored_subdomain
from situate.server.kinds.quantities import is_huge_pages, nanos, pod_resource_name, resources, text_of, written

_SPEC: Final = FieldChecks("core.v1.PodSpec")
MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_MAX_NAMESERVERS, _MAX_SEARCHES, _MAX_SEARCH_LENGTH = 3, 32, 2048
_MAX_HOSTNAME: Final = 64
_INT32_MAX: Final = 2**31 - 1
_SUBDOMAINS: Final = ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName")


def validate_spec(
    spec: Mapping[str, Any], path: str, causes: Causes, *, pod_name: str = "", is_pod: bool = False
) -> None:
    """The spec has its defaults. `pod_name` is empty for a template."""
    found = spec.get("containers", ())
    inits = spec.get("initContainers", ())
    claims = spec.get("resourceClaims", ())
    known = volumes(spec["volumes"], pod_name, is_pod, f"{path}.volumes", causes) if "volumes" in spec else {}
    if claims:
        _resource_claims(claims, f"{path}.resourceClaims", causes)
    shared = ContainerContext(
        known,
        [one["name"] for one in claims if one.get("name")],
        spec.get("terminationGracePeriodSeconds", 0),
        spec.get("restartPolicy", ""),
        spec.get("hostUsers", True),
    )
    containers(found, shared, f"{path}.containers", causes)
    if inits:
        names = [one.get("name", "") for one in found]
        init_containers(inits, names, shared, f"{path}.initContainers", causes)
    if "ephemeralContainers" in spec:
        names = [one.get("name", "") for one in (*found, *inits)]
        ephemeral_containers(spec["ephemeralContainers"], names, shared, f"{path}.ephemeralContainers", causes)
    if "resources" in spec:
        _pod_resources(spec, path, causes)
    if spec.get("hostNetwork"):
        _host_network(found, is_pod, f"{path}.containers", causes)
    _SPEC.check(spec, path, causes, "restartPolicy dnsPolicy")
    if "nodeSelector" in spec:
        causes.labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if context := spec.get("securityContext"):
        pod_security(context, spec, f"{path}.securityContext", causes)
    elif spec.get("shareProcessNamespace") and spec.get("hostPID"):
        pod_security({}, spec, f"{path}.securityContext", causes)
    _placing(spec, path, causes)
    _rest(spec, path, causes)


def _placing(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    if "affinity" in spec:
        affinity(spec["affinity"], f"{path}.affinity", causes)
    if "dnsConfig" in spec or spec.get("dnsPolicy") == "None":
        _dns(spec.get("dnsConfig"), spec.get("dnsPolicy", ""), f"{path}.dnsConfig", causes)
    for index, gate in enumerate(spec.get("readinessGates", ())):
        where = f"{path}.readinessGates[{index}].conditionType"
        causes.check(qualified_name_problems, gate.get("conditionType", ""), where)
    if "schedulingGates" in spec:
        gates(spec["schedulingGates"], f"{path}.schedulingGates", causes)
    if "topologySpreadConstraints" in spec:
        spread(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints", causes)
    if spec.get("hostUsers") is False:
        user_namespace(spec, path, causes)


def _rest(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    if "hostnameOverride" in spec:
        _hostname(spec, f"{path}.hostnameOverride", causes)
    for key in _SUBDOMAINS:
        name = spec.get(key)
        if name is not None and (name or key == "runtimeClassName") and (problems := subdomain(name)):
            causes.extend(invalid(f"{path}.{key}", name, problem) for problem in problems)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32_MAX:
        causes.invalid(f"{path}.activeDeadlineSeconds", deadline, between_text(1, _INT32_MAX))
    for key in ("hostname", "subdomain"):
        if name := spec.get(key):
            causes.check(dns_label, name, f"{path}.{key}")
    if "tolerations" in spec:
        tolerations(spec["tolerations"], f"{path}.tolerations", causes)
    for index, alias in enumerate(spec.get("hostAliases", ())):
        ip(alias.get("ip", ""), f"{path}.hostAliases[{index}].ip", causes)
        for place, name in enumerate(alias.get("hostnames", ())):
            causes.check(subdomain, name, f"{path}.hostAliases[{index}].hostnames[{place}]")
    _SPEC.check(spec, path, causes, "preemptionPolicy")
    if "overhead" in spec:
        resources({"limits": spec["overhead"]}, f"{path}.overhead", causes)
    if "os" in spec:
        operating_system(spec, path, causes)
    if "schedulingGroup" in spec:
        _group(spec["schedulingGroup"], f"{path}.schedulingGroup", causes)
    _file_keys(spec, path, causes)


def _group(group: Mapping[str, Any], path: str, causes: Causes) -> None:
    name = group.get("podGroupName")
    if name is None:
        causes.invalid(f"{path}.podGroupName", None, "must specify one of: `podGroupName`")
    else:
        causes.check(subdomain, name, f"{path}.podGroupName")


def _hostname(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    name = spec["hostnameOverride"]
    if spec.get("setHostnameAsFQDN"):
        causes.forbidden(path, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        causes.forbidden(path, "may not be specified when hostNetwork is true")
    if len(name) > _MAX_HOSTNAME:
        causes.too_long(path, _MAX_HOSTNAME)
    causes.check(subdomain, name, path)


def _host_network(found: Sequence[Mapping[str, Any]], is_pod: bool, path: str, causes: Causes) -> None:
    for index, container in enumerate(found):
        for place, port in enumerate(container.get("ports", ())):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                detail = "must match `containerPort` when `hostNetwork` is true"
                causes.invalid(f"{path}[{index}].ports[{place}].hostPort", host, detail)


def _dns(config: Mapping[str, Any] | None, policy: str, path: str, causes: Causes) -> None:
    if policy == "None":
        if config is None:
            causes.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            causes.required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
            return
    config = config or {}
    servers, searches = config.get("nameservers", ()), config.get("searches", ())
    if len(servers) > _MAX_NAMESERVERS:
        causes.invalid(f"{path}.nameservers", servers, f"must not have more than {_MAX_NAMESERVERS} nameservers")
    for index, server in enumerate(servers):
        ip(server, f"{path}.nameservers[{index}]", causes)
    if len(searches) > _MAX_SEARCHES:
        causes.invalid(f"{path}.searches", searches, f"must not have more than {_MAX_SEARCHES} search paths")
    if len(" ".join(searches)) > _MAX_SEARCH_LENGTH:
        detail = f"must not have more than {_MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        causes.invalid(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            causes.check(underscored_subdomain, search.removesuffix("."), f"{path}.searches[{index}]")
    for index, option in enumerate(config.get("options", ())):
        causes.require(option.get("name"), f"{path}.options[{index}]", "must not be empty")


def _resource_claims(claims: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at, name = f"{path}[{index}]", claim.get("name", "")
        own, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": own, "ResourceClaimTemplateName": template}
        if not name:
            causes.required(f"{at}.name")
        elif name in seen:
            causes.duplicate(f"{at}.name", name)
        else:
            causes.check(dns_label, name, f"{at}.name")
            seen.add(name)
        if own is not None and template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.invalid(at, shown, detail)
        if own is None and template is None:
            causes.invalid(at, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for key in ("resourceClaimName", "resourceClaimTemplateName"):
            if key in claim:
                causes.check(subdomain, claim[key], f"{at}.{key}")


def _pod_resources(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Pod-level resources must cover the sum of the containers'."""
    own, at = spec["resources"], f"{path}.resources"
    if spec.get("os", {}).get("name") == "windows":
        causes.forbidden(at, "may not be set for a windows pod")
        return
    if own.get("claims"):
        causes.forbidden(f"{at}.claims", "claims may not be set for Resources at pod-level")
    resources({**own, "claims": ()}, at, causes, name_check=pod_resource_name)
    inits, found = spec.get("initContainers", ()), spec.get("containers", ())
    for which in ("requests", "limits"):
        for name, total in total_of(found, inits, which).items():
            have = own.get(which, {}).get(name)
            if have is None or (which == "limits" and not is_huge_pages(name)) or total <= nanos(have):
                continue
            shown = written(total, binary=text_of(have).endswith("i"))
            detail = f"must be greater than or equal to aggregate container {which} of {shown}"
            causes.invalid(f"{at}.{which}[{name}]", text_of(have), detail)
    for index, container in enumerate(found):
        for name, limit in container.get("resources", {}).get("limits", {}).items():
            have = own.get("limits", {}).get(name)
            if have is not None and nanos(limit) > nanos(have):
                detail = f"must be less than or equal to pod limits of {have}"
                causes.invalid(f"{at}.containers[{index}][{name}].limits", text_of(limit), detail)


def _file_keys(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Variables that come from files need an emptyDir volume."""
    for where, container in every_container(spec):
        for index, variable in enumerate(container.get("env", ())):
            ref = variable.get("valueFrom", {}).get("fileKeyRef")
            if ref is None:
                continue
            name = ref.get("volumeName", "")
            at = f"{path}.{where}.env[{index}].valueFrom.fileKeyRef.volumeName"
            named = [one for one in spec.get("volumes", ()) if one.get("name", "") == name]
            if not named:
                causes.not_found(at, name)
            elif "emptyDir" not in named[-1]:
                causes.invalid(at, name, "referenced volume must be of type emptyDir")


def pod_annotations(annotations: Mapping[str, str], spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Check the annotations that Kubernetes itself reads."""
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        causes.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_deletion_cost(cost):
        causes.invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer")


def _is_deletion_cost(text: str) -> bool:
    digits = text.removeprefix("-")
    if digits[:1] in ("+", "-") or (len(digits) > 1 and digits[0] == "0"):
        return False
    return parse_int32(text) is not None
