"""The kinds that are served: one table of their messages and fields, and reading objects by it as an API server does.

Pure: bytes or objects in, objects out. What a value means, and whether it makes sense, is not asked here.
"""

from situate.wire.schema.decoding import (
    Decoded,
    DecodeError,
    checked,
    decode,
    duplicate_fields,
    normalised,
    strict_refusal,
)
from situate.wire.schema.table import Field, Message, Type, flat_fields, kinds, message, message_of

__all__ = [
    "DecodeError",
    "Decoded",
    "Field",
    "Message",
    "Type",
    "checked",
    "decode",
    "duplicate_fields",
    "flat_fields",
    "kinds",
    "message",
    "message_of",
    "normalised",
    "strict_refusal",
]
