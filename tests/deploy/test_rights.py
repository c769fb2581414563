"""The scheduler is allowed what its code asks for, and nothing else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.rights import (
    KUSTOMIZE,
    PATCH_GROUPS,
    PUBLISH,
    READ_AUTHORITIES,
    REVIEW_ACCESS,
    REVIEW_TOKENS,
    ROOT,
    Allowed,
    allowed,
    needed,
    objects_of,
)
from situate.kube.kinds import ALL_KINDS
from situate.wire.config import load_config

BASE = KUSTOMIZE / "base" / "rights.yaml"
PREEMPTION = KUSTOMIZE / "components" / "preemption" / "rights.yaml"
LEASE = KUSTOMIZE / "overlays" / "instead" / "lease.yaml"
OWN_LEASE = "situate-lease"

LEASES, EVENTS, DEVICES = "coordination.k8s.io", "events.k8s.io", "resource.k8s.io"


def lease(verb: str) -> Allowed:
    return Allowed(verb, LEASES, "leases", "situate-system", "" if verb == "create" else "situate")


# Every request in the code: the file and the method, and which rights it needs. What every account may do anyhow (read
# /version, discover kinds, ask about itself) needs none.
CALLS: dict[tuple[str, str], set[Allowed]] = {
    ("binding", "POST"): {Allowed("create", "", "pods/binding")},
    ("conditions", "PATCH"): {Allowed("patch", "", "pods/status"), PATCH_GROUPS},
    ("delegated", "POST"): {REVIEW_TOKENS, REVIEW_ACCESS},
    ("discovery", "GET"): set(),
    ("eviction", "DELETE"): {Allowed("delete", "", "pods")},
    ("eviction", "PATCH"): {Allowed("patch", "", "pods/status")},
    ("lease_store", "GET"): {lease("get")},
    ("lease_store", "POST"): {lease("create"), Allowed("create", EVENTS, "events")},
    ("lease_store", "PUT"): {lease("update")},
    ("lease_store", "WATCH"): {lease("watch")},
    ("pods", "GET"): {Allowed("get", "", "pods")},
    ("port", "GET"): {Allowed("get", "", f"persistentvolume{s}") for s in ("s", "claims")},
    ("port", "PATCH"): {
        Allowed("patch", EVENTS, "events"),
        *(Allowed("patch", "", f"persistentvolume{s}") for s in ("s", "claims")),
    },
    ("port", "POST"): {Allowed("create", EVENTS, "events")},
    ("preflight", "GET"): set(),
    ("publishing", "PATCH"): {PUBLISH},
    ("reflector", "GET"): {Allowed("list", kind.group, kind.resource) for kind in ALL_KINDS},
    ("reflector", "WATCH"): {Allowed("watch", kind.group, kind.resource) for kind in ALL_KINDS},
    ("resource_claims", "DELETE"): {Allowed("delete", DEVICES, "resourceclaims")},
    ("resource_claims", "GET"): {Allowed("get", DEVICES, "resourceclaims")},
    ("resource_claims", "PATCH"): {
        Allowed("patch", "", "pods/status"),
        *(Allowed("patch", DEVICES, f"resourceclaims{part}") for part in ("", "/status", "/binding")),
    },
    ("resource_claims", "POST"): {Allowed("create", DEVICES, "resourceclaims")},
    ("status_server", "GET"): {READ_AUTHORITIES},
}


NOT_ITS_OWN = ("client", "controllers", "fleet", "served_kinds")
"""What asks for others, and what no scheduler of a cluster runs: the controllers, which look for all kinds, have an
account of their own, and a fleet shares situate's own server."""


def calls_in(file: Path) -> Iterator[tuple[str, str]]:
    """The requests that a file makes: by method, or WATCH where lines are streamed."""
    for found in ast.walk(ast.parse(file.read_text())):
        if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Attribute):
            continue
        if found.func.attr in ("request", "_request") and found.args and isinstance(found.args[0], ast.Constant):
            yield file.stem, str(found.args[0].value)
        elif found.func.attr == "stream":
            yield file.stem, "WATCH"


def test_the_table_has_every_request_of_the_code() -> None:
    files = [file for file in sorted((ROOT / "src" / "situate" / "kube").glob("*.py")) if file.stem not in NOT_ITS_OWN]
    assert {call for file in files for call in calls_in(file)} == set(CALLS)


def test_what_is_allowed_is_what_the_requests_of_the_code_need() -> None:
    assert allowed(objects_of(BASE, PREEMPTION)) == set().union(*CALLS.values())


@pytest.mark.parametrize(
    "files, config",
    [
        pytest.param([BASE], "base", id="beside kube-scheduler"),
        pytest.param([BASE, PREEMPTION], "components/preemption", id="with preemption"),
        pytest.param([BASE, PREEMPTION, LEASE], "overlays/instead", id="instead of kube-scheduler"),
    ],
)
def test_what_is_allowed_is_what_the_configuration_needs(files: list[Path], config: str) -> None:
    objects = objects_of(*files)
    if LEASE in files:  # the overlay deletes the roles for the other Lease
        objects = [
            item
            for item in objects
            if (item["metadata"]["name"], item["metadata"].get("namespace")) != (OWN_LEASE, "situate-system")
        ]
    assert allowed(objects) == needed(load_config((KUSTOMIZE / config / "config.yaml").read_bytes()))


def test_pods_may_be_deleted_only_for_preemption() -> None:
    delete = Allowed("delete", "", "pods")
    assert delete not in allowed(objects_of(BASE))
    assert delete in allowed(objects_of(BASE, PREEMPTION))


def test_nothing_is_allowed_by_a_wildcard() -> None:
    assert [one for one in allowed(objects_of(BASE, PREEMPTION)) if "*" in "".join(one)] == []
