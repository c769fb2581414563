"""DevicePool: who has which devices of a pool. Only server/placing writes it."""

from typing import Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

_DEVICE: Final = FieldChecks("situate.v1alpha1.HeldDevice")


def _validate_pool(obj: Object, causes: Causes) -> None:
    for index, device in enumerate(obj.get("spec", {}).get("devices", ())):
        _DEVICE.check(device, f"spec.devices[{index}]", causes)


KIND: Final = Kind(
    "situate.dev/v1alpha1 devicepools DevicePool C dpool situate ! get list watch",
    strategy=Strategy(validate=_validate_pool, validate_update=again(_validate_pool)),
    columns="Name!, Driver = spec.driver, Pool = spec.pool, Held# = count(spec.devices), Age",
    rights={"view": "R", "situate:scheduler": "R"},
    description="DevicePool is the ledger of a driver's pool: the devices that claims hold. An unused pool has none.",
    words={
        "DevicePoolSpec.devices": "The devices that claims hold, without those of claims with admin access.",
        "HeldDevice.claim": "The name of the claim.",
        "HeldDevice.consumed": "What the claim takes of the capacity of a shared device.",
        "HeldDevice.share": "The share of a shared device; without it, the claim has the device alone.",
    },
)
