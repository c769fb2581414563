"""Request bodies in Kubernetes' protobuf, read by the table of wire/schema. Answers are never written in it."""

from situate.wire.protobuf.reading import MAGIC, from_protobuf

__all__ = ["MAGIC", "from_protobuf"]
