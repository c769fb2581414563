"""Every namespace has a ServiceAccount `default`: pods that name none run as it."""

from situate.core.model.managed import ManagedAccount, ManagedNamespace
from situate.core.model.refs import Millis
from situate.core.reconcile.effects import CreateObject, ObjectRef, Outcome
from situate.core.reconcile.objects import KINDS, Objects

__all__ = ["DEFAULT", "default_account"]

DEFAULT = "default"


def default_account(one: ManagedNamespace, objects: Objects, now: Millis) -> Outcome:
    name = one.metadata.name
    if one.metadata.deletion_timestamp is not None or objects.get(ManagedAccount, name, DEFAULT) is not None:
        return Outcome()
    api_version, kind = KINDS[ManagedAccount]
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": DEFAULT, "namespace": name}}
    return Outcome((CreateObject(ObjectRef(api_version, kind, name, DEFAULT), body),))
