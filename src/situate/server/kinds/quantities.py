"""Validation of resource lists: names, amounts, and requests against limits. Amounts are compared exactly."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from situate.core.model.field_errors import quoted
from situate.core.model.names import qualified_name_problems
from situate.core.model.quantity import NANO, QuantityError, parse_milli, parse_quantity
from situate.server.kinds.field_errors import NOT_NEGATIVE, Causes, invalid
from situate.server.kinds.names import dns_label

ResourceList: TypeAlias = Mapping[str, Any]
NameCheck: TypeAlias = Callable[[str, str, Causes], None]

CPU, MEMORY, EPHEMERAL, STORAGE = "cpu", "memory", "ephemeral-storage", "storage"
HUGE_PAGES: Final = "hugepages-"
_DEFAULT_NAMESPACE: Final = "kubernetes.io/"
_REQUESTS: Final = "requests."

_CONTAINER: Final = frozenset((CPU, MEMORY, EPHEMERAL))
_COUNTED: Final = frozenset(
    [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ]
)
QUOTA_NAMES: Final = _COUNTED | frozenset(
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    ]
)
_STANDARD: Final = QUOTA_NAMES | {STORAGE}
_POD_LEVEL: Final = ("cpu", "hugepages-", "memory")

NOT_AN_INTEGER: Final = "must be an integer"
NOT_POSITIVE: Final = "must be greater than zero"
_MILLI_NANOS = NANO // 1000
_DECIMAL_SUFFIXES = ("m", "", "k", "M", "G", "T", "P", "E")
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_KIBI = 1024


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_huge_pages(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    """A resource of Kubernetes, not of a device plugin."""
    return "/" not in name or _DEFAULT_NAMESPACE in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith(_REQUESTS):
        return False
    return not qualified_name_problems(_REQUESTS + name)


def may_overcommit(name: str) -> bool:
    """Requests may be less than limits."""
    return is_native(name) and not is_huge_pages(name)


def _is_quota_huge_pages(name: str) -> bool:
    return name.startswith((HUGE_PAGES, _REQUESTS + HUGE_PAGES))


def is_quota_name(name: str) -> bool:
    return name in QUOTA_NAMES or _is_quota_huge_pages(name)


def is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or is_huge_pages(name)


def resource_name(name: str, path: str, causes: Causes) -> None:
    if problems := qualified_name_problems(name):
        causes.extend(invalid(path, name, problem) for problem in problems)
    elif "/" not in name and name not in _STANDARD and not _is_quota_huge_pages(name):
        causes.invalid(path, name, "must be a standard resource type or fully qualified")


def container_resource_name(name: str, path: str, causes: Causes) -> None:
    if name in _CONTAINER:
        return
    resource_name(name, path, causes)
    if "/" not in name:
        if not is_huge_pages(name):
            causes.invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        causes.invalid(path, name, "doesn't follow extended resource name standard")


def pod_resource_name(name: str, path: str, causes: Causes) -> None:
    before = len(causes)
    resource_name(name, path, causes)
    if len(causes) == before and not is_pod_level(name):
        causes.not_supported(path, name, _POD_LEVEL)


def quota_resource_name(name: str, path: str, causes: Causes) -> None:
    resource_name(name, path, causes)
    if "/" not in name and not is_quota_name(name):
        causes.invalid(path, name, "must be a standard resource for quota")


# ── amounts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def nanos(raw: Any) -> int:
    """The amount in billionths. Decoding refuses invalid quantities; here they count as 0."""
    try:
        return parse_quantity(raw)
    except QuantityError:
        return 0


def rounded(raw: Any) -> Any:
    """The amount as kube-apiserver stores it in resource lists: rounded up to thousandths."""
    try:
        return _rounded(raw)
    except QuantityError:
        return raw


@lru_cache(maxsize=16_384)
def _rounded(raw: Any) -> Any:
    return raw if parse_quantity(raw) % _MILLI_NANOS == 0 else _decimal(parse_milli(raw))


def round_amounts(found: dict[str, Any] | None) -> None:
    """Round a list of resources up to thousandths, in place."""
    if found:
        for name, raw in found.items():
            kept = rounded(raw)
            if kept is not raw:
                found[name] = kept


def written(total: int, *, binary: bool) -> str:
    """Billionths as text: with Ki, Mi and so on if `binary` and exact, else with decimal suffixes."""
    units, rest = divmod(total, NANO)
    if binary and not rest and units >= _KIBI:
        power = 0
        while units % _KIBI == 0 and power < len(_BINARY_SUFFIXES) - 1:
            units, power = units // _KIBI, power + 1
        return f"{units}{_BINARY_SUFFIXES[power]}"
    return _decimal(-(-total // _MILLI_NANOS))


def _decimal(millis: int) -> str:
    number, power = millis, 0
    while number % 1000 == 0 and number and power < len(_DECIMAL_SUFFIXES) - 1:
        number, power = number // 1000, power + 1
    return f"{number}{_DECIMAL_SUFFIXES[power]}" if number else "0"


def text_of(raw: Any) -> str:
    return raw if isinstance(raw, str) else str(raw)


def amount(name: str, raw: Any, path: str, causes: Causes) -> None:
    """The amount must not be negative, and must be whole if the resource is counted."""
    exact = nanos(raw)
    if exact < 0:
        causes.invalid(path, text_of(raw), NOT_NEGATIVE)
    if (name in _COUNTED or "/" in name) and exact % NANO and (name in _COUNTED or is_extended(name)):
        causes.invalid(path, text_of(raw), NOT_AN_INTEGER)


def basic_amount(raw: Any, path: str, causes: Causes) -> None:
    exact = nanos(raw)
    if exact <= -NANO:
        causes.invalid(path, -(-exact // NANO), "must be a valid resource quantity")


def positive_amount(raw: Any, path: str, causes: Causes) -> None:
    if nanos(raw) <= 0:
        causes.invalid(path, text_of(raw), NOT_POSITIVE)


def _indivisible(name: str, raw: Any) -> bool:
    page = nanos(name[len(HUGE_PAGES) :])
    return page <= 0 or page % NANO != 0 or -(-nanos(raw) // NANO) % (page // NANO) != 0


def fractions(resources: Mapping[str, Any], names: tuple[str, ...], path: str, found: list[str]) -> None:
    """Warn about fractions of a byte."""
    for name in names:
        for which in ("limits", "requests"):
            raw = resources.get(which, {}).get(name)
            if raw is not None and nanos(raw) % NANO:
                detail = f"fractional byte value {quoted(str(raw))} is invalid, must be an integer"
                found.append(f"{path}.{which}[{name}]: {detail}")


# ── requests and limits ─────────────────────────────────────────────────────────────────────────────────────────────


def resources(
    found: Mapping[str, Any],
    path: str,
    causes: Causes,
    claims: Collection[str] = (),
    name_check: NameCheck = container_resource_name,
) -> None:
    """ResourceRequirements of a container, or of a pod with another rule for names."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for name, raw in limits.items():
        _entry(name, raw, f"{path}.limits[{name}]", name_check, causes)
    for name, raw in requests.items():
        _request(name, raw, limits, path, name_check, causes)
    computes = CPU in limits or MEMORY in limits or CPU in requests or MEMORY in requests
    if not computes and (any(map(is_huge_pages, limits)) or any(map(is_huge_pages, requests))):
        causes.forbidden(path, "HugePages require cpu or memory")
    if named := found.get("claims"):
        _claims(named, claims, f"{path}.claims", causes)


