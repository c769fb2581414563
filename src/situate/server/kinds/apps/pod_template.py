"""What Deployments, ReplicaSets, StatefulSets and DaemonSets ask of their pods alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from situate.server.kinds.core.podtemplate import default_template, template_warnings
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.status import name_warnings
from situate.server.objects import Object

__all__ = ["default_pods", "name_and_pod_warnings", "pod_warnings", "spec_of", "that_stay"]


def spec_of(obj: Object) -> dict[str, Any]:
    found: dict[str, Any] = obj.setdefault("spec", {})
    return found


def default_pods(spec: dict[str, Any]) -> None:
    default_template(spec.setdefault("template", {}))


def that_stay(spec: Mapping[str, Any], path: str, kind: str, causes: Causes) -> None:
    """Their pods are never done."""
    pod = spec.get("template", {}).get("spec", {})
    if pod.get("restartPolicy") != "Always":
        causes.not_supported(f"{path}.template.spec.restartPolicy", pod.get("restartPolicy", ""), ["Always"])
    if "activeDeadlineSeconds" in pod:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        causes.forbidden(f"{path}.template.spec.activeDeadlineSeconds", text)


def pod_warnings(obj: Object) -> list[str]:
    return template_warnings(obj.get("spec", {}).get("template", {}), "spec.template")


def name_and_pod_warnings(obj: Object) -> list[str]:
    return [*name_warnings(obj), *pod_warnings(obj)]
