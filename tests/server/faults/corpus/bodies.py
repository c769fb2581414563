"""Bodies that are no objects, or not the right ones."""

# ruff: noqa: E501 - tables read better in rows

import gzip
import json
import random
from collections.abc import Iterator
from typing import Any

from server.faults.corpus.case import Case, dumped, places, replaced, shown
from server.faults.corpus.objects import (
    APPS,
    CONFIG_MAP,
    CORE,
    DEPLOYMENT,
    JOB,
    NODE,
    PODS,
    SAMPLES,
    SERVICE,
    SPACE,
    made,
    pod,
)

MAPS = f"{CORE}/configmaps"
MIB = 1 << 20
PROTOBUF = "application/vnd.kubernetes.protobuf"
YAML = "application/yaml"
DEPTH = 100_000
_POD = dumped(pod())


def cases() -> Iterator[Case]:
    yield from _not_json()
    yield from _numbers_and_letters()
    yield from _sizes()
    yield from _wrong_types()
    yield from _unknown_fields()
    yield from _nulls()
    yield from _content_types()
    yield from _kinds()
    yield from _protobuf()
    yield from _yaml()


def _post(name: str, body: bytes, path: str = PODS, content_type: str = "application/json", *headers: str) -> Case:
    return Case(f"body: {name}", "POST", path, body, content_type, headers)


def _not_json() -> Iterator[Case]:
    yield _post("nothing", b"")
    for text in (
        "null", "[]", "{}", "7", '"pod"', "true", "not json", "{", "}", "[", '{"a"', '{"a":', '{"a":1', "{a:1}",
        "{'a':1}", "\x00", " ", "\n\n", "<pod/>", "nul", "truee", '{"a":1}}', '{"a":1,}', "//{}", "undefined",
        '{"kind":"Pod"}{"kind":"Pod"}', '"\\x"', '"\\u12"', "--", "-", "+1", ".5", "01", "1.", "1e", "0x10",
    ):  # fmt: skip
        yield _post(f"is {text!r}", text.encode())
    for cut in range(1, len(_POD), 12):
        yield _post(f"a pod cut after {cut} bytes", _POD[:cut])
    for path, rest in ((MAPS, b"\x00"), (MAPS, b" x"), (PODS, b"[]")):
        yield _post(f"{rest!r} after an object for {path.rpartition('/')[2]}", dumped(CONFIG_MAP) + rest, path)
    yield _post("a BOM before it", b"\xef\xbb\xbf" + _POD)
    yield _post("UTF-16", _POD.decode().encode("utf-16"))
    yield _post("UTF-32", _POD.decode().encode("utf-32"))
    for opening, closing, what in ((b"[", b"]", "lists"), (b'{"a":', b"}", "objects")):
        yield _post(f"{DEPTH} {what} in each other", opening * DEPTH + b"1" + closing * DEPTH)
        yield _post(f"{DEPTH} {what} begun", opening * DEPTH)
        deep = b'{"metadata":{"name":"x","labels":' + opening * DEPTH + b"1" + closing * DEPTH + b"}}"
        yield _post(f"{DEPTH} {what} as labels", deep)


def _with(field: str, raw: str, obj: Any = None) -> bytes:
    """An object with these bytes for a value, whatever they are."""
    whole = json.dumps({**(obj or pod()), "MARK": 0})
    return whole.replace('"MARK": 0', f'"{field}": {raw}').encode("utf-8", "surrogatepass")


