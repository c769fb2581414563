"""The ServiceAccount of a new pod, and the volume with its token."""

from typing import Any

import pytest

from server.registry.stories import ANN, POD, World, namespace, no, pod, tell
from situate.server.admission import accounts
from situate.server.admission.accounts import MOUNTED_AT
from situate.server.admission.chain import chain
from situate.server.registry.cache import Cache
from situate.server.registry.ports import AdmissionPlugin
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND

ACCOUNT = BY_KIND["v1", "ServiceAccount"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "WAIT_S", 0.001)


def admission(cache: Cache) -> list[AdmissionPlugin]:
    return chain(cache, accounts=True)


def account(name: str, **fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}, **fields}


async def _with_default(world: World) -> None:
    await world.create(namespace("default"))
    await world.create(account("default"))


def test_a_pod_without_an_account_runs_as_default_and_gets_its_token() -> None:
    async def story(world: World) -> None:
        await _with_default(world)
        spec = (await world.create(pod("p")))["spec"]
        assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
        (volume,) = spec["volumes"]
        assert volume["name"].startswith("kube-api-access-")
        assert volume["projected"] == {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {
                    "downwardAPI": {
                        "items": [
                            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                        ]
                    }
                },
            ],
            "defaultMode": 420,
        }
        mount = {"name": volume["name"], "readOnly": True, "mountPath": MOUNTED_AT}
        assert spec["containers"][0]["volumeMounts"] == [mount]

    tell(story, admission=admission)


def test_pods_of_one_template_are_equal_and_a_changed_account_counts_at_once() -> None:
    async def story(world: World) -> None:
        await _with_default(world)
        first, second = [(await world.create(pod(name)))["spec"] for name in ("a", "b")]
        assert first == second
        await world.update({**(await world.get(ACCOUNT, "default")), "automountServiceAccountToken": False})
        assert "volumes" not in (await world.create(pod("c")))["spec"]

    tell(story, admission=admission)


def test_without_controllers_a_pod_goes_without_the_account_that_nobody_creates() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        assert "volumes" not in (await world.create(pod("p")))["spec"]
        robot = pod("q")
        robot["spec"]["serviceAccountName"] = "robot"
        _, _, text = await no(world.create(robot))
        assert text.endswith('serviceaccount "robot" not found')
        await world.create(account("default"))
        assert (await world.create(pod("r")))["spec"]["serviceAccountName"] == "default"

    tell(story, admission=lambda cache: chain(cache, accounts=False))


def test_a_missing_account_is_refused_in_kubernetes_words() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        code, _, text = await no(world.create(pod("p")))
        why = 'error looking up service account default/default: serviceaccount "default" not found'
        assert (code, text) == (403, f'pods "p" is forbidden: {why}')
        other = pod("p")
        other["spec"]["serviceAccountName"] = "robot"
        _, _, text = await no(world.create(other))
        assert text.endswith('error looking up service account default/robot: serviceaccount "robot" not found')

    tell(story, admission=admission)


@pytest.mark.parametrize(
    "of_pod, of_account, mounted",
    [(None, None, True), (None, False, False), (True, False, True), (False, None, False), (False, True, False)],
)
def test_the_pod_decides_about_the_mount_then_the_account(
    of_pod: bool | None, of_account: bool | None, mounted: bool
) -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        told = {} if of_account is None else {"automountServiceAccountToken": of_account}
        await world.create(account("default", **told))
        body = pod("p")
        if of_pod is not None:
            body["spec"]["automountServiceAccountToken"] = of_pod
        assert ("volumes" in (await world.create(body))["spec"]) == mounted

    tell(story, admission=admission)


def test_a_mount_of_ones_own_stays() -> None:
    async def story(world: World) -> None:
        await _with_default(world)
        body = pod("p")
        body["spec"]["volumes"] = [{"name": "mine", "emptyDir": {}}]
        body["spec"]["containers"][0]["volumeMounts"] = [{"name": "mine", "mountPath": MOUNTED_AT}]
        spec = (await world.create(body))["spec"]
        assert [one["name"] for one in spec["volumes"]] == ["mine"]

    tell(story, admission=admission)


def test_pull_secrets_of_the_account_are_for_pods_without_any() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        await world.create(account("default", imagePullSecrets=[{"name": "registry"}]))
        assert (await world.create(pod("a")))["spec"]["imagePullSecrets"] == [{"name": "registry"}]
        body = pod("b")
        body["spec"]["imagePullSecrets"] = [{"name": "mine"}]
        assert (await world.create(body))["spec"]["imagePullSecrets"] == [{"name": "mine"}]

    tell(story, admission=admission)


def test_a_mirror_pod_has_no_account() -> None:
    async def story(world: World) -> None:
        await _with_default(world)
        mirror = pod("p", "n1", annotations={"kubernetes.io/config.mirror": "x"})
        assert "serviceAccountName" not in (await world.create(mirror))["spec"]
        mirror["metadata"]["name"] = "q"
        mirror["spec"]["serviceAccountName"] = "default"
        _, _, text = await no(world.create(mirror))
        assert text == 'pods "q" is forbidden: a mirror pod may not reference service accounts'

    tell(story, admission=admission)


def test_an_account_may_limit_secrets_to_its_own() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        strict = account("default", secrets=[{"name": "own"}])
        strict["metadata"]["annotations"] = {"kubernetes.io/enforce-mountable-secrets": "true"}
        await world.create(strict)
        body = pod("p")
        body["spec"]["volumes"] = [{"name": "s", "secret": {"secretName": "other"}}]
        _, _, text = await no(world.create(body))
        assert text == (
            'pods "p" is forbidden: volume with secret.secretName="other" is not allowed because service account '
            "default does not reference that secret"
        )
        body["spec"]["volumes"] = [{"name": "s", "secret": {"secretName": "own"}}]
        await world.create(body)
        await world.registry.delete(Target(POD, "default", "p"), ANN)

    tell(story, admission=admission)
