"""Pods: defaults, preparation, validation, selectable fields and grace.

Nothing here decides where a pod goes, or knows any object but the one at hand.
"""

from __future__ import annotations

from typing import Final

from situate.server.kinds.pods.defaults import default_pod, default_spec
from situate.server.kinds.pods.preparing import (
    grace,
    is_nameless,
    prepare_create,
    prepare_status,
    prepare_update,
    qos_class,
    selectable,
)
from situate.server.kinds.pods.spec import pod_annotations, validate_spec
from situate.server.kinds.pods.updates import validate, validate_status, validate_update
from situate.server.kinds.pods.warning import pod_warnings, template_warnings
from situate.server.kinds.strategy import Strategy

__all__ = ["STRATEGY", "default_spec", "pod_annotations", "qos_class", "template_warnings", "validate_spec"]

STRATEGY: Final = Strategy(
    default=default_pod,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=prepare_status,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    selectable=selectable,
    grace=grace,
    warnings=pod_warnings,
    is_nameless=is_nameless,
    counts_generation=True,
)
