"""PlacementDecision: where a pod was placed and why. Only server/placing writes it."""

from typing import Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

_SPEC: Final = FieldChecks("situate.v1alpha1.PlacementDecisionSpec")
_STATUS: Final = FieldChecks("situate.v1alpha1.PlacementDecisionStatus")


def _validate_decision(obj: Object, causes: Causes) -> None:
    _SPEC.check(obj.get("spec", {}), "spec", causes)
    _STATUS.check(obj.get("status", {}), "status", causes, "phase")


KIND: Final = Kind(
    "situate.dev/v1alpha1 placementdecisions PlacementDecision N pld situate ! get list watch",
    strategy=Strategy(validate=_validate_decision, validate_update=again(_validate_decision)),
    columns="""
        Name!, Node = spec.node||<none>, Phase = status.phase, Version# = spec.bindingVersion, Age,
        +Score = text(status.score)|<none>, +Reason = status.reason||<none>
        """,
    rights={"view": "R", "situate:scheduler": "R"},
    description="PlacementDecision says where a pod was placed and why, and the state of its binding.",
    words={
        "NodeRefusals.nodes": "The number of refused nodes. A node counts once, for the first plugin that refused it.",
        "NodeRefusals.plugin": "The plugin that refused the nodes.",
        "NodeRefusals.reason": "Why the plugin refused them.",
        "NodeScore.node": "The node.",
        "NodeScore.plugins": "Each plugin's weighted part of the total.",
        "NodeScore.total": "The node's total score.",
        "PlacementDecisionSpec.bindingVersion": "The number of this binding of the pod, from 1.",
        "PlacementDecisionSpec.node": "Where the pod was placed.",
        "PlacementDecisionSpec.podUID": "The uid of the pod.",
        "PlacementDecisionSpec.scheduler": "The scheduler that decided.",
        "PlacementDecisionSpec.snapshotVersion": "The version of the NodeSnapshot that the bind was checked against.",
        "PlacementDecisionStatus.alternatives": "The best of the other nodes.",
        "PlacementDecisionStatus.attempts": "The number of attempts.",
        "PlacementDecisionStatus.feasible": "The number of suitable nodes.",
        "PlacementDecisionStatus.message": "Why the pod waits, in words.",
        "PlacementDecisionStatus.nodes": "The number of nodes that were considered.",
        "PlacementDecisionStatus.phase": "The phase of the binding, from pending to bound, running, failed or evicted.",
        "PlacementDecisionStatus.phases": "The last phases, and when each began.",
        "PlacementDecisionStatus.reason": "Why the pod waits, in a word.",
        "PlacementDecisionStatus.refusals": "How many nodes were refused for which reason.",
        "PlacementDecisionStatus.sampledFrom": "The number of nodes in the cluster, if not all were considered.",
        "PlacementDecisionStatus.score": "The score of the chosen node.",
        "PlacementDecisionStatus.scores": "The scores of the best ten nodes, best first.",
        "PlacementDecisionStatus.wakesOn": "The changes that would trigger another attempt.",
    },
)
