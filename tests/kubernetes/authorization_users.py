"""The users of the authorization matrix: each with one verb, or with a telling combination."""

from collections.abc import Sequence
from typing import NamedTuple

from kubernetes.authorization_kinds import GRANTED, KINDS, NAMESPACE, RBAC, Json

AUTHENTICATED = "system:authenticated"
NAMED = "named-"
"""Cells of users whose rules have resourceNames: half of the objects have a name that begins so."""


class MatrixUser(NamedTuple):
    id: str
    rules: tuple[Json, ...] = ()
    namespace: str = ""
    """Where the rules hold; empty: in the cluster."""
    name: str = ""
    """Empty: the id. `{name}` is the name of the cell's object."""
    groups: tuple[str, ...] = (AUTHENTICATED,)
    account: bool = False
    """A service account of the matrix's namespace, which sends its token; others are impersonated."""
    role: str = ""
    """A ClusterRole that every cluster has, instead of rules."""
    by_name: bool = False
    """The rules hold for the names that begin with NAMED only."""

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{NAMESPACE}:{self.id}" if self.account else self.name or self.id

    def objects(self, names: Sequence[str]) -> list[Json]:
        """The role and the binding. `names`: of the user's own objects, for rules by name."""
        if not self.rules and not self.role:
            return []
        rules = [{**rule, "resourceNames": list(names)} if self.by_name else rule for rule in self.rules]
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": self.role or f"matrix-{self.id}"}
        subject = {"apiGroup": RBAC, "kind": "User", "name": self.user}
        scope = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        metadata = {"name": f"matrix-{self.id}"} | ({"namespace": self.namespace} if self.namespace else {})
        found: list[Json] = []
        if not self.role:
            made = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": f"matrix-{self.id}"}}
            found.append(made | {"rules": rules})
        binding = {"apiVersion": f"{RBAC}/v1", "kind": scope, "metadata": metadata}
        return [*found, binding | {"roleRef": reference, "subjects": [subject]}]


def _rule(verbs: str, resources: Sequence[str] = (), groups: Sequence[str] = ("*",)) -> Json:
    plain = list(dict.fromkeys(kind.plural for kind in KINDS))
    return {"apiGroups": list(groups), "resources": list(resources) or plain, "verbs": verbs.split()}


VERBS = "get list watch create update patch delete deletecollection".split()

USERS = (
    MatrixUser("none"),
    *(MatrixUser(verb, (_rule(verb),)) for verb in VERBS),
    MatrixUser("update-create", (_rule("update create"),)),
    MatrixUser("patch-create", (_rule("patch create"),)),
    MatrixUser("patch-update", (_rule("get patch update"),)),
    MatrixUser("reader", (_rule("get list watch"),)),
    MatrixUser("all-but-create", (_rule("get list watch update patch delete deletecollection"),)),
    MatrixUser("all-but-delete", (_rule("get list watch create update patch"),)),
    MatrixUser("all-verbs", (_rule(" ".join(VERBS)),)),
    MatrixUser("core-group", (_rule("*", ["*"], [""]),)),
    MatrixUser("named-groups", (_rule("*", ["*"], ["apps", "coordination.k8s.io", RBAC]),)),
    MatrixUser("everything", (_rule("*", ["*"]),)),
    MatrixUser("subresources", (_rule("*", ["*/status", "*/scale", "pods/log", "pods/eviction"]),)),
    MatrixUser("status-patcher", (_rule("patch", ["*/status"]),)),
    MatrixUser("evictor", (_rule("create", ["pods/eviction"]),)),
    MatrixUser("binder", (_rule("create", ["pods/binding", "bindings"]),)),
    MatrixUser("token-maker", (_rule("create", ["serviceaccounts/token"]),)),
    MatrixUser("by-name", (_rule("*", ["*"]),), by_name=True),
    MatrixUser("creator-by-name", (_rule("patch update"),), by_name=True),
    MatrixUser("in-namespace", (_rule(" ".join(VERBS)),), namespace=NAMESPACE),
    MatrixUser("elsewhere", (_rule("*", ["*"]),), namespace="default"),
    MatrixUser("escalator", (_rule("create update patch escalate", ["roles", "clusterroles"]),)),
    MatrixUser(
        "role-binder",
        (_rule("create update patch", ["rolebindings", "clusterrolebindings"]), _rule("bind", ["clusterroles"])),
    ),
    MatrixUser("holder", (_rule("create update patch", ["roles", "rolebindings", "clusterroles"]), GRANTED)),
    MatrixUser("editor", role="system:aggregate-to-edit", namespace=NAMESPACE),
    MatrixUser("viewer", role="system:aggregate-to-view", namespace=NAMESPACE),
    MatrixUser("account", (_rule("get update patch"),), account=True),
    MatrixUser("account-creator", (_rule("create patch", ["configmaps", "leases"]),), account=True),
    MatrixUser("node", name="system:node:alpha", groups=("system:nodes", AUTHENTICATED)),
    MatrixUser("other-node", name="system:node:beta", groups=("system:nodes", AUTHENTICATED)),
    MatrixUser("own-node", name="system:node:{name}", groups=("system:nodes", AUTHENTICATED)),
    MatrixUser("nameless-node", groups=("system:nodes", AUTHENTICATED)),
    MatrixUser("scheduler", name="system:kube-scheduler"),
    MatrixUser("anonymous", name="system:anonymous", groups=("system:unauthenticated",)),
    MatrixUser("master", groups=("system:masters", AUTHENTICATED)),
)


def _impersonator(id_: str, *rules: Json) -> MatrixUser:
    return MatrixUser(f"impersonates-{id_}", rules, account=True)


IMPERSONATORS = (
    _impersonator("nobody", _rule("get list create patch", ["configmaps"])),
    _impersonator("users", _rule("impersonate", ["users"])),
    _impersonator("a-user", {**_rule("impersonate", ["users"]), "resourceNames": ["reader"]}),
    _impersonator("groups", _rule("impersonate", ["users", "groups"])),
    _impersonator(
        "a-group", _rule("impersonate", ["users"]), {**_rule("impersonate", ["groups"]), "resourceNames": ["x"]}
    ),
    _impersonator("accounts", _rule("impersonate", ["serviceaccounts"])),
    _impersonator("uids", _rule("impersonate", ["users", "uids"])),
    _impersonator("extras", _rule("impersonate", ["users", "userextras/scope"])),
    _impersonator("everybody", _rule("impersonate", ["*"])),
)
"""Service accounts that send Impersonate- headers of their own."""