def _numbers_and_letters() -> Iterator[Case]:
    for raw in (
        "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e999999999", "9" * 400, "9" * 5000, "9" * 100_000,
        "9223372036854775808", "-9223372036854775809", "1.5", "1e-400", "0.1e1", '"5"', "true",
        "2147483648", "-2147483649", "1e9999", "1E5x",
    ):  # fmt: skip
        shown_as = raw if len(raw) < 30 else f"{len(raw)} digits"
        spec = json.dumps(DEPLOYMENT["spec"] | {"MARK": 0}).replace('"MARK": 0', f'"replicas": {raw}')
        body = json.dumps(DEPLOYMENT | {"spec": 0}).replace('"spec": 0', f'"spec": {spec}')
        yield _post(f"{shown_as} replicas", body.encode(), f"{APPS}/deployments?dryRun=All")
        yield _post(f"{shown_as} for generation", _with("metadata", f'{{"name":"x","generation":{raw}}}'))
    for raw in ("\ud800", "\udfff", "\udc00\ud800"):
        escaped = json.dumps(raw)
        meta = f'{{"name":"x","annotations":{{"a":{escaped}}}}}'
        yield _post(f"the lone surrogate {escaped} in a name", _with("metadata", f'{{"name":{escaped}}}'))
        yield _post(f"the bytes of {escaped}", _with("metadata", f'{{"name":"{raw}"}}'), f"{PODS}?dryRun=All")
        yield _post(f"the lone surrogate {escaped} in a label key", _with("metadata", meta.replace('"a"', escaped)))
    for octets in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xe2\x82"):
        yield _post(f"the bytes {octets.hex()} in a name", _POD.replace(b'"new"', b'"n' + octets + b'"'))
        yield _post(f"the bytes {octets.hex()} as a key", _POD.replace(b'"new"', b'"x","n' + octets + b'":{}'))
        yield _post(f"the bytes {octets.hex()} for a body", octets)
    for number in range(0x20):
        yield _post(f"the control character {number} in a name", _POD.replace(b'"new"', b'"n%cw"' % number))
    for key in ("metadata", "spec", "kind"):
        twice = _with(key, json.dumps(pod()[key]))
        yield _post(f"{key} twice, strictly", twice, f"{PODS}?fieldValidation=Strict")
    yield _post(
        "a label twice, strictly",
        _with("metadata", '{"name":"x","labels":{"a":"b","a":"c"}}'),
        f"{PODS}?fieldValidation=Strict",
    )


def _sizes() -> Iterator[Case]:
    yield _post("3 MiB and a byte", b'"' + b"a" * (3 * MIB - 1) + b'"')
    yield _post("3 MiB and a byte of spaces", _POD + b" " * (3 * MIB + 1 - len(_POD)))
    yield _post("4 MiB in a pod", dumped(pod(nodeName="a" * 4 * MIB)))
    yield _post("a value of more than a MiB", dumped(CONFIG_MAP | {"data": {"a": "b" * (MIB + 1)}}), MAPS)
    many = {str(number): "b" * 1000 for number in range(1100)}
    yield _post("values of more than a MiB together", dumped(CONFIG_MAP | {"data": many}), MAPS)
    secret = made("v1", "Secret", "new", stringData={"a": "b" * (MIB + 1)})
    yield _post("a secret of more than a MiB", dumped(secret), f"{CORE}/secrets")
    large = pod() | {"metadata": {"name": "x", "annotations": {"a": "b" * (256 << 10)}}}
    yield _post("annotations of 256 KiB and a byte", dumped(large))
    yield _post("10,000 labels, each wrong", dumped(pod() | {"metadata": {"name": "x", "labels": _labels(10_000)}}))
    yield _post("100,000 containers", dumped(pod(containers=[{}] * 100_000)))
    yield _post("a name of a MiB", dumped(pod("a" * MIB)))
    yield Case("body: 100,000 taints", "POST", "/api/v1/nodes", dumped(NODE | {"spec": {"taints": [{}] * 100_000}}))


def _labels(number: int) -> dict[str, str]:
    return {f"-{at}": "" for at in range(number)}


def _wrong(value: Any) -> Any:
    return "x" if isinstance(value, dict | list | bool | int) else {"a": 1}


def _wrong_types() -> Iterator[Case]:
    """In every place of every kind."""
    for kind, (path, sample) in SAMPLES.items():
        for place, value in places(sample):
            if place not in (("apiVersion",), ("kind",)):
                body = dumped(replaced(sample, place, _wrong(value)))
                yield _post(f"{kind} with another type at {shown(place)}", body, path)
        for odd in (7, "x", True, [], [sample], {"a": sample}):
            yield _post(f"{kind}: metadata is {str(odd)[:20]}", dumped(sample | {"metadata": odd}), path)


def _unknown_fields() -> Iterator[Case]:
    """At every level of every kind, strictly."""
    for kind, (path, sample) in SAMPLES.items():
        yield _post(
            f"{kind} with an unknown field, strictly", dumped(sample | {"odd": 1}), f"{path}?fieldValidation=Strict"
        )
        for place, value in places(sample):
            if isinstance(value, dict) and not _is_map(place):
                body = dumped(replaced(sample, place, value | {"odd": 1}))
                where = f"{path}?fieldValidation=Strict"
                yield _post(f"{kind} with an unknown field in {shown(place)}, strictly", body, where)