def _entry(name: str, raw: Any, path: str, name_check: NameCheck, causes: Causes) -> None:
    name_check(name, path, causes)
    amount(name, raw, path, causes)
    if is_huge_pages(name) and _indivisible(name, raw):
        causes.invalid(path, text_of(raw), f"{text_of(raw)} is not positive integer multiple of {name}")


def _request(name: str, raw: Any, limits: ResourceList, path: str, name_check: NameCheck, causes: Causes) -> None:
    _entry(name, raw, f"{path}.requests[{name}]", name_check, causes)
    limit = limits.get(name)
    if limit is not None:
        if limit is not raw and (asked := nanos(raw)) != (allowed := nanos(limit)):
            if not may_overcommit(name):
                causes.invalid(f"{path}.requests", text_of(raw), f"must be equal to {name} limit of {limit}")
            elif asked > allowed:
                detail = f"must be less than or equal to {name} limit of {limit}"
                causes.invalid(f"{path}.requests", text_of(raw), detail)
    elif not may_overcommit(name):
        causes.required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _claims(named: Sequence[Mapping[str, Any]], known: Collection[str], path: str, causes: Causes) -> None:
    seen: set[str] = set()
    of_claim: Counter[str] = Counter()
    """How many of those seen are of a claim, whatever their request."""
    names, listed = set(known), f": {', '.join(sorted(known))}" if known else " which is empty"
    for index, claim in enumerate(named):
        at, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            causes.required(at)
            continue
        if name in seen:
            causes.duplicate(at, name)
        else:
            key = f"{name}/{request}" if request else name
            if request:
                causes.check(dns_label, request, f"{at}.request")
            if key in seen:
                causes.duplicate(at, key)
            elif not request:
                for _ in range(of_claim[name]):
                    causes.duplicate(at, name)
            if key not in seen:
                of_claim[key.partition("/")[0]] += 1
            seen.add(key)
        if name not in names:
            causes.not_found(at, name, f"must be one of the names in pod.spec.resourceClaims{listed}")
