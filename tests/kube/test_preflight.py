"""What is found out before a scheduler begins, and what it says about it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from situate.core.config.defaults import default_configuration
from situate.kube.access import Access
from situate.kube.errors import ApiError
from situate.kube.needed_kinds import needed_kinds
from situate.kube.preflight import Right, missing_rights, reach, rights_of, served_devices
from situate.loop.election import ElectionRules
from situate.wire.config import load_config
from situate.wire.errors import InputError

ACCESS = Access("https://10.0.0.1:6443", where='/etc/kubeconfig, context "dev"')


class Answers:
    """An API server that gives these answers, one after another."""

    def __init__(self, *answers: bytes | ApiError) -> None:
        self.left = list(answers)
        self.waited: list[float] = []

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        answer = self.left.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


def reached(*answers: bytes | ApiError) -> tuple[str, Answers]:
    server = Answers(*answers)
    client: Any = server
    return asyncio.run(reach(client, ACCESS, server.sleep, lambda: 1.0)), server


VERSION = b'{"gitVersion":"v1.36.4"}'
NOBODY = ApiError(0, "Unreachable", "connection refused")


def test_an_api_server_that_is_there_says_its_version() -> None:
    version, server = reached(VERSION)
    assert (version, server.waited) == ("v1.36.4", [])


def test_one_that_cannot_be_reached_is_waited_for_longer_each_time(caplog: pytest.LogCaptureFixture) -> None:
    version, server = reached(*[NOBODY] * 7, VERSION)
    assert version == "v1.36.4"
    assert server.waited == [1, 2, 4, 8, 16, 30, 30]
    assert len(caplog.records) == 7


def test_one_that_says_when_to_come_back_is_left_alone_until_then() -> None:
    busy = ApiError(503, "ServiceUnavailable", "starting", retry_after_s=9.0)
    assert reached(busy, VERSION)[1].waited == [9]


@pytest.mark.parametrize(
    "answer, said",
    [
        pytest.param(
            ApiError(401, "Unauthorized", "Unauthorized"), "Unauthorized: wrong or expired", id="an old token"
        ),
        pytest.param(ApiError(0, "NoCredentials", "exec: aws: not found"), "aws: not found", id="no credentials"),
        pytest.param(ApiError(404, "NotFound", "no such page"), "does not answer as an API server", id="a web page"),
        pytest.param(b"<html>", "does not answer as an API server", id="no JSON"),
    ],
)
def test_what_waiting_cannot_help_is_one_line_that_names_the_kubeconfig(answer: bytes | ApiError, said: str) -> None:
    with pytest.raises(InputError, match=rf'/etc/kubeconfig, context "dev": .*{said}'):
        reached(answer)


class Reviews:
    def __init__(self, denied: Sequence[tuple[str, str]]) -> None:
        self.denied = denied

    async def request(self, method: str, path: str, *, body: bytes, **_: Any) -> bytes:
        review = msgspec.json.decode(body)
        if review["kind"] == "SelfSubjectReview":
            return b'{"status":{"userInfo":{"username":"jane"}}}'
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(asked[key] for key in ("resource", "subresource") if key in asked)
        return msgspec.json.encode({"status": {"allowed": (asked["verb"], resource) not in self.denied}})


def missing(*denied: tuple[str, str]) -> list[str]:
    client: Any = Reviews(denied)
    config = default_configuration()
    return asyncio.run(missing_rights(client, rights_of(config, needed_kinds(config), ElectionRules())))


def test_who_may_everything_is_told_nothing() -> None:
    assert missing() == []


def test_what_is_missing_is_said_with_the_rule_to_add() -> None:
    assert missing(("list", "nodes"), ("watch", "nodes"), ("create", "pods/binding")) == [
        (
            'User "jane" cannot list, watch resource "nodes" in API group "" at the cluster scope: '
            'add the rule {apiGroups: [""], resources: ["nodes"], verbs: ["list","watch"]} '
            "to a ClusterRole that is bound to it"
        ),
        (
            'User "jane" cannot create resource "pods/binding" in API group "" at the cluster scope: '
            'add the rule {apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]} '
            "to a ClusterRole that is bound to it"
        ),
    ]


def test_a_right_in_one_namespace_belongs_in_a_role() -> None:
    (line,) = missing(("update", "leases"))
    assert 'in the namespace "kube-system": ' in line
    assert "to a Role that is bound to it" in line


def test_where_nobody_can_say_nothing_is_said() -> None:
    class Silent:
        async def request(self, *_: Any, **__: Any) -> bytes:
            raise ApiError(403, "Forbidden", "no")

    client: Any = Silent()
    assert asyncio.run(missing_rights(client, [Right("list", "pods")])) == []


def test_deleting_pods_is_asked_for_only_where_pods_are_preempted() -> None:
    without = load_config(b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: DefaultPreemption}]
""")
    delete = Right("delete", "pods")
    assert delete in rights_of(default_configuration(), (), None)
    assert delete not in rights_of(without, (), None)


def test_claims_are_asked_about_only_where_the_server_has_them() -> None:
    class Old:
        async def request(self, method: str, path: str) -> bytes:
            if path == "/apis/resource.k8s.io/v1":
                served = [
                    {"name": name, "verbs": ["list", "watch"]}
                    for name in ("deviceclasses", "resourceslices", "resourceclaims")
                ]
                return msgspec.json.encode({"groupVersion": "resource.k8s.io/v1", "resources": served})
            raise ApiError(404, "NotFound", "no such page")

    config, client, silent = default_configuration(), Old(), Answers(*[NOBODY] * 9)
    kinds = asyncio.run(served_devices(client, needed_kinds(config)))  # type: ignore[arg-type]
    asked = {right.full for right in rights_of(config, kinds, None) if right.group == "resource.k8s.io"}
    assert {"deviceclasses", "resourceslices", "resourceclaims", "resourceclaims/status"} < asked
    assert "devicetaintrules" not in asked
    none = asyncio.run(served_devices(silent, needed_kinds(config)))  # type: ignore[arg-type]
    assert not [right for right in rights_of(config, none, None) if right.group == "resource.k8s.io"]


def test_who_only_watches_asks_for_no_right_to_write() -> None:
    config = default_configuration()
    rights = rights_of(config, needed_kinds(config), None, writes=False)
    assert {right.verb for right in rights} == {"list", "watch"}
