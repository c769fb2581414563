"""The cells of the authorization matrix: who sends which request about which kind."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from kubernetes.authorization_kinds import KINDS, Json, MatrixKind, Subresource
from kubernetes.authorization_users import IMPERSONATORS, NAMED, USERS, MatrixUser

JSON = "application/json"
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
TOUCHED = {"metadata": {"annotations": {"matrix.test/touched": "yes"}}}
JSON_TOUCHED = [{"op": "add", "path": "/metadata/annotations", "value": TOUCHED["metadata"]["annotations"]}]
CELL = "matrix.test/cell"
"""The label of a cell's own object."""


class Cell(NamedTuple):
    """One request. `{version}` in the body is the resourceVersion of the cell's object, which differs by server."""

    user: MatrixUser
    kind: MatrixKind
    operation: str
    name: str
    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    exists: bool = False
    """The object is there before."""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        return f"{self.user.id}: {self.operation} {self.kind.id}"

    @property
    def existing(self) -> Json:
        return self.kind.object(self.name, labels={CELL: self.name})

    def data(self, version: str) -> bytes | None:
        return None if self.body is None else json.dumps(self.body).replace("{version}", version).encode()


class Operation(NamedTuple):
    id: str
    method: str
    suffix: str
    """After the path of all objects: `{name}` is the name of the cell's object."""
    body: Any = None
    content_type: str = JSON
    exists: bool = False
    everywhere: bool = False
    """In all namespaces."""


def _operations(kind: MatrixKind) -> Iterator[Operation]:
    """`{name}` in a body is the name of the cell's object."""
    made = kind.object("{name}")
    changed = kind.object("{name}", resourceVersion="{version}", annotations=TOUCHED["metadata"]["annotations"])
    yield Operation("post", "POST", "", made)
    yield Operation("post (dry run)", "POST", "?dryRun=All", made)
    yield Operation("post over an existing", "POST", "", made, exists=True)
    yield Operation("post with generateName", "POST", "", kind.object("", generateName="{name}-"))
    yield Operation("put to existing", "PUT", "/{name}", changed, exists=True)
    yield Operation("put to existing (dry run)", "PUT", "/{name}?dryRun=All", changed, exists=True)
    yield Operation("put to absent", "PUT", "/{name}", made)
    yield Operation("put to absent (dry run)", "PUT", "/{name}?dryRun=All", made)
    for how, content_type in PATCHES.items():
        body = {"apply": kind.object("{name}", **TOUCHED["metadata"]), "json": JSON_TOUCHED}.get(how, TOUCHED)
        mine = "?fieldManager=matrix&force=true" if how == "apply" else "?fieldManager=matrix"
        yield Operation(f"{how} patch of existing", "PATCH", f"/{{name}}{mine}", body, content_type, True)
        yield Operation(f"{how} patch of absent", "PATCH", f"/{{name}}{mine}", body, content_type)
        yield Operation(f"{how} patch of absent (dry run)", "PATCH", f"/{{name}}{mine}&dryRun=All", body, content_type)
    yield Operation("delete", "DELETE", "/{name}", exists=True)
    yield Operation("delete (dry run)", "DELETE", "/{name}?dryRun=All", exists=True)
    yield Operation("delete of absent", "DELETE", "/{name}")
    own = f"?labelSelector={quote(CELL)}%3D{{name}}"
    yield Operation("delete collection", "DELETE", own, exists=True)
    yield Operation("delete collection (dry run)", "DELETE", f"{own}&dryRun=All", exists=True)
    yield Operation("get", "GET", "/{name}", exists=True)
    yield Operation("get of absent", "GET", "/{name}")
    yield Operation("list", "GET", own)
    yield Operation("list by name", "GET", "?fieldSelector=metadata.name%3D{name}")
    yield Operation("watch", "GET", f"{own}&watch=true&timeoutSeconds=5")
    yield Operation("watch by name", "GET", "?fieldSelector=metadata.name%3D{name}&watch=true&timeoutSeconds=5")
    if kind.namespaced:
        yield Operation("list of all namespaces", "GET", own, everywhere=True)
    for subresource in kind.subresources:
        yield from _on(kind, subresource)


