"""Nodes."""

from situate.core.model.names import label_value_problems
from situate.core.model.node import Node
from situate.core.model.tolerations import Taint
from situate.core.model.validate.meta import key_problems
from situate.core.model.validate.problem import Problems, invalid, required, unsupported
from situate.core.model.validate.resources import list_problems
from situate.core.model.validate.scheduling import TAINT_EFFECTS


def node_problems(node: Node) -> Problems:
    for index, taint in enumerate(node.spec.taints):
        yield from _taint_problems(f"spec.taints[{index}]", taint)
    yield from list_problems("status.capacity", node.status.capacity)
    yield from list_problems("status.allocatable", node.status.allocatable)
    for index, image in enumerate(node.status.images):
        if image.size_bytes < 0:
            yield invalid(f"status.images[{index}].sizeBytes", image.size_bytes, "must be greater than or equal to 0")


def _taint_problems(path: str, taint: Taint) -> Problems:
    yield from key_problems(f"{path}.key", taint.key)
    for text in label_value_problems(taint.value):
        yield invalid(f"{path}.value", taint.value, text)
    if not taint.effect:
        yield required(f"{path}.effect")
    elif taint.effect not in TAINT_EFFECTS:
        yield unsupported(f"{path}.effect", taint.effect, TAINT_EFFECTS)
