"""Every namespace has a ServiceAccount `default`: pods that name none run as it."""

from situate.core.model.managed import ManagedAccount, ManagedNamespace
from situate.core.model.refs import Millis
from situate.core.reconcile.effects import CreateObject, ObjectRef, ReconcileResult
from situate.core.reconcile.objects import KINDS, ObjectLister

__all__ = ["DEFAULT", "default_account"]

DEFAULT = "default"


def default_account(one: ManagedNamespace, objects: ObjectLister, now: Millis) -> ReconcileResult:
    name = one.metadata.name
    if one.metadata.deletion_timestamp is not None or objects.get(ManagedAccount, name, DEFAULT) is not None:
        return ReconcileResult()
    api_version, kind = KINDS[ManagedAccount]
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": DEFAULT, "namespace": name}}
    return ReconcileResult((CreateObject(ObjectRef(api_version, kind, name, DEFAULT), body),))