def _is_map(place: tuple[str | int, ...]) -> bool:
    maps = (
        "labels", "annotations", "nodeSelector", "matchLabels", "requests", "limits", "max", "allocatable", "selector",
        "data", "stringData", "capacity", "hard", "parameters", "exact",
    )  # fmt: skip
    return place[-1] in maps and place[-2:] != ("spec", "selector")


def _nulls() -> Iterator[Case]:
    """In place of anything: as if it were not there."""
    for kind, (path, sample) in SAMPLES.items():
        for place, _ in places(sample):
            body = dumped(replaced(sample, place, None))
            yield _post(f"{kind} with null at {shown(place)}", body, f"{path}?dryRun=All")


def _content_types() -> Iterator[Case]:
    for content_type in (
        "text/plain", "application/xml", "text/html", "multipart/form-data; boundary=a", "nonsense", "/", ";", "*/*",
        "application/x-www-form-urlencoded", "application/octet-stream", "application/json-patch+json",
        "application/merge-patch+json", "application/jsonx", "application/", "json", "application/cbor", "é", "a/b/c",
        "application/vnd.kubernetes.protobuf;stream=watch", "application/json, text/plain",
    ):  # fmt: skip
        yield _post(f"Content-Type {content_type}", _POD, PODS, content_type)
        yield Case(f"body: PATCH with Content-Type {content_type}", "PATCH", f"{PODS}/none", b"{}", content_type)
    yield _post("gzip", gzip.compress(_POD), PODS, "application/json", "Content-Encoding: gzip")
    yield _post("gzip that is none", _POD, PODS, "application/json", "Content-Encoding: gzip")
    yield _post("deflate", b"\x78\x9c\x00", PODS, "application/json", "Content-Encoding: deflate")
    yield _post("gzip without saying so", gzip.compress(_POD))
    bomb = gzip.compress(b"a" * (64 * MIB))
    yield _post("64 MiB in gzip", bomb, PODS, "application/json", "Content-Encoding: gzip")
    for accept in ("text/plain", "application/xml", "image/png", "application/json;as=Odd;g=meta.k8s.io;v=v1", "x"):
        yield Case(f"Accept: {accept}", "GET", f"{PODS}/p", headers=(f"Accept: {accept}",))


def _kinds() -> Iterator[Case]:
    samples = {"deployment": DEPLOYMENT, "job": JOB, "service": SERVICE, "node": NODE, "namespace": SPACE}
    for kind, sample in samples.items():
        yield _post(f"a {kind} sent to pods", dumped(sample))
        yield _post(f"a pod sent to {kind}s", dumped(pod()), SAMPLES[kind][0])
    for version, kind in (
        ("v2", "Pod"), ("v1", "Odd"), ("apps/v1", "Pod"), ("", "Pod "), ("v1", "pod"), ("v1/v1/v1", "Pod"), ("V1", "Pod"),
        ("extensions/v1beta1", "Deployment"), ("v1", "PodList"), ("v1", "Status"), ("v1", "List"), ("v1", "Pod\x00"),
    ):  # fmt: skip
        yield _post(f"apiVersion {version!r}, kind {kind!r}", dumped(pod() | {"apiVersion": version, "kind": kind}))
    yield _post("a pod of another namespace", dumped(pod() | {"metadata": {"name": "x", "namespace": "default"}}))
    put = dumped(pod("other"))
    yield Case("body: a name other than in the path", "PUT", f"{PODS}/p", put)
    yield Case("body: a namespace in a node", "PUT", "/api/v1/nodes/other", dumped(NODE))
    stale = CONFIG_MAP | {"metadata": {"name": "cm", "resourceVersion": "1"}}
    yield Case("body: an old resourceVersion", "PUT", f"{MAPS}/cm", dumped(stale))
    for version in ("x", "-1", "1.5", "9" * 40, " 1", "0x1", "１"):
        body = dumped(CONFIG_MAP | {"metadata": {"name": "cm", "resourceVersion": version}})
        yield Case(f"body: resourceVersion {version[:20]} in an update", "PUT", f"{MAPS}/cm", body)
        body = dumped(CONFIG_MAP | {"metadata": {"name": "new", "resourceVersion": version}})
        yield _post(f"resourceVersion {version[:20]} in a create", body, MAPS)
    other = dumped(CONFIG_MAP | {"metadata": {"name": "cm", "uid": "00000000-0000-0000-0000-000000000000"}})
    yield Case("body: another uid", "PUT", f"{MAPS}/cm", other)
    yield _post("one that is there already", dumped(CONFIG_MAP | {"metadata": {"name": "cm"}}), MAPS)
    changed = CONFIG_MAP | {"metadata": {"name": "fixed"}, "data": {"a": "changed"}, "immutable": True}
    yield Case("body: a change of what is immutable", "PUT", f"{MAPS}/fixed", dumped(changed))