def _on(kind: MatrixKind, subresource: Subresource) -> Iterator[Operation]:
    name = subresource.name
    body = kind.object("{name}", resourceVersion="{version}") if subresource.body is None else {**subresource.body}
    if name in ("scale", "binding", "eviction"):
        body["metadata"] = {"name": "{name}"}
    for method in subresource.methods:
        sent = None if method == "GET" else body
        if method != "PATCH":
            yield Operation(f"{method.lower()} {name}", method, f"/{{name}}/{name}", sent, exists=True)
            if method == "POST":
                yield Operation(f"post {name} (dry run)", method, f"/{{name}}/{name}?dryRun=All", sent, exists=True)
            absent = json.loads(json.dumps(sent).replace(', "resourceVersion": "{version}"', ""))
            yield Operation(f"{method.lower()} {name} of absent", method, f"/{{name}}/{name}", absent)
            continue
        yield Operation(f"merge patch of {name}", method, f"/{{name}}/{name}", TOUCHED, PATCHES["merge"], True)
        yield Operation(f"merge patch of {name} of absent", method, f"/{{name}}/{name}", TOUCHED, PATCHES["merge"])
        if name == "status":
            apply, mine = kind.object("{name}", **TOUCHED["metadata"]), "?fieldManager=matrix&force=true"
            to = f"/{{name}}/{name}{mine}"
            yield Operation("apply patch of status", method, to, apply, PATCHES["apply"], True)
            yield Operation("apply patch of status of absent", method, to, apply, PATCHES["apply"])


def cells() -> list[Cell]:
    """All of them, in one order. A user whose rules are by name has every cell twice: with such a name and without."""
    found: list[Cell] = []
    for user in USERS:
        for kind in KINDS:
            for operation in _operations(kind):
                for prefix in (NAMED, "other-") if user.by_name else ("",):
                    name = f"{prefix}c{len(found)}"
                    path = kind.path(everywhere=operation.everywhere)
                    found.append(
                        Cell(
                            user,
                            kind,
                            operation.id,
                            name,
                            operation.method,
                            path + operation.suffix.replace("{name}", name),
                            json.loads(json.dumps(operation.body).replace("{name}", name)),
                            operation.content_type,
                            operation.exists,
                        )
                    )
    found += [cell._replace(name="") for user in USERS for cell in _paths(user)]
    found += _impersonations()
    return found


PATHS = "/ /api /api/v1 /apis /apis/apps/v1 /healthz /livez /readyz /version /metrics /openapi/v2 /openapi/v3".split()
NO_KIND = MatrixKind("", "v1", "", "", False, {})


def _paths(user: MatrixUser) -> Iterator[Cell]:
    for path in PATHS:
        yield Cell(user, NO_KIND, f"get of {path}", "", "GET", path)
    yield Cell(user, NO_KIND, "post to /version", "", "POST", "/version", {})


IMPERSONATED: tuple[tuple[tuple[str, str], ...], ...] = (
    (("Impersonate-User", "reader"),),
    (("Impersonate-User", "none"),),
    (("Impersonate-User", "none"), ("Impersonate-Group", "system:masters")),
    (("Impersonate-User", "none"), ("Impersonate-Group", "x")),
    (("Impersonate-User", "reader"), ("Impersonate-Uid", "1")),
    (("Impersonate-User", "reader"), ("Impersonate-Extra-scope", "a")),
    (("Impersonate-User", "reader"), ("Impersonate-Extra-other", "a")),
    (("Impersonate-User", "system:serviceaccount:matrix:account"),),
    (("Impersonate-User", "system:node:alpha"), ("Impersonate-Group", "system:nodes")),
    (("Impersonate-User", "system:anonymous"),),
    (("Impersonate-Group", "x"),),
    (("Impersonate-Uid", "1"),),
)


def _impersonations() -> Iterator[Cell]:
    kind = next(kind for kind in KINDS if kind.id == "configmaps")
    wanted = ("post", "put to existing", "apply patch of absent", "get", "list")
    operations = [one for one in _operations(kind) if one.id in wanted]
    for user in IMPERSONATORS:
        for headers in IMPERSONATED:
            for operation in operations:
                who = " ".join(value for _, value in headers)
                name = f"i{IMPERSONATORS.index(user)}-{IMPERSONATED.index(headers)}-{operations.index(operation)}"
                yield Cell(
                    user,
                    kind,
                    f"{operation.id} as {who},",
                    name,
                    operation.method,
                    kind.path() + operation.suffix.replace("{name}", name),
                    json.loads(json.dumps(operation.body).replace("{name}", name)),
                    operation.content_type,
                    operation.exists,
                    headers,
                )
