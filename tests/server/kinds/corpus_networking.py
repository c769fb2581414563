"""Bodies of networking.k8s.io for kube-apiserver: see corpus_groups."""

from collections.abc import Iterator
from typing import Any

from server.kinds.corpus_groups import Case, Json, spec, thing

API = "networking.k8s.io/v1"


def networking_cases() -> Iterator[Case]:
    yield from _ingresses()
    yield from _classes()
    yield from _policies()
    yield from _ranges()
    yield from _addresses()


def ingress(metadata: Json | None = None, **fields: Any) -> Json:
    return thing(API, "Ingress", {"spec": fields}, **(metadata or {}))


def service(name: str = "web", **port: Any) -> Json:
    return {"service": {"name": name, "port": port or {"number": 80}}}


def path(text: str = "/", kind: str | None = "Prefix", backend: Json | None = None) -> Json:
    told = {} if kind is None else {"pathType": kind}
    return {"path": text, **told, "backend": backend or service()}


def rule(*paths: Json, **fields: Any) -> Json:
    return {**fields, "http": {"paths": list(paths)}}


def _ingresses() -> Iterator[Case]:
    yield Case("ingress: a backend", ingress(defaultBackend=service()))
    yield Case("ingress: nothing", ingress())
    yield Case("ingress: a rule", ingress(rules=[rule(path(), host="a.example.com")], ingressClassName="nginx"))
    yield Case("ingress: a wildcard", ingress(rules=[rule(path(), host="*.example.com")]))
    for title, host in (("upper", "A.b"), ("address", "10.0.0.1"), ("star", "a.*.com"), ("long", "a" * 254)):
        yield Case(f"ingress: host {title}", ingress(rules=[rule(path(), host=host)]))
    yield Case("ingress: no paths", ingress(rules=[{"host": "a.b", "http": {"paths": []}}]))
    yield Case("ingress: no type", ingress(rules=[rule(path(kind=None))]))
    yield Case("ingress: odd type", ingress(rules=[rule(path(kind="Odd"))]))
    for index, text in enumerate(("a", "//", "/./a", "/a/..", "/a/.", "/%2f", "")):
        for kind in ("Exact", "ImplementationSpecific"):
            yield Case(f"ingress: path {index} {kind}", ingress(rules=[rule(path(text, kind))]))
    yield Case("ingress: both backends", ingress(defaultBackend={**service(), "resource": {"kind": "a", "name": "b"}}))
    yield Case("ingress: no backend", ingress(defaultBackend={}))
    yield Case(
        "ingress: a resource", ingress(defaultBackend={"resource": {"apiGroup": "a.b", "kind": "c", "name": "d"}})
    )
    yield Case(
        "ingress: odd resource", ingress(defaultBackend={"resource": {"apiGroup": "A b", "kind": "", "name": "/"}})
    )
    yield Case("ingress: no service name", ingress(defaultBackend=service("")))
    yield Case("ingress: odd service name", ingress(defaultBackend=service("1A")))
    yield Case("ingress: no port", ingress(defaultBackend={"service": {"name": "a"}}))
    yield Case("ingress: both ports", ingress(defaultBackend=service(name="a", number=1) | {}))
    yield Case(
        "ingress: two ports", ingress(defaultBackend={"service": {"name": "a", "port": {"name": "b", "number": 1}}})
    )
    yield Case("ingress: port name", ingress(defaultBackend={"service": {"name": "a", "port": {"name": "A b"}}}))
    yield Case("ingress: port number", ingress(defaultBackend={"service": {"name": "a", "port": {"number": 65536}}}))
    yield Case("ingress: tls", ingress(defaultBackend=service(), tls=[{"hosts": ["a.b"], "secretName": "s"}, {}]))
    yield Case("ingress: odd tls", ingress(defaultBackend=service(), tls=[{"hosts": ["A", "*."], "secretName": "S b"}]))
    yield Case("ingress: odd class", ingress(defaultBackend=service(), ingressClassName="A b"))
    classed = {"annotations": {"kubernetes.io/ingress.class": "a"}}
    yield Case("ingress: class twice", ingress(classed, defaultBackend=service(), ingressClassName="a"))
    yield Case("ingress: class differs", ingress(classed, defaultBackend=service(), ingressClassName="b"))
    yield Case("ingress: update", ingress(defaultBackend=service()), spec(rules=[rule(path())]))
    yield Case("ingress: bad update", ingress(defaultBackend=service()), spec(rules=[rule(path("a"))]))
    for index, one in enumerate(
        (
            {"ip": "10.0.0.1", "ports": [{"port": 1, "protocol": "TCP"}]},
            {"ip": "odd"},
            {"hostname": "10.0.0.1"},
            {"hostname": "A b"},
        )
    ):
        status = {"status": {"loadBalancer": {"ingress": [one]}}}
        yield Case(f"ingress: status {index}", ingress(defaultBackend=service()), status, "status")


