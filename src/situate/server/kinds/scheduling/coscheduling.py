"""PodGroup of scheduling.x-k8s.io, the custom resource of the coscheduling plugin."""

from typing import Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again, keep_status
from situate.server.objects import Object

_SPEC: Final = FieldChecks("x.v1alpha1.PodGroupSpec")


def _validate_plugin_group(obj: Object, causes: Causes) -> None:
    """As its CustomResourceDefinition does: types and ranges only."""
    _SPEC.check(obj.get("spec", {}), "spec", causes)


KIND: Final = Kind(
    "scheduling.x-k8s.io/v1alpha1 podgroups PodGroup N pg,pgs - | status",
    strategy=Strategy(
        prepare_update=keep_status,
        validate=_validate_plugin_group,
        validate_update=again(_validate_plugin_group),
        counts_generation=True,
    ),
    columns="""
        Name!, Phase = status.phase|null, MinMember# = spec.minMember|null, Running# = status.running|null,
        Succeeded# = status.succeeded|null, Failed# = status.failed|null, Age@
        """,
    rights={"view": "R; R status", "edit": "W", "situate:scheduler": "R; patch,update status"},
    description="PodGroup is a set of pods that are scheduled together, or not at all.",
)
