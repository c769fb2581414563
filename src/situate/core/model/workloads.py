"""Services and the controllers whose selectors default spreading uses."""

from situate.core.model.base import EMPTY, Labels, Model
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta


class ServiceSpec(Model, frozen=True, kw_only=True):
    selector: Labels = EMPTY


class Service(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class PodTemplate(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class ReplicationControllerSpec(Model, frozen=True, kw_only=True):
    """Without a selector, the template's labels are the selector."""

    selector: Labels = EMPTY
    template: PodTemplate | None = None


class ReplicationController(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class SelectorSpec(Model, frozen=True, kw_only=True):
    selector: LabelSelector | None = None


class ReplicaSet(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectorSpec = SelectorSpec()
