from collections.abc import Callable

import pytest

from situate.server.errors import StatusError
from situate.server.http.query import (
    delete_options,
    flag,
    list_options,
    log_options,
    name_in,
    parse_query,
    watch_options,
    write_options,
)
from situate.server.requests import DeleteOptions, ListOptions, WatchOptions, WriteOptions


def refusal_of(options: str, kind: str = "list", how: str = "") -> StatusError:
    query = parse_query(options)
    readers: dict[str, Callable[[], object]] = {
        "list": lambda: list_options(query),
        "watch": lambda: watch_options(query),
        "delete": lambda: delete_options(query, {}),
        "log": lambda: log_options(query),
    }
    read = readers.get(kind, lambda: write_options(query, kind, how=how))
    with pytest.raises(StatusError) as refused:
        read()
    return refused.value


def test_options_are_decoded_once() -> None:
    assert parse_query("labelSelector=a%3Db%2Cc&fieldSelector=x+y") == {
        "labelSelector": "a=b,c",
        "fieldSelector": "x y",
    }
    assert parse_query("x=%zz") == {"x": "%zz"}
    assert parse_query("limit=1&limit=2") == {"limit": "1"}
    assert parse_query("dryRun=All&dryRun=No") == {"dryRun": "All,No"}


def test_more_options_than_anybody_needs_are_refused() -> None:
    with pytest.raises(StatusError):
        parse_query("&".join(f"a{number}=b" for number in range(300)))


@pytest.mark.parametrize(
    "text, yes", [("w=1", True), ("w=maybe", True), ("w", True), ("w=0", False), ("w=False", False)]
)
def test_only_false_and_0_are_no(text: str, yes: bool) -> None:
    assert flag(parse_query(text), "w") is yes
    assert flag(parse_query(text), "other") is None


def test_options_of_a_list() -> None:
    query = parse_query("limit=5&continue=c&labelSelector=l&fieldSelector=f&resourceVersion=7&pretty=zz")
    assert list_options(query) == ListOptions("l", "f", 5, "c", "7", "")
    assert list_options(parse_query("limit=-1")).limit == 0


@pytest.mark.parametrize(
    "options, kind, code, message",
    [
        ("limit=a", "list", 400, 'strconv.ParseInt: parsing "a": invalid syntax'),
        (
            "limit=99999999999999999999",
            "list",
            400,
            'strconv.ParseInt: parsing "99999999999999999999": value out of range',
        ),
        ("timeoutSeconds=1.5", "list", 400, 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        (
            "resourceVersionMatch=Exact",
            "list",
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden:'
                " resourceVersionMatch is forbidden"
                " unless resourceVersion is provided"
            ),
        ),
        (
            "resourceVersionMatch=Foo",
            "list",
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden:'
                " resourceVersionMatch is forbidden"
                " unless resourceVersion is provided, resourceVersionMatch: Unsupported value: "
                '"Foo": supported values: "Exact", "NotOlderThan", ""]'
            ),
        ),
        (
            "sendInitialEvents=true",
            "list",
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: '
                "sendInitialEvents is forbidden for list"
            ),
        ),
        (
            "sendInitialEvents=true",
            "watch",
            422,
            (
                'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden:'
                " sendInitialEvents requires setting"
                " resourceVersionMatch to NotOlderThan"
            ),
        ),
        (
            "dryRun=No",
            "CreateOptions",
            422,
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["No"]: supported values: "All"',
        ),
        (
            "fieldValidation=Foo",
            "CreateOptions",
            422,
            (
                'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo":'
                ' supported values: "",'
                ' "Ignore", "Strict", "Warn"'
            ),
        ),
        (
            "fieldManager=" + "x" * 129,
            "UpdateOptions",
            422,
            'UpdateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
        ),
        (
            "fieldManager=%01",
            "CreateOptions",
            422,
            (
                'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "\\x01": invalid'
                " character U+0001 (at"
                " position 0)"
            ),
        ),
        ("gracePeriodSeconds=a", "delete", 400, 'strconv.ParseInt: parsing "a": invalid syntax'),
        (
            "propagationPolicy=Foo",
            "delete",
            422,
            (
                'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Foo":'
                " supported values:"
                ' "Foreground", "Background", "Orphan", "nil"'
            ),
        ),
        ("tailLines=a", "log", 400, 'strconv.ParseInt: parsing "a": invalid syntax'),
    ],
)
def test_what_cannot_be_read_is_refused_in_kube_apiservers_words(
    options: str, kind: str, code: int, message: str
) -> None:
    refused = refusal_of(options, kind)
    assert (refused.code, refused.message) == (code, message)


def test_an_apply_names_its_manager_and_only_an_apply_forces() -> None:
    assert (
        "fieldManager: Required value: is required for apply patch" in refusal_of("", "PatchOptions", "apply").message
    )
    assert "force: Forbidden" in refusal_of("force=true", "PatchOptions", "merge").message
    options = write_options(
        parse_query("fieldManager=m&force=true&dryRun=All&fieldValidation=Strict"), "x", how="apply"
    )
    assert options == WriteOptions(True, "m", "Strict", True)


def test_options_of_a_watch() -> None:
    query = parse_query(
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=9"
    )
    assert watch_options(query) == WatchOptions("", "", "", "NotOlderThan", True, True, 9)


def test_the_body_of_a_delete_comes_before_the_query() -> None:
    body = {"gracePeriodSeconds": 3, "preconditions": {"uid": "u"}, "propagationPolicy": "Orphan", "dryRun": ["All"]}
    assert delete_options(parse_query("gracePeriodSeconds=9"), body) == DeleteOptions(True, 3, "u", "", "Orphan")
    assert delete_options(parse_query("gracePeriodSeconds=9"), {}) == DeleteOptions(False, 9)
    assert delete_options({}, {"orphanDependents": True}).propagation == "Orphan"


@pytest.mark.parametrize(
    "selector, name",
    [("metadata.name=x", "x"), ("spec.nodeName=n,metadata.name==x", "x"), ("metadata.name!=x", ""), ("a=b", "")],
)
def test_a_field_selector_can_name_one_object(selector: str, name: str) -> None:
    assert name_in({"fieldSelector": selector}) == name


@pytest.mark.parametrize(
    "option, why",
    [
        pytest.param("9" * 5_000, "value out of range", id="thousands of digits"),
        pytest.param("9223372036854775808", "value out of range", id="beyond int64"),
        pytest.param("1_0", "invalid syntax", id="an underscore"),
        pytest.param("%D9%A3", "invalid syntax", id="a digit of another script"),
    ],
)
def test_a_number_is_read_as_go_reads_it(option: str, why: str) -> None:
    for kind, name in (("list", "limit"), ("watch", "timeoutSeconds"), ("delete", "gracePeriodSeconds")):
        refused = refusal_of(f"{name}={option}", kind)
        assert refused.code == 400
        assert refused.message.endswith(f": {why}")


@pytest.mark.parametrize("time", ["2020-W01-1T00:00:00Z", "2020-01-01T00:00Z", "x"])
def test_a_time_in_another_notation_than_kubernetes_is_refused(time: str) -> None:
    assert refusal_of(f"sinceTime={time}", "log").code == 400
