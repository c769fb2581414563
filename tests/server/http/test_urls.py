from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.server.errors import StatusError
from situate.server.http.urls import parse_url, verb_of


@pytest.mark.parametrize(
    "path, plural, namespace, name, subresource, served",
    [
        pytest.param("/api/v1/pods", "pods", "", "", "", True, id="all pods of all namespaces"),
        pytest.param("/api/v1/namespaces/a/pods", "pods", "a", "", "", True, id="pods of a namespace"),
        pytest.param("/api/v1/namespaces/a/pods/", "pods", "a", "", "", True, id="a slash at the end changes nothing"),
        pytest.param("/api/v1/namespaces/a/pods/p", "pods", "a", "p", "", True, id="one pod"),
        pytest.param("/api/v1/namespaces/a/pods/p/log", "pods", "a", "p", "log", True, id="a subresource"),
        pytest.param("/api/v1/namespaces/a/pods/p/log/x", "pods", "a", "p", "log", False, id="more than a subresource"),
        pytest.param("/api/v1/namespaces/a/pods/p/fax", "pods", "a", "p", "fax", False, id="an unknown subresource"),
        pytest.param("/api/v1/nodes/n/proxy/a/b", "nodes", "", "n", "proxy", True, id="the path of a proxy goes on"),
        pytest.param("/api/v1/pods/p", "pods", "p", "", "", False, id="a namespaced object without its namespace"),
        pytest.param("/api/v1/namespaces", "namespaces", "", "", "", True, id="all namespaces"),
        pytest.param("/api/v1/namespaces/a", "namespaces", "a", "a", "", True, id="a namespace is within itself"),
        pytest.param("/api/v1/namespaces/a/status", "namespaces", "a", "a", "status", True, id="its status"),
        pytest.param("/api/v1/namespaces/a/finalize", "namespaces", "a", "a", "finalize", True, id="its end"),
        pytest.param("/api/v1/nodes/n", "nodes", "", "n", "", True, id="an object of the cluster"),
        pytest.param("/api/v1/namespaces/a/nodes", "nodes", "a", "", "", False, id="nodes are in no namespace"),
        pytest.param("/apis/apps/v1/deployments", "deployments", "", "", "", True, id="a named group"),
        pytest.param("/apis/apps/v2/deployments", "deployments", "", "", "", False, id="a version that is not served"),
        pytest.param("/api/v1/foos", "foos", "", "", "", False, id="a resource that is not served"),
        pytest.param("/api/v1/bindings", "bindings", "", "", "", False, id="what cannot be listed needs a namespace"),
    ],
)
def test_a_path_is_a_place(path: str, plural: str, namespace: str, name: str, subresource: str, served: bool) -> None:
    place = parse_url(path)
    assert (place.plural, place.subresource) == (plural, subresource)
    assert (place.resource is not None) is served
    if served:
        assert (place.namespace, place.name) == (namespace, name)


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "//api/v1/pods"])
def test_a_document_is_no_resource(path: str) -> None:
    assert parse_url(path).plural == ""


@pytest.mark.parametrize("name", ["\r\n", "a\0b", "\u2028"])
def test_a_name_that_cannot_be_printed_is_reachable(name: str) -> None:
    place = parse_url(f"/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/{quote(name)}")
    assert place.name == name


def test_a_slash_that_was_escaped_leads_nowhere() -> None:
    assert parse_url("/api/v1/namespaces/default/pods/a%2Fb").resource is None


@pytest.mark.parametrize(
    "path, message",
    [
        ("/api/v1/namespaces/default/pods/..", "Name parameter invalid: \"..\": may not be '..'"),
        ("/api/v1/namespaces/default/pods/%2e", "Name parameter invalid: \".\": may not be '.'"),
        ("/api/v1/namespaces/default/pods/%ff", "the path of the request is not UTF-8"),
        ("api", "the request path does not start with a slash"),
    ],
)
def test_odd_paths_are_refused_in_words(path: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_url(path)
    assert (refused.value.code, refused.value.message) == (400, message)


@given(st.text(max_size=80))
def test_no_path_does_more_than_be_refused(text: str) -> None:
    code = 200
    try:
        parse_url("/" + text)
    except StatusError as refused:
        code = refused.code
    assert code in (200, 400, 414)


@pytest.mark.parametrize(
    "method, path, watch, verb",
    [
        ("GET", "/api/v1/pods", False, "list"),
        ("GET", "/api/v1/pods", True, "watch"),
        ("GET", "/api/v1/namespaces/a/pods/p", True, "get"),
        ("POST", "/api/v1/namespaces/a/pods", False, "create"),
        ("DELETE", "/api/v1/namespaces/a/pods", False, "deletecollection"),
        ("DELETE", "/api/v1/namespaces/a/pods/p", False, "delete"),
        ("PATCH", "/api/v1/namespaces/a/pods/p", False, "patch"),
        ("TRACE", "/api/v1/namespaces/a/pods/p", False, ""),
        ("GET", "/version", False, "get"),
        ("POST", "/version", False, "post"),
    ],
)
def test_a_method_is_a_verb(method: str, path: str, watch: bool, verb: str) -> None:
    assert verb_of(method, parse_url(path), watch) == verb
