from collections.abc import Callable

import pytest

from situate.server.errors import StatusError
from situate.server.http.negotiation import Form, body_type, parse_accept, patch_type, refuse_table, wants_discovery

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    "header, form",
    [
        pytest.param("", Form(), id="nothing asked"),
        pytest.param("*/*", Form(), id="anything"),
        pytest.param(TABLE, Form("Table", "v1"), id="what kubectl get asks"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", Form(), id="protobuf, or else JSON"),
        pytest.param(
            "application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", Form(), id="an unknown shape, or JSON"
        ),
        pytest.param("application/json;as=Table;v=v9;g=meta.k8s.io, */*;q=0.1", Form(), id="a version that is unknown"),
        pytest.param(
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Form("PartialObjectMetadataList", "v1"),
            id="metadata alone",
        ),
    ],
)
def test_the_first_form_that_can_be_had_is_taken(header: str, form: Form) -> None:
    assert parse_accept(header) == form


@pytest.mark.parametrize(
    "header", ["text/html", "application/vnd.kubernetes.protobuf", "application/json;as=Foo;g=x;v=y"]
)
def test_what_cannot_be_had_is_406(header: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_accept(header)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")


def test_aggregated_discovery_is_given_to_those_who_ask_for_it_first() -> None:
    both = f"{DISCOVERY.format('v2')},{DISCOVERY.format('v2beta1')},application/json"
    assert wants_discovery(both) == "v2"
    assert wants_discovery(f"{DISCOVERY.format('v9')},{DISCOVERY.format('v2beta1')}") == "v2beta1"
    assert wants_discovery(f"application/json,{DISCOVERY.format('v2')}") == ""
    assert wants_discovery(TABLE) == ""


@pytest.mark.parametrize("ask", [wants_discovery, refuse_table])
def test_what_has_no_table_is_not_given_to_those_who_accept_nothing_else(ask: Callable[[str], object]) -> None:
    with pytest.raises(StatusError) as refused:
        ask("application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io")
    assert refused.value.code == 406
    ask(TABLE)
    ask("")


def test_types_of_bodies() -> None:
    assert [body_type(one) for one in ("", "application/json; charset=utf-8", "application/yaml")] == [
        "json",
        "json",
        "yaml",
    ]
    assert patch_type("application/apply-patch+yaml") == "apply"
    for ask in (body_type, patch_type):
        with pytest.raises(StatusError) as refused:
            ask("text/plain")
        assert refused.value.code == 415
