"""Agents' reports: the transaction of a status is guarded by the node's lease, and a report counts once.

A write that sets the annotation is a report. One that leaves it as it is, such as a controller's, is none.
"""

from __future__ import annotations

from typing import Final

import msgspec

from situate.core.reconcile.nodes.cleanup import LEASES as NODE_LEASES
from situate.core.reconcile.nodes.reports import REPORT, repeated_reason, stale_reason
from situate.server.placing.refusals import DUPLICATE_REPORT, old_report
from situate.server.placing.write_request import CacheReader
from situate.server.registry.ports import StatusWrite
from situate.server.requests import Object
from situate.server.resources import BY_KIND
from situate.store.entries import Revision
from situate.store.transactions import At, Guard

LEASES: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    lease_transitions: int = 0


class _Lease(msgspec.Struct, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


_decode_lease: Final = msgspec.json.Decoder(_Lease).decode


def report_guards(cache: CacheReader, what: str, node: str, before: Object, after: Object) -> list[Guard]:
    """Guards that a report comes from the agent that holds the node's lease. Raises StatusError."""
    said, held = _report(after), _report(before)
    if said is None or said == held:
        return []  # not a new report
    lease = cache.get(LEASES, NODE_LEASES, node)
    term = None if lease is None else _decode_lease(lease.value).spec.lease_transitions
    if why := stale_reason(said, held, term):
        raise old_report(what, after["metadata"]["name"], why)
    return [] if lease is None else [At(lease.key, Revision(lease.revision))]


def check_repeated(what: str, before: Object | None, after: Object | None, request: StatusWrite) -> None:
    """Refuse a report that has the stored number and other content. Raises StatusError.

    A repeat with the same content changes nothing: it has no transaction, and does not come here.
    """
    if before is None or after is None or REPORT not in request.annotations:
        return
    said = _report(after)
    if said is not None and said == _report(before):
        raise old_report(what, after["metadata"]["name"], repeated_reason(said), DUPLICATE_REPORT)


def _report(obj: Object) -> str | None:
    found: str | None = obj["metadata"].get("annotations", {}).get(REPORT)
    return found
