"""Pods as controllers read them: those of one template share the decoded parts of their specs.

The specs of thousands of pods differ in the node's name at most. Decoded for each pod, they would fill the memory, and
the garbage collector would look at all of them.
"""

from __future__ import annotations

from sys import intern
from typing import Final

import msgspec
from msgspec.structs import replace

from situate.core.model.base import Model
from situate.core.model.managed import ManagedPod, ManagedPodSpec, ManagedPodStatus
from situate.core.model.stored import StoredMeta

MAX_SPECS: Final = 1_024
"""Specs that pods share. When there are more, all are forgotten."""
MAX_SPEC_BYTES: Final = 16 << 10
"""Longer ones are not shared."""
NODE_NAME: Final = b',"nodeName":"'
END: Final = b'"}'


class _Pod(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: ManagedPodStatus = ManagedPodStatus()


_decode_pod: Final = msgspec.json.Decoder(_Pod).decode
_decode_whole: Final = msgspec.json.Decoder(ManagedPod).decode
_decode_spec: Final = msgspec.json.Decoder(ManagedPodSpec).decode


class PodDecoder:
    __slots__ = ("_specs",)

    def __init__(self) -> None:
        self._specs: dict[bytes, ManagedPodSpec] = {}
        """By their JSON without the node's name."""

    def __len__(self) -> int:
        return len(self._specs)

    def decode(self, body: bytes) -> ManagedPod:
        """Raises msgspec.DecodeError."""
        try:
            pod = _decode_pod(body)
            spec = self._spec(bytes(pod.spec))
        except msgspec.DecodeError:
            return _decode_whole(body)  # says where in the pod the mistake is
        return ManagedPod(metadata=pod.metadata, spec=spec, status=pod.status)

    def _spec(self, text: bytes) -> ManagedPodSpec:
        if len(text) > MAX_SPEC_BYTES:
            return _decode_spec(text)
        rest, node = split_node(text)
        shared = self._specs.get(rest)
        if shared is None:
            shared = _decode_spec(rest)
            if len(self._specs) >= MAX_SPECS:
                self._specs.clear()
            self._specs[rest] = shared
        return replace(shared, node_name=node) if node else shared


def split_node(text: bytes) -> tuple[bytes, str]:
    """A spec without the node's name, and that name; the spec as it is, and "", unless the name is its last field, as a
    bind writes it."""
    if not text.endswith(END):
        return text, ""
    rest, found, name = text[: -len(END)].rpartition(NODE_NAME)
    if not found or b'"' in name or b"\\" in name or not name.isascii():
        return text, ""
    return rest + b"}", intern(name.decode())
