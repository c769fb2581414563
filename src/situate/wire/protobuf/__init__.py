"""Decodes request bodies in Kubernetes' protobuf, by the table of wire/schema. Responses are never protobuf."""

from situate.wire.protobuf.reading import MAGIC, from_protobuf

__all__ = ["MAGIC", "from_protobuf"]
