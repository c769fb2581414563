"""Rules for pod templates that Deployments, ReplicaSets, StatefulSets and DaemonSets share."""

from typing import Any

from situate.server.kinds.core.podtemplate import default_template, template_warnings
from situate.server.kinds.status import name_warnings
from situate.server.objects import Object


def spec_of(obj: Object) -> dict[str, Any]:
    found: dict[str, Any] = obj.setdefault("spec", {})
    return found


def default_pods(spec: dict[str, Any]) -> None:
    default_template(spec.setdefault("template", {}))


def pod_warnings(obj: Object) -> list[str]:
    return template_warnings(obj.get("spec", {}).get("template", {}), "spec.template")


def name_and_pod_warnings(obj: Object) -> list[str]:
    return [*name_warnings(obj), *pod_warnings(obj)]
