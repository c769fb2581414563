"""The status that both kinds have, and why neither has an effect."""

from typing import Final

from situate.server.kinds.field_errors import Causes
from situate.server.objects import Object

WHY: Final = "the server limits requests by priority levels of its own"


def drop_status(obj: Object) -> None:
    obj["status"] = {}


def validate_status(new: Object, _old: Object, causes: Causes) -> None:
    seen: set[str] = set()
    for index, one in enumerate(new.get("status", {}).get("conditions", ())):
        path = f"status.conditions[{index}].type"
        causes.unique(one.get("type", ""), seen, path)
        causes.require(one.get("type"), path)
