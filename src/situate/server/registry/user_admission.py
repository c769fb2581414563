"""Where the admission plugins that users configure are called: webhooks and admission policies.

Kubernetes' order: the server's own plugins (`ports.Admission`), then those of users that may change the object; if one
did, all of them once more; then the object is validated; then come those that only check. What the server does on its
own behalf, by `Registry.modify`, passes no admission.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from situate.server.requests import APISERVER, SYSTEM, Caller, DeleteOptions, Object, Target, WriteOptions
from situate.server.resources import Resource

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
OPTIONS_VERSION: Final = "meta.k8s.io/v1"
NAMESPACES: Final = "/namespaces"
LEASES: Final = "coordination.k8s.io/leases"
LEASE_NAMESPACES: Final = ("kube-node-lease", "kube-system")
"""Of leases that nodes and the parts of the control plane renew."""


class AdmissionRequest(Struct, eq=False):
    """A request, as admission plugins of users see it."""

    operation: Operation
    target: Target
    """With the name of the object, "" if it is still to be generated."""
    object: Object | None
    """A plugin that changes it puts a new object here, which shares nothing that it changed with this one."""
    old: Object | None
    caller: Caller
    options: Object
    """CreateOptions and the like, as an object of meta.k8s.io/v1; empty for CONNECT."""
    dry_run: bool = False
    api_version: str = ""
    """Of the object, if not the resource's: a Scale, an Eviction, PodExecOptions."""
    kind: str = ""
    is_reinvoked: bool = False
    """The plugins are called for the second time, because the object has changed."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What a plugin, by its name, remembers between the two calls."""

    @property
    def namespace(self) -> str:
        """For a namespace itself, its name."""
        target = self.target
        return target.name if target.resource.stored_as == NAMESPACES else target.namespace

    @property
    def object_kind(self) -> tuple[str, str]:
        """The apiVersion and kind of the object."""
        resource = self.target.resource
        return self.api_version or resource.api_version, self.kind or resource.kind


def is_exempt(request: AdmissionRequest) -> bool:
    """Whether the control plane itself depends on the request: what its own parts write in this process, and the leases
    of its parts and of nodes. A wrong webhook or policy cannot stop it from healing itself."""
    target = request.target
    if target.resource.stored_as == LEASES and target.namespace in LEASE_NAMESPACES:
        return True
    return request.caller is SYSTEM or request.caller is APISERVER


class UserPlugin(Protocol):
    def concerns(self, resource: Resource, subresource: str, operation: Operation) -> bool:
        """Whether any configuration may have something to say about such requests. Cheap: it is asked for each."""

    async def admit(self, request: AdmissionRequest) -> None:
        """Raise StatusError to refuse. One that mutates may replace `request.object`, if there is one."""


@dataclass(frozen=True, slots=True)
class UserAdmission:
    """In the order in which they are called."""

    mutating: Sequence[UserPlugin] = ()
    validating: Sequence[UserPlugin] = ()

    def concerns(self, resource: Resource, subresource: str, operation: Operation) -> bool:
        for plugins in (self.mutating, self.validating):
            for one in plugins:
                if one.concerns(resource, subresource, operation):
                    return True
        return False

    async def mutate(self, request: AdmissionRequest, again: Callable[[Object], Awaitable[None]]) -> None:
        """`again` calls the server's own plugins for an object that has changed, in place."""
        if is_exempt(request):
            return
        for reinvoked in (False, True):
            request.is_reinvoked = reinvoked
            before = request.object
            for one in self.mutating:
                if one.concerns(request.target.resource, request.target.subresource, request.operation):
                    await one.admit(request)
            if request.object is before or request.object is None:
                return
            await again(request.object)

    async def validate(self, request: AdmissionRequest) -> None:
        if is_exempt(request):
            return
        for one in self.validating:
            if one.concerns(request.target.resource, request.target.subresource, request.operation):
                await one.admit(request)

    async def check(self, request: AdmissionRequest) -> None:
        """All of them, for a request that has no object to change, or whose object is not stored."""

        async def unchanged(_: Object) -> None:
            """The server's own plugins have nothing to add."""

        await self.mutate(request, unchanged)
        await self.validate(request)


NOBODY: Final = UserAdmission()
USUAL: Final = WriteOptions()


def write_options(kind: str, options: WriteOptions) -> Object:
    """CreateOptions or UpdateOptions."""
    found: Object = {"kind": kind, "apiVersion": OPTIONS_VERSION}
    if options.dry_run:
        found["dryRun"] = ["All"]
    if options.field_manager:
        found["fieldManager"] = options.field_manager
    if options.field_validation != USUAL.field_validation:
        found["fieldValidation"] = options.field_validation
    return found


def delete_options(options: DeleteOptions) -> Object:
    found: Object = {"kind": "DeleteOptions", "apiVersion": OPTIONS_VERSION}
    if options.grace_s is not None:
        found["gracePeriodSeconds"] = options.grace_s
    before = {"uid": options.uid, "resourceVersion": options.resource_version}
    if asked := {name: value for name, value in before.items() if value}:
        found["preconditions"] = asked
    if options.propagation:
        found["propagationPolicy"] = options.propagation
    if options.dry_run:
        found["dryRun"] = ["All"]
    return found