def _classes() -> Iterator[Case]:
    def of(**fields: Any) -> Json:
        return thing(API, "IngressClass", {"spec": fields})

    reference = {"kind": "a", "name": "b"}
    yield Case("ingress class: plain", of(controller="a.io/b"))
    yield Case("ingress class: none", of())
    for index, text in enumerate(("a", "/a", "a/", "A_/b", "a.io/b c", "a.io/" + "b" * 246)):
        yield Case(f"ingress class: controller {index}", of(controller=text))
    yield Case("ingress class: parameters", of(controller="a.io/b", parameters=reference))
    yield Case("ingress class: in a namespace", of(controller="a.io/b", parameters={**reference, "scope": "Namespace"}))
    named = {**reference, "scope": "Namespace", "namespace": "x"}
    yield Case("ingress class: of a namespace", of(controller="a.io/b", parameters=named))
    yield Case("ingress class: odd namespace", of(controller="a.io/b", parameters={**named, "namespace": "X"}))
    wide = {**reference, "scope": "Cluster", "namespace": "x"}
    yield Case("ingress class: namespace of a cluster", of(controller="a.io/b", parameters=wide))
    yield Case("ingress class: odd scope", of(controller="a.io/b", parameters={**reference, "scope": "Odd"}))
    yield Case("ingress class: no kind", of(controller="a.io/b", parameters={"kind": "", "name": ""}))
    yield Case("ingress class: another controller", of(controller="a.io/b"), spec(controller="a.io/c"))


def _policies() -> Iterator[Case]:
    def of(**fields: Any) -> Json:
        return thing(API, "NetworkPolicy", {"spec": {"podSelector": {}, **fields}})

    yield Case("network policy: empty", of())
    yield Case("network policy: egress", of(egress=[{}]))
    yield Case("network policy: types", of(policyTypes=["Ingress", "Egress"]))
    yield Case("network policy: odd type", of(policyTypes=["Odd"]))
    yield Case("network policy: three types", of(policyTypes=["Ingress", "Egress", "Ingress"]))
    yield Case("network policy: odd selector", of(podSelector={"matchLabels": {"a b": "c d"}}))
    for index, port in enumerate(
        (
            {"port": 80},
            {"port": "web", "protocol": "UDP"},
            {"port": 0},
            {"port": "A b"},
            {"port": 80, "endPort": 90},
            {"port": 80, "endPort": 70},
            {"port": 80, "endPort": 70000},
            {"port": "web", "endPort": 90},
            {"endPort": 90},
            {"protocol": "Odd"},
            {},
        )
    ):
        yield Case(f"network policy: port {index}", of(ingress=[{"ports": [port]}]))
    for index, peer in enumerate(
        (
            {"podSelector": {}},
            {"podSelector": {}, "namespaceSelector": {"matchLabels": {"a": "b"}}},
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}},
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16", "10.0.0.0/8", "odd", "fd00::/64"]}},
            {"ipBlock": {"cidr": "odd"}},
            {"ipBlock": {"cidr": ""}},
            {"ipBlock": {"cidr": "10.0.0.1/8"}},
            {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
            {},
        )
    ):
        yield Case(f"network policy: peer {index}", of(egress=[{"to": [peer]}]))
    yield Case("network policy: update", of(), spec(ingress=[{"ports": [{"port": 80}]}]))


def _ranges() -> Iterator[Case]:
    def of(*ranges: str) -> Json:
        return thing(API, "ServiceCIDR", {"spec": {"cidrs": list(ranges)}})

    yield Case("service range: one", of("10.1.0.0/24"))
    yield Case("service range: two", of("10.1.0.0/24", "fd00::/112"))
    yield Case("service range: none", of())
    yield Case("service range: three", of("10.1.0.0/24", "fd00::/112", "10.2.0.0/24"))
    yield Case("service range: of one family", of("10.1.0.0/24", "10.2.0.0/24"))
    yield Case("service range: odd", of("odd"))
    yield Case("service range: host bits", of("10.1.0.1/24"))


def _addresses() -> Iterator[Case]:
    def of(name: str, **fields: Any) -> Json:
        return thing(API, "IPAddress", {"spec": fields}, name)

    parent = {"resource": "services", "name": "a", "namespace": "default"}
    yield Case("address: plain", of("10.96.7.7", parentRef=parent))
    yield Case("address: of nobody", of("10.96.7.7"))
    yield Case("address: odd name", of("odd", parentRef=parent))
    yield Case("address: not canonical", of("fd00:0::1", parentRef=parent))
    yield Case("address: empty parent", of("10.96.7.7", parentRef={}))
    yield Case("address: odd parent", of("10.96.7.7", parentRef={**parent, "group": "A b", "namespace": "/"}))
