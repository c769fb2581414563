"""PodGroup of scheduling.x-k8s.io, the custom resource of the coscheduling plugin."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.fields import Fields
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again, keep_status
from situate.server.objects import Object
from situate.server.tables.columns import table

__all__ = ["KIND"]

_SPEC: Final = Fields("x.v1alpha1.PodGroupSpec")


def _validate_plugin_group(obj: Object, causes: Causes) -> None:
    """As its CustomResourceDefinition says: types, and no more than that."""
    _SPEC.check(obj.get("spec", {}), "spec", causes)


KIND: Final = Kind(
    group="scheduling.x-k8s.io",
    name="PodGroup",
    versions=("v1alpha1",),
    short_names=("pg", "pgs"),
    subresources=("status",),
    strategy=Strategy(
        prepare_update=keep_status,
        validate=_validate_plugin_group,
        validate_update=again(_validate_plugin_group),
        counts_generation=True,
    ),
    table=table(
        """
        Name!, Phase = status.phase|null, MinMember# = spec.minMember|null, Running# = status.running|null,
        Succeeded# = status.succeeded|null, Failed# = status.failed|null, Age@
        """
    ),
    rights={"view": "R; R status", "edit": "W", "situate:scheduler": "R; patch,update status"},
    description="PodGroup is a set of pods that are scheduled together, or not at all.",
)
