"""FlowSchema: which requests belong to a priority level. It is kept, and decides nothing here."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.flowcontrol.status import WHY, drop_status, validate_status
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.networking.kept import kept
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object

EXEMPT: Final = "exempt"
PRECEDENCE: Final = 1_000
MOST_PRECEDENCE: Final = 10_000
METHODS: Final = ("ByNamespace", "ByUser")
VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
SUBJECTS: Final = ("Group", "ServiceAccount", "User")
_NAMESPACE: Final = "each member of this list must be '*' or a DNS-1123 label; "
_FIELDS: Final = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}


def _default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or PRECEDENCE


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    _precedence(obj["metadata"].get("name", ""), spec.get("matchingPrecedence", 0), causes)
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in METHODS:
        causes.not_supported("spec.distinguisherMethod.type", {"Type": method.get("type", "")}, METHODS)
    level, path = spec.get("priorityLevelConfiguration", {}).get("name", ""), "spec.priorityLevelConfiguration.name"
    if level:
        causes.check(subdomain, level, path)
    else:
        causes.required(path, "must reference a priority level")
    for index, rule in enumerate(spec.get("rules", ())):
        _rule(rule, f"spec.rules[{index}]", causes)
    validate_status(obj, obj, causes)


def _precedence(name: str, number: int, causes: Causes) -> None:
    path = "spec.matchingPrecedence"
    if number <= 0:
        causes.invalid(path, number, "must be a positive value")
    if number > MOST_PRECEDENCE:
        causes.invalid(path, number, f"must not be greater than {MOST_PRECEDENCE}")
    if number == 1 and name != EXEMPT:
        causes.invalid(path, number, "only the schema named 'exempt' may have matchingPrecedence 1")


def _rule(rule: Mapping[str, Any], path: str, causes: Causes) -> None:
    if not rule.get("subjects"):
        causes.required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(rule.get("subjects", ())):
        _subject(subject, f"{path}.subjects[{index}]", causes)
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        causes.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, one in enumerate(rule.get("resourceRules", ())):
        _resource_rule(one, f"{path}.resourceRules[{index}]", causes)
    for index, one in enumerate(rule.get("nonResourceRules", ())):
        _path_rule(one, f"{path}.nonResourceRules[{index}]", causes)


def _subject(subject: Mapping[str, Any], path: str, causes: Causes) -> None:
    kind = subject.get("kind", "")
    if kind not in SUBJECTS:
        causes.not_supported(f"{path}.kind", kind, SUBJECTS)
        return
    own = _FIELDS[kind]
    if own not in subject:
        causes.required(f"{path}.{own}", f"{own} is required when subject kind is '{kind}'")
    else:
        _named(kind, subject[own], f"{path}.{own}", causes)
    # The order in which kube-apiserver looks at the others.
    for other in ("ServiceAccount", "User", "Group"):
        if other != kind and _FIELDS[other] in subject:
            text = f"{_FIELDS[other]} is forbidden when subject kind is not '{other}'"
            causes.forbidden(f"{path}.{_FIELDS[other]}", text)


def _named(kind: str, subject: Mapping[str, Any], path: str, causes: Causes) -> None:
    name = subject.get("name", "")
    if not name:
        causes.required(f"{path}.name")
    elif kind == "ServiceAccount" and name != "*":
        causes.check(subdomain, name, f"{path}.name")
    if kind == "ServiceAccount":
        if space := subject.get("namespace", ""):
            causes.check(dns_label, space, f"{path}.namespace")
        else:
            causes.required(f"{path}.namespace", "must specify namespace for service account")


def _resource_rule(rule: Mapping[str, Any], path: str, causes: Causes) -> None:
    _verbs(rule.get("verbs", ()), f"{path}.verbs", causes)
    _some(rule.get("apiGroups", ()), f"{path}.apiGroups", "api group", "api groups", causes)
    _some(rule.get("resources", ()), f"{path}.resources", "resource", "resources", causes)
    spaces: Sequence[str] = rule.get("namespaces", ())
    if not spaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        causes.required(f"{path}.namespaces", text)
    elif "*" in spaces:
        _alone(spaces, f"{path}.namespaces", "namespaces", causes)
    else:
        for index, space in enumerate(spaces):
            for problem in dns_label(space):
                causes.invalid(f"{path}.namespaces[{index}]", space, _NAMESPACE + problem)


def _some(values: Sequence[str], path: str, one: str, several: str, causes: Causes) -> None:
    if not values:
        causes.required(path, f"resource rules must supply at least one {one}")
    elif "*" in values:
        _alone(values, path, several, causes)


def _alone(values: Sequence[str], path: str, several: str, causes: Causes) -> None:
    if len(values) > 1:
        causes.invalid(path, list(values), f"if '*' is present, must not specify other {several}")


def _verbs(verbs: Sequence[str], path: str, causes: Causes) -> None:
    if not verbs:
        causes.required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        _alone(verbs, path, "verbs", causes)
    elif any(verb not in VERBS for verb in verbs):
        causes.not_supported(path, list(verbs), VERBS)


def _path_rule(rule: Mapping[str, Any], path: str, causes: Causes) -> None:
    _verbs(rule.get("verbs", ()), f"{path}.verbs", causes)
    urls: Sequence[str] = rule.get("nonResourceURLs", ())
    if not urls:
        causes.required(f"{path}.nonResourceURLs", "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        _alone(urls, f"{path}.nonResourceURLs", "non-resource URLs", causes)
    else:
        for index, url in enumerate(urls):
            if problem := _path_problem(url):
                causes.invalid(f"{path}.nonResourceURLs[{index}]", url, problem)


def _path_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars == 1 and not url.endswith("/*")) else ""


def _validate_update(new: Object, _old: Object, causes: Causes) -> None:
    _validate(new, causes)


def _dangling(obj: Object) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(one.get("status", "")) for one in conditions if one.get("type") == "Dangling"), "?")


KIND: Final = Kind(
    "flowcontrol.apiserver.k8s.io/v1 flowschemas FlowSchema C - - | status",
    strategy=Strategy(
        default=_default,
        prepare_create=drop_status,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=validate_status,
        counts_generation=True,
        warnings=kept("FlowSchema", WHY),
    ),
    columns="""
        Name!, PriorityLevel = spec.priorityLevelConfiguration.name, MatchingPrecedence = spec.matchingPrecedence,
        DistinguisherMethod = spec.distinguisherMethod.type|<none>, Age, MissingPL
        """,
    cells={"MissingPL": _dangling},
    description="FlowSchema assigns requests to a priority level.",
)
