"""Query parameters and options of deletes that are none."""

# ruff: noqa: E501 - tables read better in rows

from collections.abc import Iterator
from urllib.parse import quote

from server.faults.corpus.case import Case, dumped
from server.faults.corpus.objects import APPS, CORE, PODS, pod

BAD_LABELS = (
    "=", "a=b=c", "a in", "a in (", "a in ()x", "a notin b", "a,,b", ",", "!", "!!a", "a=~b", "a>b", "a<b", "a>1.5", "-a=b",
    "a-=b", "/a=b", "a/=b", "a/b/c=d", "a b", "é=b", "a=é", f"{'a' * 64}=b", f"a={'b' * 64}", "a==", "a=b c", "a in (b,c",
    "a in (b))", "(a)", "a=b;c=d", "a\x00=b", "a=b,", "in", "a notin", "a===b", "a=(b)", "a in (é)", f"{'a' * 254}/b=c",
)  # fmt: skip
BAD_FIELDS = (
    "odd=1", "spec.odd=1", "metadata.labels=a", "=", "metadata.name", "metadata.name==a=b", "metadata.name in (a)",
    "spec.nodeName>a", "status.phase=a,odd=b", "a,b", "metadata.name=a\\", "status.conditions=a", ",,", "spec",
)  # fmt: skip
NUMBERS = ("x", "1.5", "1e3", "0x10", "9" * 30, " ", "1 ", "１", "NaN", "%00", "--1", "1,2", "٣")


def cases() -> Iterator[Case]:
    yield from _selectors()
    yield from _lists()
    yield from _writes()
    yield from _deletes()


def _selectors() -> Iterator[Case]:
    for text in BAD_LABELS:
        yield Case(f"labelSelector {ascii(text)[:40]}", "GET", f"{PODS}?labelSelector={quote(text, safe='')}")
        where = f"{PODS}?dryRun=All&labelSelector={quote(text, safe='')}"
        yield Case(f"labelSelector {ascii(text)[:40]} of a delete of many", "DELETE", where)
    for text in BAD_FIELDS:
        if text in ("=", ",,"):
            continue  # nothing, to kube-apiserver
        yield Case(f"fieldSelector {text}", "GET", f"{PODS}?fieldSelector={quote(text, safe='')}")
        yield Case(
            f"fieldSelector {text} of a watch",
            "GET",
            f"{PODS}?watch=1&timeoutSeconds=1&fieldSelector={quote(text, safe='')}",
        )
    for field in ("spec.nodeName", "status.phase", "spec.unschedulable"):
        yield Case(f"fieldSelector {field} of deployments", "GET", f"{APPS}/deployments?fieldSelector={field}%3Da")
    yield Case("labelSelector of 60,000 letters", "GET", f"{PODS}?labelSelector={'a%20' * 15_000}")
    nested = quote("a in (" * 1000)
    yield Case("labelSelector with 1,000 brackets", "GET", f"{PODS}?labelSelector={nested}")


def _lists() -> Iterator[Case]:
    for number in NUMBERS:
        value = quote(number, safe="%")
        for name in ("limit", "timeoutSeconds", "resourceVersion"):
            yield Case(f"{name} {number[:10]}", "GET", f"{PODS}?{name}={value}")
        yield Case(
            f"resourceVersion {number[:10]} of a watch",
            "GET",
            f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion={value}",
        )
        yield Case(f"resourceVersion {number[:10]} of a get", "GET", f"{PODS}/p?resourceVersion={value}")
    for number in ("-1", "-9223372036854775808"):
        yield Case(f"limit {number}", "GET", f"{PODS}?limit={number}")
        yield Case(f"resourceVersion {number}", "GET", f"{PODS}?resourceVersion={number}")
    for token in ("x", "e30", "AAAA", "=", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "%ff", "a" * 5000, "bnVsbA", "W10", "MQ"):
        yield Case(f"continue {token[:20]}", "GET", f"{PODS}?limit=1&continue={token}")
    tokens = (
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi8ifQ",  # start ../../
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTIsInN0YXJ0IjoieCJ9",  # rv -2
        "eyJ2Ijoib2RkIiwicnYiOjEsInN0YXJ0IjoieCJ9",  # v odd
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6IngiLCJzdGFydCI6IngifQ",  # rv "x"
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOjV9",  # start 5
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIifQ",  # start ""
    )
    for at, token in enumerate(tokens):
        yield Case(f"continue that was made up, {at}", "GET", f"{PODS}?limit=1&continue={token}")
    yield Case("continue and resourceVersion", "GET", f"{PODS}?limit=1&continue=x&resourceVersion=5")
    for match in ("Odd", "exact", "Exact", "NotOlderThan", " "):
        yield Case(f"resourceVersionMatch {match} alone", "GET", f"{PODS}?resourceVersionMatch={quote(match)}")
    yield Case("resourceVersionMatch Odd", "GET", f"{PODS}?resourceVersion=1&resourceVersionMatch=Odd")
    yield Case("resourceVersionMatch Exact of 0", "GET", f"{PODS}?resourceVersion=0&resourceVersionMatch=Exact")
    yield Case("sendInitialEvents alone", "GET", f"{PODS}?watch=1&timeoutSeconds=1&sendInitialEvents=true")
    yield Case("sendInitialEvents of a list", "GET", f"{PODS}?sendInitialEvents=true")
    initial = "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch"
    yield Case("sendInitialEvents with Exact", "GET", f"{PODS}?{initial}=Exact&allowWatchBookmarks=true")
    for text in ("odd", "2", "yes", "TRUE1", "null"):
        yield Case(f"watch={text}", "GET", f"{PODS}?watch={text}&timeoutSeconds=1&labelSelector=%3D")
        yield Case(f"sendInitialEvents={text}", "GET", f"{PODS}?watch=1&timeoutSeconds=1&sendInitialEvents={text}")
    for raw in ("%", "%zz", "a;b", "limit=%", "&&&=", "limit=1&limit=x", "labelSelector=%ff", "=1"):
        yield Case(f"the query {raw}", "GET", f"{PODS}/none?{raw}")
        yield Case(f"the query {raw} of a list", "GET", f"{PODS}?{raw}&fieldSelector=odd%3D1")
    for options in ("container=none", "tailLines=-1", "tailLines=x", "limitBytes=0", "limitBytes=x", "sinceSeconds=0", "sinceTime=x",
                    "sinceSeconds=5&sinceTime=2020-01-01T00:00:00Z", "stream=Odd"):  # fmt: skip
        yield Case(f"log?{options}", "GET", f"{PODS}/bound/log?{options}")


