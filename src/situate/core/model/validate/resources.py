"""Lists of resources: names and quantities."""

from functools import lru_cache

from situate.core.model.names import qualified_name_problems
from situate.core.model.pod import ResourceList, ResourceRequirements
from situate.core.model.quantity import QuantityError, RawQuantity, parse_milli, parse_quantity
from situate.core.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES,
    MEMORY,
    PODS,
    is_extended,
    is_native,
    may_be_pod_level,
)
from situate.core.model.validate.problem import Problems, at_key, invalid, unsupported

_CACHE_SIZE = 16_384
NEGATIVE = "must be greater than or equal to 0"
NOT_INTEGER = "must be an integer"
NOT_STANDARD = "must be a standard resource for containers"
NOT_EXTENDED = "doesn't follow extended resource name standard"


def requirements_problems(path: str, resources: ResourceRequirements, *, pod_level: bool = False) -> Problems:
    """Requests and limits, and that no request exceeds its limit."""
    limits, requests = resources.limits, resources.requests
    for field, listed in (("limits", limits), ("requests", requests)):
        for name, amount in listed.items():
            if not _is_fine(name, amount, pod_level):
                here = at_key(f"{path}.{field}", name)
                yield from _name_problems(here, name, pod_level)
                yield from quantity_problems(here, amount, whole=_is_whole(name))
    if limits:
        for name, amount in requests.items():
            if name in limits:
                yield from _limit_problems(f"{path}.requests", name, amount, limits[name])


@lru_cache(maxsize=_CACHE_SIZE)
def _is_fine(name: str, amount: RawQuantity, pod_level: bool) -> bool:
    """Whether the entry is valid. Cached, because most entries of most pods are the same."""
    found = (*_name_problems("", name, pod_level), *quantity_problems("", amount, whole=_is_whole(name)))
    return not found


def _is_whole(name: str) -> bool:
    return name == PODS or is_extended(name)


def list_problems(path: str, listed: ResourceList) -> Problems:
    for name, amount in listed.items():
        yield from quantity_problems(at_key(path, name), amount, whole=_is_whole(name))


def quantity_problems(path: str, amount: RawQuantity, *, whole: bool = False) -> Problems:
    try:
        nanos = parse_quantity(amount)
    except QuantityError as error:
        yield invalid(path, amount, str(error))
        return
    if nanos < 0:
        yield invalid(path, amount, NEGATIVE)
    if whole and parse_milli(amount) % 1000:
        yield invalid(path, amount, NOT_INTEGER)


def _limit_problems(path: str, name: str, asked: RawQuantity, limit: RawQuantity) -> Problems:
    try:
        more = parse_quantity(asked) - parse_quantity(limit)
    except QuantityError:
        return  # already reported
    if more and not (is_native(name) and not name.startswith(HUGE_PAGES)):
        yield invalid(path, asked, f"must be equal to {name} limit of {limit}")
    elif more > 0:
        yield invalid(path, asked, f"must be less than or equal to {name} limit of {limit}")


def _name_problems(path: str, name: str, pod_level: bool) -> Problems:
    problems = qualified_name_problems(name)
    for text in problems:
        yield invalid(path, name, text)
    if problems:
        return
    if pod_level:
        if not may_be_pod_level(name):
            yield unsupported(path, name, (CPU, HUGE_PAGES, MEMORY))
    elif "/" not in name:
        if name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not name.startswith(HUGE_PAGES):
            yield invalid(path, name, NOT_STANDARD)
    elif not is_native(name) and not is_extended(name):
        yield invalid(path, name, NOT_EXTENDED)
