"""The table of messages and fields of all kinds, and the decoder that reads objects by it as kube-apiserver does.

Pure: bytes or objects in, objects out. Nothing here validates values.
"""

from situate.wire.schema.decoder import (
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