def _writes() -> Iterator[Case]:
    body = dumped(pod())
    for name, values in {
        "dryRun": ("Odd", "all", "true", "", "All&dryRun=Odd", "None"),
        "fieldValidation": ("Odd", "strict", "true", "Strict,Warn"),
        "fieldManager": ("a" * 129, "%00", "a%0ab", "%ff", "%e2%80%8b"),
    }.items():
        for value in values:
            query = f"{name}={value}"
            if query == "dryRun=":
                continue
            yield Case(f"{query[:40]} of a create", "POST", f"{PODS}?{query}", body)
            merge = "application/merge-patch+json"
            yield Case(
                f"{query[:40]} of a patch", "PATCH", f"{CORE}/configmaps/cm?{query}", b'{"data":{"z":"z"}}', merge
            )
    yield Case(
        "force of a merge patch",
        "PATCH",
        f"{CORE}/configmaps/cm?force=true",
        b'{"data":{"z":"z"}}',
        "application/merge-patch+json",
    )
    for value in ("odd", "2", ""):
        apply = "application/apply-patch+yaml"
        where = f"{CORE}/configmaps/cm?force={value}"
        yield Case(
            f"force={value} of an apply without a manager",
            "PATCH",
            where,
            b'{"kind":"ConfigMap","apiVersion":"v1"}',
            apply,
        )


def _deletes() -> Iterator[Case]:
    one = f"{CORE}/configmaps/cm"
    for query in (
        "propagationPolicy=Odd", "propagationPolicy=background", "gracePeriodSeconds=x", "gracePeriodSeconds=1.5",
        "dryRun=Odd", "orphanDependents=true&propagationPolicy=Foreground",
        f"gracePeriodSeconds={'9' * 30}",
    ):  # fmt: skip
        yield Case(f"DELETE ?{query[:50]}", "DELETE", f"{one}?{query}")
    for number, options in enumerate((
        {"propagationPolicy": "Odd"}, {"propagationPolicy": 5}, {"gracePeriodSeconds": "x"}, {"gracePeriodSeconds": 1.5},
        {"gracePeriodSeconds": 2**70}, {"preconditions": {"uid": "other"}}, {"preconditions": {"uid": 5}}, {"preconditions": "x"},
        {"preconditions": {"resourceVersion": "1"}}, {"preconditions": {"resourceVersion": "x"}}, {"dryRun": ["Odd"]},
        {"dryRun": "All"}, {"dryRun": [5]}, {"orphanDependents": True, "propagationPolicy": "Background"},
        {"orphanDependents": "x"}, {"kind": "Pod", "apiVersion": "v1"},
        {"kind": 5}, {"apiVersion": []},
    )):  # fmt: skip
        yield Case(f"DELETE with {options}", "DELETE", one, dumped(options))
        if number < 8:
            yield Case(f"DELETE of many with {options}", "DELETE", f"{CORE}/configmaps", dumped(options))
    for body in (b"[]", b"5", b"x", b"{", b'"x"', b"\xff", b'{"preconditions":' + b"[" * 100_000):
        yield Case(f"DELETE with {body[:20]!r}", "DELETE", one, body)
    yield Case("DELETE of what is not there", "DELETE", f"{CORE}/configmaps/none")
    yield Case("DELETE of many with a bad selector", "DELETE", f"{CORE}/configmaps?labelSelector=a%20b")
    yield Case("DELETE with text/plain", "DELETE", one, b"{}", "text/plain")
