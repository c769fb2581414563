"""Taints and tolerations."""

import re
from collections.abc import Iterable

from situate.core.model.base import Int64, Model
from situate.core.model.integers import parse_int64

NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"

# No plus sign, no leading zeros, no minus zero: the only integers that tolerations compare.
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


class Taint(Model, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Model, frozen=True, kw_only=True):
    """No key with `Exists` tolerates every taint; no effect means any; no operator means `Equal`."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


def tolerates(toleration: Toleration, taint: Taint, comparisons: bool = False) -> bool:
    """Whether the toleration covers the taint.

    `comparisons` is Kubernetes' TaintTolerationComparisonOperators, off by default: without it `Lt` and `Gt` cover
    nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator == "Exists":
        return True
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator in ("Lt", "Gt") and comparisons:
        return _compares(operator, _integer(taint.value), _integer(toleration.value))
    return False


def any_tolerates(tolerations: Iterable[Toleration], taint: Taint, comparisons: bool = False) -> bool:
    return any(tolerates(toleration, taint, comparisons) for toleration in tolerations)


def _compares(operator: str, have: int | None, bound: int | None) -> bool:
    if have is None or bound is None:
        return False
    return have < bound if operator == "Lt" else have > bound


def _integer(text: str) -> int | None:
    return parse_int64(text) if _CANONICAL_INTEGER.fullmatch(text) else None
