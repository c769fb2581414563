"""Extended resources that devices serve, by the columns of a pod's requests."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from situate.core.contract import WakeEvent
from situate.core.devices.extended import IMPLICIT_PREFIX, may_be_served
from situate.core.model.devices import DeviceClass
from situate.core.state.classes import PodClass
from situate.core.state.objects import ObjectTable

EMPTY_COLUMNS: Final[Mapping[int, str]] = MappingProxyType({})


def served_columns(pod: PodClass, objects: ObjectTable | None) -> Mapping[int, str]:
    """Column -> DeviceClass of the requested resources that a DeviceClass serves."""
    if objects is None or not (classes := objects.devices.extended.classes):
        return EMPTY_COLUMNS
    found = {}
    for name in pod.requested_names:
        served = classes.get(name)
        if served is not None and may_be_served(name):
            found[pod.requested_names[name]] = served
    return found


def serves_request(pod: PodClass, event: WakeEvent) -> bool:
    """Whether a DeviceClass that came or changed now serves a resource that the pod requests, or one that left did."""
    now, before = event.item, event.item_before
    if not isinstance(now, DeviceClass):
        return True
    names = {IMPLICIT_PREFIX + now.metadata.name}
    if now.spec.extended_resource_name is not None and (
        not isinstance(before, DeviceClass) or before.spec.extended_resource_name != now.spec.extended_resource_name
    ):
        names.add(now.spec.extended_resource_name)
    return any(name in names for name in pod.requested_names)
