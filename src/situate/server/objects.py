"""The type of an object: a dict with the fields of its JSON."""

from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
"""An object under Kubernetes' field names. A function that stores one must not change it."""
