"""Patches as an API server applies them, on decoded JSON: merge, JSON, strategic merge, and server-side apply.

Pure: an object and a patch in, an object out, nothing changed in place. The decoder of the bodies limits
bytes and depth; defaults, validation and dry run are the server's.
"""

from situate.wire.patching.apply import LAST_APPLIED, CustomMerge, FieldWriter, applied, updated
from situate.wire.patching.errors import ApplyConflictError, Conflict, PatchError, UnmetTestError
from situate.wire.patching.json_patch import MAX_OPERATIONS, json_patched
from situate.wire.patching.merge import merge_patched
from situate.wire.patching.owned import without_nulls
from situate.wire.patching.schema import MergeSchema, merge_schema
from situate.wire.patching.strategic import strategic_patched

__all__ = [
    "LAST_APPLIED",
    "MAX_OPERATIONS",
    "ApplyConflictError",
    "Conflict",
    "CustomMerge",
    "PatchError",
    "MergeSchema",
    "FieldWriter",
    "UnmetTestError",
    "applied",
    "json_patched",
    "merge_patched",
    "merge_schema",
    "strategic_patched",
    "updated",
    "without_nulls",
]
