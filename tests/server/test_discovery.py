import json
from pathlib import Path
from typing import Any

import pytest

from situate.server.discovery import Discovery
from situate.server.resources import BY_PATH, served_by

FACTS = json.loads((Path(__file__).parent / "discovery_facts.json").read_text())
SERVED = served_by("1.36")
"""The facts are of this version."""
OURS = ("situate.dev", "scheduling.x-k8s.io", "metrics.k8s.io")


def aggregated(path: str, version: str = "v2") -> Any:
    found = Discovery(SERVED).aggregated(path, version)
    assert found is not None
    return json.loads(found.body)


def plain(path: str) -> Any:
    found = Discovery(SERVED).plain(path, "127.0.0.1:6443")
    assert found is not None
    return json.loads(found.body)


def rows() -> dict[str, Any]:
    found = {}
    for path in ("/api", "/apis"):
        for group in aggregated(path)["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name", "")
                prefix = f"{name}/{version['version']}" if name else version["version"]
                found.update({f"{prefix}/{row['resource']}": row for row in version["resources"]})
    return found


ROWS = rows()


@pytest.mark.parametrize("name", FACTS["resources"])
def test_each_resource_is_described_as_kube_apiserver_does(name: str) -> None:
    assert ROWS[name] == FACTS["resources"][name]


def test_only_what_kubernetes_does_not_have_is_not_compared() -> None:
    unknown = {name.rpartition("/")[0] for name in ROWS if name not in FACTS["resources"]}
    assert unknown == {
        "situate.dev/v1alpha1",
        "scheduling.x-k8s.io/v1alpha1",
        "scheduling.k8s.io/v1beta1",
        "metrics.k8s.io/v1beta1",  # of another server, which tells kube-apiserver
    }


def test_groups_stand_in_kube_apiservers_order() -> None:
    groups = [group["name"] for group in plain("/apis")["groups"]]
    assert [group for group in groups if group not in OURS] == [one for one in FACTS["groups"] if one in groups]
    assert groups[-3:] == ["scheduling.x-k8s.io", "metrics.k8s.io", "situate.dev"]


def test_the_newest_stable_version_is_preferred() -> None:
    scheduling = next(one for one in plain("/apis")["groups"] if one["name"] == "scheduling.k8s.io")
    assert [one["version"] for one in scheduling["versions"]] == ["v1", "v1beta1", "v1alpha2"]
    assert scheduling["preferredVersion"]["version"] == "v1"


def test_both_ways_tell_the_same() -> None:
    for one in SERVED:
        path = f"/apis/{one.api_version}" if one.group else f"/api/{one.version}"
        listed = {row["name"]: row for row in plain(path)["resources"]}
        row, other = listed[one.plural], ROWS[f"{one.api_version}/{one.plural}"]
        assert (row["kind"], row["verbs"]) == (other["responseKind"]["kind"], other["verbs"])
        assert row["namespaced"] is (other["scope"] == "Namespaced")
        assert (row["singularName"], row.get("shortNames")) == (other["singularResource"], other.get("shortNames"))
        for sub in other.get("subresources", []):
            assert listed[f"{one.plural}/{sub['subresource']}"]["verbs"] == sub["verbs"]


def test_drain_finds_that_evictions_are_of_the_policy_group() -> None:
    row = next(row for row in plain("/api/v1")["resources"] if row["name"] == "pods/eviction")
    assert (row["group"], row["version"], row["kind"]) == ("policy", "v1", "Eviction")


def test_the_old_list_of_versions_says_where_the_server_is() -> None:
    assert plain("/api") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def test_a_document_that_is_the_same_has_the_same_tag() -> None:
    first, again = Discovery(SERVED).aggregated("/apis", "v2"), Discovery(SERVED).aggregated("/apis", "v2")
    fewer = Discovery([BY_PATH["", "v1", "pods"]]).aggregated("/apis", "v2")
    assert first == again
    assert first is not None
    assert fewer is not None
    assert first.etag != fewer.etag
    assert first.etag.startswith('"')


def test_what_is_not_served_has_no_document() -> None:
    assert Discovery(SERVED).plain("/apis/foo", "") is None
    assert Discovery(SERVED).aggregated("/api", "v9") is None


def test_a_row_has_the_hash_of_the_stored_version_as_kube_apiserver_computes_it() -> None:
    by_name = {row["name"]: row for row in plain("/api/v1")["resources"]}
    assert by_name["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="
    assert "storageVersionHash" not in by_name["bindings"]
    assert "storageVersionHash" not in by_name["pods/status"]
    events = next(row for row in plain("/apis/events.k8s.io/v1")["resources"] if row["name"] == "events")
    assert events["storageVersionHash"] == by_name["events"]["storageVersionHash"]
