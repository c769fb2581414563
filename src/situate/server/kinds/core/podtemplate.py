"""Pod templates in any kind: the defaults and validation of pods, without what only a pod has."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.core.pod import default_spec, pod_annotations, template_warnings, validate_spec
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.metadata import validate_annotations
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

__all__ = [
    "KIND",
    "default_template",
    "template_warnings",
    "validate_template",
    "validate_template_update",
    "require_restart_always",
]


def default_template(template: dict[str, Any]) -> None:
    """Set the defaults of a PodTemplateSpec in place."""
    default_spec(template.setdefault("spec", {}))


def validate_template(template: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Validate the labels, annotations and spec of a PodTemplateSpec at `path`.

    The caller checks selectors, replicas and the restart policies that its controller allows.
    """
    meta, spec = template.get("metadata", {}), template.get("spec", {})
    if found := meta.get("labels"):
        causes.labels(found, f"{path}.labels")
    if annotations := meta.get("annotations"):
        validate_annotations(annotations, f"{path}.annotations", causes)
        pod_annotations(annotations, spec, f"{path}.annotations", causes)
    validate_spec(spec, f"{path}.spec", causes)
    if spec.get("ephemeralContainers"):
        causes.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def validate_template_update(new: Mapping[str, Any], old: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Refuse any change of a template."""
    causes.immutable(new, old, path)


# ── PodTemplate, the kind ───────────────────────────────────────────────────────────────────────────────────────────


def _default(obj: Object) -> None:
    default_template(obj.setdefault("template", {}))


def _validate(obj: Object, causes: Causes) -> None:
    validate_template(obj.get("template", {}), "template", causes)


def _warnings(obj: Object) -> list[str]:
    return template_warnings(obj.get("template", {}), "template")


def require_restart_always(spec: Mapping[str, Any], path: str, kind: str, causes: Causes) -> None:
    """The pods of a controller that keeps them running must restart always."""
    pod = spec.get("template", {}).get("spec", {})
    if pod.get("restartPolicy") != "Always":
        causes.not_supported(f"{path}.template.spec.restartPolicy", pod.get("restartPolicy", ""), ["Always"])
    if "activeDeadlineSeconds" in pod:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        causes.forbidden(f"{path}.template.spec.activeDeadlineSeconds", text)


KIND: Final = Kind(
    "v1 podtemplates PodTemplate N - -",
    strategy=Strategy(
        default=_default,
        validate=_validate,
        validate_update=again(_validate),
        warnings=_warnings,
        counts_generation=True,
    ),
    columns="""
        Name!, Containers = containers(template), Images = images(template),
        Pod Labels = labels(template.metadata.labels)
        """,
    description="PodTemplate is a stored description of a pod.",
)
