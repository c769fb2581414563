"""The subresources of pods that placement serves, for the router."""

from __future__ import annotations

from situate.server.http.ports import CreateHandler, CreateHandlers
from situate.server.placing.binding import Binder
from situate.server.placing.eviction import Evictor


def specials(binder: Binder, evictor: Evictor) -> CreateHandlers:
    """By group, plural and subresource."""
    binding = CreateHandler(binder.create_binding, "v1", "Binding")
    return {
        ("", "pods", "binding"): binding,
        ("", "bindings", ""): binding,
        ("", "pods", "eviction"): CreateHandler(evictor.create_eviction, "policy/v1", "Eviction"),
    }
