"""Pods: defaults, preparation, validation, selectable fields and grace period. No function reads another object."""

from typing import Final

from situate.server.kinds.core.pod.defaults import default_pod, default_spec
from situate.server.kinds.core.pod.prepare import (
    grace,
    is_nameless,
    prepare_create,
    prepare_ephemeral,
    prepare_status,
    prepare_update,
    qos_class,
    selectable,
)
from situate.server.kinds.core.pod.printer import PRINTER
from situate.server.kinds.core.pod.spec import pod_annotations, validate_spec
from situate.server.kinds.core.pod.updates import validate, validate_ephemeral, validate_status, validate_update
from situate.server.kinds.core.pod.warnings import pod_warnings, template_warnings
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, SubresourceStrategy

__all__ = ["KIND", "default_spec", "pod_annotations", "qos_class", "template_warnings", "validate_spec"]

KIND: Final = Kind(
    "v1 pods Pod N po all | attach binding ephemeralcontainers eviction exec log portforward proxy status",
    strategy=Strategy(
        default=default_pod,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        prepare_status=prepare_status,
        validate=validate,
        validate_update=validate_update,
        validate_status=validate_status,
        subresources={"ephemeralcontainers": SubresourceStrategy(prepare_ephemeral, validate_ephemeral)},
        selectable=selectable,
        grace=grace,
        warnings=pod_warnings,
        is_nameless=is_nameless,
        counts_generation=True,
    ),
    printer=PRINTER,
    description="Pod is a group of containers that run together on one node.",
    words={
        "Container": "A container of a pod: one program with its image, ports, mounts and resources.",
        "PodSpec": "The desired pod: its containers, volumes, and where it may run.",
        "PodStatus": "The observed pod: its phase, conditions, addresses and containers.",
        "PodTemplateSpec": "The labels and the spec of pods to create.",
        "Container.args": "Arguments of the command; the image's own if empty.",
        "Container.command": "What to run; the image's own if empty.",
        "Container.env": "Environment variables.",
        "Container.image": "The image to run.",
        "Container.imagePullPolicy": "When to fetch the image: Always, IfNotPresent or Never.",
        "Container.livenessProbe": "A check that has the container restarted when it fails.",
        "Container.name": "Its name, unique among the containers of the pod.",
        "Container.ports": "Ports that it listens on.",
        "Container.readinessProbe": "A check that keeps traffic away while it fails.",
        "Container.resources": "Requested resources (requests) and the most it may use (limits).",
        "Container.volumeMounts": "Where the pod's volumes are mounted.",
        "PodSpec.affinity": "Rules for nodes and for other pods to be close to or apart from.",
        "PodSpec.containers": "The containers that run together.",
        "PodSpec.initContainers": "Containers that run before the others, one after the other.",
        "PodSpec.nodeName": "The node it runs on; set when the pod is bound.",
        "PodSpec.nodeSelector": "Labels that the node must have.",
        "PodSpec.priorityClassName": "The name of its priority.",
        "PodSpec.restartPolicy": "Whether containers that end are started again: Always, OnFailure or Never.",
        "PodSpec.schedulerName": "Which scheduler places the pod.",
        "PodSpec.schedulingGates": "The scheduler does not place the pod while it has gates.",
        "PodSpec.tolerations": "Taints that the pod tolerates.",
        "PodSpec.topologySpreadConstraints": "How to spread pods over zones, nodes or other domains.",
        "PodSpec.volumes": "Volumes that containers can mount.",
        "PodStatus.conditions": "Whether the pod is scheduled, initialized and ready.",
        "PodStatus.phase": "Pending, Running, Succeeded, Failed or Unknown.",
    },
)
