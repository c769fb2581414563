"""Common rules for the status of objects: its initial value, and counts that bound each other."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import dns_label
from situate.server.objects import Object

MORE_THAN_ALL: Final = "cannot be greater than status.replicas"


def reset_status(*zeros: str) -> Callable[[Object], None]:
    """On creation: ignore the client's status. The named counts are 0, because Go always writes them."""

    def reset(obj: Object) -> None:
        obj["status"] = dict.fromkeys(zeros, 0)

    return reset


def check_at_most(status: Mapping[str, Any], names: Sequence[str], limit: str, text: str, causes: Causes) -> None:
    """None of the named counts may exceed another one."""
    for name in names:
        if status.get(name, 0) > status.get(limit, 0):
            causes.invalid(f"status.{name}", status.get(name, 0), text)


def check_not_decreased(new: Mapping[str, Any], old: Mapping[str, Any], name: str, causes: Causes) -> None:
    if name in old and new.get(name, -1) < old[name]:
        causes.invalid(f"status.{name}", new.get(name, 0), "cannot be decremented")


def name_warnings(obj: Object) -> list[str]:
    """Warn about a name that is not a valid hostname, because pods derive theirs from it."""
    problems = dns_label(obj.get("metadata", {}).get("name", ""))
    if not problems:
        return []
    text = (
        "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended"
    )
    return [f"metadata.name: {text}: [{' '.join(problems)}]"]


def within_replicas(status: Mapping[str, Any], causes: Causes) -> None:
    """The counts of a ReplicaSet or a ReplicationController."""
    within = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    check_at_most(status, within, "replicas", MORE_THAN_ALL, causes)
    check_at_most(status, ("availableReplicas",), "readyReplicas", "cannot be greater than readyReplicas", causes)
