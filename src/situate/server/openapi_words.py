"""Descriptions that several documents of OpenAPI have in common.

Kubernetes' own suites look for some of these phrases: "APIVersion defines", "Standard object's metadata".
"""

from typing import Final

METADATA: Final = "Standard object's metadata: the name, labels and whatever else every object has."
TYPE_FIELDS: Final = {
    "apiVersion": {
        "description": "APIVersion defines the group and version of this kind, as `apps/v1`.",
        "type": "string",
    },
    "kind": {"description": "The name of this kind.", "type": "string"},
}


def items_text(plural: str) -> str:
    """Of the items of a list."""
    return f"List of {plural}."
