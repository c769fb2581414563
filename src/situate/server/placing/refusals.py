"""409 for writes that placement refuses. The message and the causes name the check, in Kubernetes' words where it has
some."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from situate.core.model.ledger import LedgerPod, Port, Short
from situate.core.model.rejections import NodeRejection, not_eligible, out_of, ports_taken, unknown_node
from situate.core.reconcile.nodes.reports import REPORT
from situate.server.errors import Cause, StatusError

BINDING: Final = "pods/binding"
STALE_VERSION, STALE_TERM, STALE_REVISION = "StaleBindingVersion", "StaleTerm", "StaleRevision"
INELIGIBLE, FULL, ILLEGAL_MOVE = "IneligibleNode", "FullNode", "IllegalMove"
TAKEN: Final = "DeviceTaken"
STALE_REPORT: Final = "StaleReport"
DUPLICATE_REPORT: Final = "DuplicateReport"
ASSIGNED, DELETING, GATED = "AlreadyAssigned", "BeingDeleted", "SchedulingGated"


class NodeRefusedError(StatusError):
    """A node cannot have a pod. `rejection`: what its kubelet would say of it."""

    def __init__(self, no: StatusError, rejection: NodeRejection) -> None:
        super().__init__(no.code, no.reason, no.message, kind=no.kind, name=no.name, causes=no.causes)
        self.rejection = rejection


def _refused(pod: str, why: str, reason: str, causes: Sequence[Cause] = (), *, bind: bool = True) -> StatusError:
    what = BINDING if bind else "pods"
    text = f'Operation cannot be fulfilled on {what} "{pod}": {why}'
    listed = tuple(causes) or (Cause("", why, reason),)
    return StatusError(HTTPStatus.CONFLICT, "Conflict", text, kind=what, name=pod, causes=listed)


def already_assigned(pod: str, node: str) -> StatusError:
    return _refused(pod, f'pod {pod} is already assigned to node "{node}"', ASSIGNED)


def being_deleted(pod: str) -> StatusError:
    return _refused(pod, f"pod {pod} is being deleted, cannot be assigned to a host", DELETING)


def gated(pod: str) -> StatusError:
    return _refused(pod, f"pod {pod} has non-empty .spec.schedulingGates", GATED)


def other_uid(pod: str, asked: str, found: str) -> StatusError:
    why = f"Precondition failed: UID in precondition: {asked}, UID in object meta: {found}"
    return _refused(pod, why, STALE_REVISION, bind=False)


def other_revision(pod: str, asked: str, found: str) -> StatusError:
    text = "Precondition failed: ResourceVersion in precondition: {}, ResourceVersion in object meta: {}"
    return _refused(pod, text.format(asked, found), STALE_REVISION, bind=False)


def stale_version(pod: str, asked: int, next_one: int) -> StatusError:
    why = f"binding version {asked} is stale: the next binding of pod {pod} is version {next_one}"
    return _refused(pod, why, STALE_VERSION)


def stale_report(pod: str, said: str, found: int) -> StatusError:
    why = f"the report is about binding version {said}, and pod {pod} is at version {found}"
    return _refused(pod, why, STALE_VERSION, bind=False)


def old_report(what: str, name: str, why: str, reason: str = STALE_REPORT) -> StatusError:
    text = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    cause = Cause(f"metadata.annotations[{REPORT}]", why, reason)
    return StatusError(HTTPStatus.CONFLICT, "Conflict", text, kind=what, name=name, causes=(cause,))


def stale_term(pod: str, asked: int, found: int | None) -> StatusError:
    now = "nobody holds the scheduler's lease" if found is None else f"the scheduler's lease is in term {found}"
    return _refused(pod, f"term {asked} is stale: {now}", STALE_TERM)


def no_node(pod: str, node: str, *, bind: bool) -> NodeRefusedError:
    return NodeRefusedError(_refused(pod, f'node "{node}" not found', INELIGIBLE, bind=bind), unknown_node(node))


def ineligible(pod: str, node: str, refusals: Sequence[str], *, bind: bool) -> NodeRefusedError:
    causes = [Cause("spec.nodeName", one, INELIGIBLE) for one in refusals]
    no = _refused(pod, f'node "{node}" is not eligible: {"; ".join(refusals)}', INELIGIBLE, causes, bind=bind)
    return NodeRefusedError(no, not_eligible(refusals))


def full(pod: str, node: str, short: Sequence[Short], *, bind: bool) -> NodeRefusedError:
    causes = [Cause(one.resource, str(one), FULL) for one in short]
    why = f'node "{node}" has no room: {"; ".join(map(str, short))}'
    return NodeRefusedError(_refused(pod, why, FULL, causes, bind=bind), out_of(short[0]))


def clashes(pod: str, node: str, taken: Sequence[tuple[Port, LedgerPod]], *, bind: bool) -> NodeRefusedError:
    each = [f"host port {port} is taken by pod {by.key}" for port, by in taken]
    causes = [Cause("hostPort", one, FULL) for one in each]
    no = _refused(pod, f'node "{node}" has no room: {"; ".join(each)}', FULL, causes, bind=bind)
    return NodeRefusedError(no, ports_taken(port for port, _ in taken))


def device_taken(claim: str, why: Sequence[str]) -> StatusError:
    text = f'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "{claim}": {"; ".join(why)}'
    causes = tuple(Cause("status.allocation.devices.results", one, TAKEN) for one in why)
    return StatusError(
        HTTPStatus.CONFLICT, "Conflict", text, kind="resourceclaims", group="resource.k8s.io", name=claim, causes=causes
    )


def not_again(pod: str, ended: str, wanted: str = "") -> StatusError:
    goes_on = f", and cannot become {wanted}" if wanted else ", and stays so"
    return _refused(pod, f"pod {pod} is {ended}{goes_on}", ILLEGAL_MOVE, bind=False)
