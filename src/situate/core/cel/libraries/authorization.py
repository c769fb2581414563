"""The types and functions of authorization checks. No variable here is an authorizer, so that none is ever called."""

from situate.core.cel.functions import Function, Library, member
from situate.core.cel.meter import one
from situate.core.cel.types import BOOL, STRING, struct

AUTHORIZER = struct("kubernetes.authorization.Authorizer")
PATH_CHECK = struct("kubernetes.authorization.PathCheck")
GROUP_CHECK = struct("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK = struct("kubernetes.authorization.ResourceCheck")
DECISION = struct("kubernetes.authorization.Decision")


def _refine(name: str, overload_id: str) -> Function:
    return Function(name, (member(overload_id, (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _never),), cost=one)


def _never(*args: object) -> object:
    raise TypeError("there is no authorizer")


LIBRARY = Library(
    (
        Function("path", (member("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _never),), cost=one),
        Function("group", (member("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _never),), cost=one),
        Function(
            "serviceAccount",
            (member("authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER, _never),),
            cost=one,
        ),
        Function("resource", (member("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK, _never),), cost=one),
        _refine("subresource", "resourcecheck_subresource"),
        _refine("namespace", "resourcecheck_namespace"),
        _refine("name", "resourcecheck_name"),
        _refine("fieldSelector", "authorizer_fieldselector"),
        _refine("labelSelector", "authorizer_labelselector"),
        Function(
            "check",
            (
                member("pathcheck_check", (PATH_CHECK, STRING), DECISION, _never),
                member("resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION, _never),
            ),
            cost=lambda args, result, overload_id: 350_000,
        ),
        Function("errored", (member("decision_errored", (DECISION,), BOOL, _never),), cost=one),
        Function("error", (member("decision_error", (DECISION,), STRING, _never),), cost=one),
        Function("allowed", (member("decision_allowed", (DECISION,), BOOL, _never),), cost=one),
        Function("reason", (member("decision_reason", (DECISION,), STRING, _never),), cost=one),
    )
)
