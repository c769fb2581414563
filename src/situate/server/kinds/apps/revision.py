"""ControllerRevisions: what was, kept by StatefulSets and DaemonSets; it may be renumbered and never changed."""

from __future__ import annotations

from typing import Final

from situate.server.errors import Cause
from situate.server.kinds.strategy import Strategy
from situate.server.kinds.validating import Causes, at_least_zero, immutable, required
from situate.server.requests import Object

__all__ = ["STRATEGY"]


def _default(obj: Object) -> None:
    obj.setdefault("revision", 0)


def _validate(obj: Object) -> list[Cause]:
    causes: Causes = []
    at_least_zero(obj.get("revision", 0), "revision", causes)
    data = obj.get("data")
    if data is None:
        causes.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        causes.append(required("data", "data must be a valid JSON object"))
    return causes


def _validate_update(new: Object, old: Object) -> list[Cause]:
    causes: Causes = []
    at_least_zero(new.get("revision", 0), "revision", causes)
    immutable(new.get("data"), old.get("data"), "data", causes)
    return causes


STRATEGY: Final = Strategy(default=_default, validate=_validate, validate_update=_validate_update)
