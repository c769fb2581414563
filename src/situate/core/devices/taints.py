"""Whether a request tolerates the taints of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from situate.core.model.devices import DeviceTaint, DeviceToleration

_PREVENTING: Final = ("NoSchedule", "NoExecute")


def is_tolerated(taint: DeviceTaint, tolerations: Sequence[DeviceToleration]) -> bool:
    """Taints of other effects, known or not, keep nobody away."""
    return taint.effect not in _PREVENTING or any(tolerates(one, taint) for one in tolerations)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
