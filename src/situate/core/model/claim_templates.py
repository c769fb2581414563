"""ResourceClaimTemplate, as scheduling reads it: the claims that the pods of a workload are going to get."""

from situate.core.model.base import Model
from situate.core.model.devices import ResourceClaimSpec
from situate.core.model.meta import ObjectMeta


class ResourceClaimTemplateSpec(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
