"""LimitRanges: minimum, maximum and default amounts, which must agree with each other."""

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.core.model.quantity import NANO
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.quantities import (
    STORAGE,
    container_resource_name,
    may_overcommit,
    nanos,
    resource_name,
    round_amounts,
    text_of,
)
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_LISTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _default(obj: Object) -> None:
    for item in obj.get("spec", {}).get("limits", ()):
        for key in _LISTS:
            round_amounts(item.get(key))
        if item.get("type") == "Container":
            limits = {**item.get("max", {}), **item.get("default", {})}
            requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
            if limits:
                item["default"] = limits
            if requests:
                item["defaultRequest"] = requests


def _validate(obj: Object, causes: Causes) -> None:
    seen: set[str] = set()
    for index, item in enumerate(obj.get("spec", {}).get("limits", ())):
        at, kind = f"spec.limits[{index}]", item.get("type", "")
        if qualified_name_problems(kind):
            causes.check(qualified_name_problems, kind, f"{at}.type")
        elif "/" not in kind and kind not in TYPES:
            causes.invalid(f"{at}.type", kind, "must be a standard limit type or fully qualified")
        causes.unique(kind, seen, f"{at}.type")
        _item(item, kind, at, causes)


def _item(item: Mapping[str, Any], kind: str, path: str, causes: Causes) -> None:
    for key in _LISTS[:2]:
        _names(item, key, kind, path, causes)
    lists: tuple[str, ...] = _LISTS
    if kind == "Pod":
        lists = ("max", "min", "maxLimitRequestRatio")
        for key in ("default", "defaultRequest"):
            if item.get(key):
                causes.forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'")
    else:
        for key in _LISTS[2:4]:
            _names(item, key, kind, path, causes)
    if kind == "PersistentVolumeClaim" and STORAGE not in item.get("min", {}) and STORAGE not in item.get("max", {}):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        causes.required(f"{path}.limits", detail)
    _names(item, _LISTS[4], kind, path, causes)
    names: dict[str, None] = {}
    for key in lists:
        names.update(dict.fromkeys(item.get(key, ())))
    for name in names:
        _amounts({key: item.get(key, {}).get(name) for key in lists}, name, path, causes)


def _names(item: Mapping[str, Any], key: str, kind: str, path: str, causes: Causes) -> None:
    rule = container_resource_name if kind in ("Pod", "Container") else resource_name
    for name in item.get(key, ()):
        rule(name, f"{path}.{key}[{name}]", causes)


def _more(first: Any, second: Any) -> bool:
    return first is not None and second is not None and nanos(first) > nanos(second)


def _amounts(found: Mapping[str, Any], name: str, path: str, causes: Causes) -> None:
    least, most = found.get("min"), found.get("max")
    usual, asked = found.get("default"), found.get("defaultRequest")

    def say(key: str, shown: Any, detail: str) -> None:
        causes.invalid(f"{path}.{key}[{name}]", text_of(shown), detail)

    if _more(least, most):
        say("min", least, f"min value {least} is greater than max value {most}")
    if _more(least, asked):
        say("defaultRequest", asked, f"min value {least} is greater than default request value {asked}")
    if _more(asked, most):
        say("defaultRequest", asked, f"default request value {asked} is greater than max value {most}")
    if _more(asked, usual):
        say("defaultRequest", asked, f"default request value {asked} is greater than default limit value {usual}")
    if _more(least, usual):
        say("default", least, f"min value {least} is greater than default value {usual}")
    if _more(usual, most):
        say("default", most, f"default value {usual} is greater than max value {most}")
    ratio = found.get("maxLimitRequestRatio")
    if ratio is not None:
        _ratio(ratio, least, most, f"{path}.maxLimitRequestRatio[{name}]", causes)
    if not may_overcommit(name) and usual is not None and asked is not None and nanos(usual) != nanos(asked):
        say("defaultRequest", asked, f"default value {usual} must equal to defaultRequest value {asked} in {name}")


def _ratio(ratio: Any, least: Any, most: Any, path: str, causes: Causes) -> None:
    if nanos(ratio) < NANO:
        causes.invalid(path, text_of(ratio), f"ratio {ratio} is less than 1")
    if least is not None and most is not None and nanos(least) > 0:
        limit = nanos(most) / nanos(least)
        if nanos(ratio) / NANO > limit:
            causes.invalid(path, text_of(ratio), f"ratio {ratio} is greater than max/min = {limit:f}")


KIND: Final = Kind(
    "v1 limitranges LimitRange N limits -",
    strategy=Strategy(
        default=_default,
        validate=_validate,
        validate_update=again(_validate),
        creates_on_update=True,
    ),
    description="LimitRange sets limits and defaults for the resources of pods and containers in a namespace.",
)