# ── protobuf ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _field(number: int, value: bytes) -> bytes:
    size, length = len(value), b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


def envelope(kind: str, raw: bytes, version: str = "v1") -> bytes:
    return b"k8s\0" + _field(1, _field(1, version.encode()) + _field(2, kind.encode())) + _field(2, raw)


def _protobuf() -> Iterator[Case]:
    path = "/api/v1/namespaces?dryRun=All"
    good = envelope("Namespace", _field(1, _field(1, b"new")))
    odd = {
        "nothing": b"",
        "its magic alone": b"k8s\0",
        "another magic": b"k9s\0" + good[4:],
        "no magic": good[4:],
        "JSON": dumped(SPACE),
        "another kind": envelope("Pod", _field(1, _field(1, b"new"))),
        "a kind that is none": envelope("Odd", b""),
        "no kind": b"k8s\0" + _field(2, b""),
        "a name of bytes": envelope("Namespace", _field(1, _field(1, b"\xff\xfe"))),
        "a length beyond its end": b"k8s\0\x0a\xff\xff\xff\xff\x0f",
        "an endless number": b"k8s\0\x0a" + b"\xff" * 20,
        "field 0": b"k8s\0\x02\x00",
        "a group begun": b"k8s\0\x0b" * 10,
        "an unknown wire type": b"k8s\0\x0f",
        "metadata that is a number": envelope("Namespace", b"\x08\x05"),
        "100,000 levels": envelope("Namespace", _nested(1000)),
        "content that is encoded": good + _field(3, b"gzip") + _field(4, b"application/json"),
    }
    for name, body in odd.items():
        yield _post(f"protobuf: {name}", body, path, PROTOBUF)
    for cut in range(1, len(good)):
        yield _post(f"protobuf cut after {cut} bytes", good[:cut], path, PROTOBUF)
    dice = random.Random(5)
    for number in range(60):
        at = dice.randrange(4, len(good))
        spoiled = good[:at] + bytes([dice.randrange(256)]) + good[at + 1 :]
        yield _post(f"protobuf with another byte, {number}", spoiled, path, PROTOBUF)


def _nested(levels: int) -> bytes:
    value = b""
    for _ in range(levels):
        value = _field(1, value)
    return value


def _yaml() -> Iterator[Case]:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{after}: &{after} [{','.join([f'*{before}'] * 9)}]\n"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    odd = {
        "a bomb": bomb,
        "an alias of itself": "&a [*a]",
        "an alias of itself in a map": "metadata: &a\n  name: x\n  labels: *a\n",
        "an alias to nothing": "metadata: *none",
        "100,000 lists": "[" * DEPTH,
        "100,000 maps": "{a: " * 20_000,
        "a tag of Python": "!!python/object/apply:os.system ['true']",
        "a tag of its own": "metadata: !odd {name: x}",
        "tabs": "\tmetadata:\n\t\tname: x\n",
        "a key without an end": '"abc',
        "a binary": "metadata: !!binary aGVsbG8=\n",
        "a key that is a list": "? [a, b]\n: c\n",
        "bytes that are no text": "\udcff\udcfe",
        "a control character": "a: \x01",
        "two documents": "a: 1\n---\nb: 2\n",
        "a list": "- a\n- b\n",
        "a word": "word",
        "nothing": "",
        "dates and numbers with colons": "metadata: {name: 1:30}\n",
        "a year": "metadata: {name: 2001-01-01}\n",
        "merge keys": "base: &b {name: x}\nmetadata:\n  <<: *b\n",
        "a long number": f"spec: {'9' * 5000}\n",
    }
    for name, text in odd.items():
        yield _post(f"YAML: {name}", text.encode("utf-8", "surrogateescape"), PODS, YAML)
        manager = f"{PODS}/none?fieldManager=m"
        body = text.encode("utf-8", "surrogateescape")
        yield Case(f"body: apply of YAML: {name}", "PATCH", manager, body, "application/apply-patch+yaml")
