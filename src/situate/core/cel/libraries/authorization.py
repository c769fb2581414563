"""Authorization checks: `authorizer.group('apps').resource('deployments').check('create').allowed()`.

Who decides is not this library's business: an AuthorizerValue holds the function that does. Where an environment has no
variable of this type, there is none, and nothing here is ever called.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.functions import Function, Library, member
from situate.core.cel.meter import one
from situate.core.cel.types import BOOL, STRING, struct
from situate.core.cel.values import ExtensionValue, Value

AUTHORIZER = struct("kubernetes.authorization.Authorizer")
PATH_CHECK = struct("kubernetes.authorization.PathCheck")
GROUP_CHECK = struct("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK = struct("kubernetes.authorization.ResourceCheck")
DECISION = struct("kubernetes.authorization.Decision")
CHECK_COST: Final = 350_000
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class AccessCheck(NamedTuple):
    """What is asked about. Of a path, only the path and the verb are set."""

    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    field_selector: str = ""
    label_selector: str = ""


class AccessDecision(NamedTuple):
    allowed: bool
    reason: str = ""
    error: str = ""


ServiceAccount = tuple[str, str]
"""Its namespace and its name."""
Decide = Callable[[AccessCheck, ServiceAccount | None], AccessDecision]
"""For a service account, or for the user of the request."""


class _Receiver(ExtensionValue):
    """A value that has functions and no fields, and equals nothing."""

    __slots__ = ()

    def equal(self, other: Value) -> Value:
        return no_such_overload()


class AuthorizerValue(_Receiver):
    __slots__ = ("account", "decide")
    type_name = AUTHORIZER.name

    def __init__(self, decide: Decide, account: ServiceAccount | None = None) -> None:
        self.decide = decide
        self.account = account


class CheckValue(_Receiver):
    """What is asked about, as far as the expression has said."""

    __slots__ = ("authorizer", "check")

    def __init__(self, authorizer: AuthorizerValue, check: AccessCheck) -> None:
        self.authorizer = authorizer
        self.check = check


class PathCheckValue(CheckValue):
    __slots__ = ()
    type_name = PATH_CHECK.name


class GroupCheckValue(CheckValue):
    __slots__ = ()
    type_name = GROUP_CHECK.name


class ResourceCheckValue(CheckValue):
    __slots__ = ()
    type_name = RESOURCE_CHECK.name


class DecisionValue(_Receiver):
    __slots__ = ("decision",)
    type_name = DECISION.name

    def __init__(self, decision: AccessDecision) -> None:
        self.decision = decision


def _path(authorizer: AuthorizerValue, path: str) -> Value:
    if not path.strip():
        return ErrorValue("path must not be empty")
    return PathCheckValue(authorizer, AccessCheck(path=path))


def _group(authorizer: AuthorizerValue, group: str) -> Value:
    return GroupCheckValue(authorizer, AccessCheck(group=group))


def _service_account(authorizer: AuthorizerValue, namespace: str, name: str) -> Value:
    if not _SUBDOMAIN.fullmatch(name):
        return ErrorValue("Invalid service account name")
    if not _LABEL.fullmatch(namespace):
        return ErrorValue("Invalid service account namespace")
    return AuthorizerValue(authorizer.decide, (namespace, name))


def _resource(group: GroupCheckValue, resource: str) -> Value:
    if not resource.strip():
        return ErrorValue("resource must not be empty")
    return ResourceCheckValue(group.authorizer, group.check._replace(resource=resource))


def _check(asked: CheckValue, verb: str) -> Value:
    return DecisionValue(asked.authorizer.decide(asked.check._replace(verb=verb), asked.authorizer.account))


def _refine(name: str, overload_id: str, field: str) -> Function:
    def refined(asked: ResourceCheckValue, value: str) -> Value:
        return ResourceCheckValue(asked.authorizer, asked.check._replace(**{field: value}))

    return Function(name, (member(overload_id, (RESOURCE_CHECK, STRING), RESOURCE_CHECK, refined),), cost=one)


LIBRARY = Library(
    (
        Function("path", (member("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _path),), cost=one),
        Function("group", (member("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _group),), cost=one),
        Function(
            "serviceAccount",
            (member("authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER, _service_account),),
            cost=one,
        ),
        Function(
            "resource", (member("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK, _resource),), cost=one
        ),
        _refine("subresource", "resourcecheck_subresource", "subresource"),
        _refine("namespace", "resourcecheck_namespace", "namespace"),
        _refine("name", "resourcecheck_name", "name"),
        _refine("fieldSelector", "authorizer_fieldselector", "field_selector"),
        _refine("labelSelector", "authorizer_labelselector", "label_selector"),
        Function(
            "check",
            (
                member("pathcheck_check", (PATH_CHECK, STRING), DECISION, _check),
                member("resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION, _check),
            ),
            cost=lambda args, result, overload_id: CHECK_COST,
        ),
        Function(
            "errored",
            (member("decision_errored", (DECISION,), BOOL, lambda found: bool(found.decision.error)),),
            cost=one,
        ),
        Function(
            "error", (member("decision_error", (DECISION,), STRING, lambda found: found.decision.error),), cost=one
        ),
        Function(
            "allowed", (member("decision_allowed", (DECISION,), BOOL, lambda found: found.decision.allowed),), cost=one
        ),
        Function(
            "reason", (member("decision_reason", (DECISION,), STRING, lambda found: found.decision.reason),), cost=one
        ),
    )
)
