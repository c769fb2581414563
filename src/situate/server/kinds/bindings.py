"""Binding: a pod, and the node it shall run on. Answered, never stored."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.strategy import Strategy
from situate.server.kinds.validating import Causes, not_supported, required
from situate.server.requests import Object

__all__ = ["STRATEGY"]


def _validate(binding: Object) -> Causes:
    causes: Causes = []
    target = binding.get("target", {})
    kind = target.get("kind", "")
    if kind not in ("", "Node"):
        causes.append(not_supported("target.kind", kind, ("Node", "<empty>")))
    if not target.get("name"):
        causes.append(required("target.name"))
    return causes


STRATEGY: Final = Strategy(validate=_validate)
