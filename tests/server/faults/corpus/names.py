"""Names and paths that are none."""

# ruff: noqa: E501 - tables read better in rows

from collections.abc import Iterator
from urllib.parse import quote

from server.faults.corpus.case import Case, dumped
from server.faults.corpus.objects import APPS, CORE, NODE, PODS, SAMPLES, made, named, pod

BAD_NAMES = (
    "", " ", "-", ".", "..", "a..b", "-a", "a-", "a.", ".a", "A", "Pod", "a_b", "a b", "a/b", "a%b", "a%2fb", "..%2f..",
    "../../etc/passwd", "a\\b", "a\x00b", "a\nb", "a\r\nX: y", "a\tb", "ａ", "а", "é", "日本", "\u200b", "a\u0301", "ß", "İ",
    "a" * 254, "a" * 1000, "a" * 64 + ".b" * 100, "a:b", "a;b", "a'b", 'a"b', "<script>", "${x}", "{{x}}", "a|b", "a*",
    "١", "a,b", "a=b", "a?b", "a#b", "~", "$(id)", "`id`",
)  # fmt: skip


def cases() -> Iterator[Case]:
    yield from _created()
    yield from _asked_for()
    yield from _namespaces()
    yield from _paths()


def _shown(name: str) -> str:
    return ascii(name) if len(name) < 30 else f"of {len(name)} letters"


def _created() -> Iterator[Case]:
    for name in BAD_NAMES:
        yield Case(f"name: a pod {_shown(name)}", "POST", PODS, dumped(pod(name)))
        yield Case(f"name: a node {_shown(name)}", "POST", "/api/v1/nodes", dumped(named(NODE, name)))
    for name in ("a.b", "1a", "A", "a" * 64, "a_b", "-", "a."):
        service = named(SAMPLES["service"][1], name)
        yield Case(f"name: a service {_shown(name)}", "POST", f"{CORE}/services", dumped(service))
        space = made("v1", "Namespace", name)
        if name != "1a":
            yield Case(f"name: a namespace {_shown(name)}", "POST", "/api/v1/namespaces", dumped(space))
    for prefix in ("A", "a_", "-", "a b", ".", "é", "\x00", "/"):
        body = pod() | {"metadata": {"generateName": prefix}}
        yield Case(f"name: generateName {_shown(prefix)}", "POST", PODS, dumped(body))
    for name in ("a:b", "a/b", "..", "%", "a%b"):
        role = named(SAMPLES["role"][1], name)
        yield Case(f"name: a role {_shown(name)}", "POST", SAMPLES["role"][0] + "?dryRun=All", dumped(role))


def _asked_for() -> Iterator[Case]:
    """Whatever the path says, there is no such object."""
    for name in BAD_NAMES[1:]:
        where = f"{PODS}/{quote(name, safe='')}"
        if name not in (".", ".."):
            yield Case(f"name: GET {_shown(name)}", "GET", where)
            yield Case(f"name: DELETE {_shown(name)}", "DELETE", where)
            yield Case(f"name: PUT {_shown(name)}", "PUT", where, dumped(pod(name)))
    for raw in (
        "%",
        "%2",
        "%zz",
        "%00",
        "%ff",
        "%c0%af",
        "%2e%2e",
        "%2e%2e%2f%2e%2e",
        "%252e",
        "%u0041",
        "%25",
        "a%0d%0ab",
    ):
        yield Case(f"name: the path {raw}", "GET", f"{PODS}/{raw}")
        yield Case(f"name: the namespace {raw}", "GET", f"/api/v1/namespaces/{raw}/pods/x")


def _namespaces() -> Iterator[Case]:
    for space in ("none", "A", "a_b", "a.b", "a" * 64, "%20", "%2f", "*", "-", "é".encode().hex()):
        for kind in ("pod", "deployment", "configmap"):
            path, sample = SAMPLES[kind]
            where = path.replace("/corpus/", f"/{space}/")
            yield Case(f"namespace: a {kind} in {space[:20]}", "POST", where, dumped(sample))
        yield Case(f"namespace: GET in {space[:20]}", "GET", f"/api/v1/namespaces/{space}/pods/x")


def _paths() -> Iterator[Case]:
    for path in (
        "/api/v1/odds", "/api/v2/pods", "/api/v1/Pods", "/api/v1/pod", "/apis/apps/v1/pods", "/apis/apps/v2/deployments",
        "/apis/odd.example/v1/things", "/apis/apps", "/apis/odd", "/odd", "/api/v1/namespaces/corpus/nodes",
        "/api/v1/namespaces/corpus/odds/x", "/api/v1/namespaces/corpus/pods/p/odd", "/api/v1/nodes/n1/odd",
        "/api/v1/nodes/n1/scale", "/apis/apps/v1/namespaces/corpus/deployments/web/binding", "/api/v1/pods/p",
        "/apis/apps/v1/deployments/web", "/api/v1/namespaces/corpus/configmaps/cm/status", "/etc/passwd",
        "/api/v1/namespaces/corpus/pods/p/status/x", "/api/v1/namespaces/corpus/pods/p/log/x", "/openapi/v3/odd",
        "/api/v1/namespaces/corpus/pods/p/a/b/c/d/e/f", "/apis/", "/api/v1/watch", "/version/x", "/healthz/odd",
        "/api/v1/namespaces/corpus/pods/none/log", "/api/v1/namespaces/corpus/pods/p/exec",
    ):  # fmt: skip
        if path not in ("/apis/apps", "/apis/"):
            yield Case(f"path: GET {path}", "GET", path)
        yield Case(f"path: POST {path}", "POST", path, b"{}")
        yield Case(f"path: DELETE {path}", "DELETE", path)
    long = "a/" * 5000
    yield Case("path: 10,000 letters", "GET", f"/api/v1/{long}")
    yield Case("path: a name of 30,000 letters", "GET", f"{APPS}/deployments/{'a' * 30_000}")
    for method in ("PUT", "PATCH", "POST"):
        body = b"{}"
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        for path in (
            "/version",
            "/healthz",
            "/metrics",
            "/api",
            "/apis",
            "/openapi/v3",
            PODS if method != "POST" else "/",
        ):
            yield Case(f"path: {method} {path}", method, path, body, kind)
