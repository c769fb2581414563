"""Binding: a pod and the node that it is to run on. The server answers it and does not store it."""

from typing import Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object


def _validate(binding: Object, causes: Causes) -> None:
    target = binding.get("target", {})
    kind = target.get("kind", "")
    if kind not in ("", "Node"):
        causes.not_supported("target.kind", kind, ("Node", "<empty>"))
    causes.require(target.get("name"), "target.name")


KIND: Final = Kind(
    "v1 bindings Binding N - - ! create",
    strategy=Strategy(validate=_validate),
    description="Binding ties a pod to the node on which it is to run.",
)
