"""Pod Security: what namespaces ask for by their labels. All checks are compared in tests/kubernetes."""

import asyncio
from typing import Any

import pytest

from server.registry.stories import ANN, NAMESPACE, POD, World, deployment, namespace, no, pod, tell
from situate.server.admission import pod_security
from situate.server.admission.chain import chain
from situate.server.admission.pod_security import PodSecurity
from situate.server.admission.pod_security_checks import findings
from situate.server.registry.warning import collect_annotations, collecting
from situate.server.requests import Object, Target

PREFIX = "pod-security.kubernetes.io/"
WANTED = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'


def labelled(name: str = "default", **labels: str) -> Object:
    body = namespace(name)
    body["metadata"]["labels"] = {PREFIX + key.replace("_", "-"): value for key, value in labels.items()}
    return body


def sharing(name: str = "p", **fields: Any) -> Object:
    body = pod(name, **fields)
    body["spec"]["hostPID"] = True
    return body


def test_a_namespace_refuses_what_it_enforces_and_warns_of_templates() -> None:
    async def story(world: World) -> None:
        await world.create(labelled(enforce="baseline"))
        await world.create(pod("allowed"))
        why = 'pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
        assert await no(world.create(sharing())) == (403, "Forbidden", why)
        owner = deployment("d")
        owner["spec"]["template"]["spec"]["hostPID"] = True
        with collecting() as warnings:
            await world.create(owner)
        assert warnings == ['would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)']

    tell(story, admission=chain)


def test_a_pod_is_checked_again_when_the_labels_change_and_not_when_its_own_do() -> None:
    async def story(world: World) -> None:
        space = await world.create(labelled(warn="privileged"))
        await world.create(sharing("a"))
        made = await world.create(sharing("b"))  # from a template
        space["metadata"]["labels"] |= {f"{PREFIX}enforce": "baseline"}
        with collecting() as warnings:
            await world.update(space)
        assert warnings == [
            'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
            "a (and 1 other pod): host namespaces",
        ]
        assert (await no(world.create(sharing("c"))))[0] == 403
        made["metadata"]["labels"] = {"changed": "yes"}
        made = await world.update(made)
        made["spec"]["containers"][0]["image"] = "another"
        assert (await no(world.update(made)))[0] == 403
        assert (await world.get(POD, "b"))["spec"]["containers"][0]["image"] != "another"

    tell(story, admission=chain)


def test_only_a_number_of_existing_pods_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_security, "MOST_PODS", 1)

    async def story(world: World) -> None:
        space = await world.create(labelled())
        await world.create(sharing("a"))
        await world.create(sharing("b"))
        space["metadata"]["labels"] = {f"{PREFIX}enforce": "baseline"}
        with collecting() as warnings:
            await world.update(space)
        assert warnings[0] == "new PodSecurity enforce level only checked against the first 1 of 2 existing pods"

    tell(story, admission=chain)


def test_labels_that_mean_nothing_are_refused_unless_they_were_there() -> None:
    async def story(world: World) -> None:
        code, reason, message = await no(world.create(labelled(enforce="strict", warn_version="1.30")))
        assert (code, reason) == (422, "Invalid")
        assert '[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged' in message
        assert 'warn-version]: Invalid value: "1.30": must be "latest" or "v1.x"' in message
        assert await world.names(NAMESPACE, "") == []

    tell(story, admission=chain)


def test_the_audit_log_hears_of_what_is_audited() -> None:
    async def story(world: World) -> None:
        await world.create(labelled(audit="restricted", audit_version="v1.7"))
        said: dict[str, str] = {}
        collect_annotations(said)
        with collecting() as warnings:
            await world.create(pod("p"))
        assert warnings == []
        assert said[f"{PREFIX}enforce-policy"] == "privileged:latest"
        assert said[f"{PREFIX}audit-violations"].startswith('would violate PodSecurity "restricted:v1.7": runAsNonRoot')

    tell(story, admission=chain)


def test_annotations_of_old_releases_are_checked_as_of_their_versions() -> None:
    of_pod, of_container = (
        "seccomp.security.alpha.kubernetes.io/pod",
        "container.seccomp.security.alpha.kubernetes.io/c",
    )
    metadata = {"annotations": {of_pod: "unconfined", of_container: "x"}}
    spec = {"containers": [{"name": "c"}]}
    (found,) = findings("baseline", 18, metadata, spec)
    assert str(found) == f'seccompProfile (forbidden annotations {of_container}="x", {of_pod}="unconfined")'
    assert findings("baseline", 19, metadata, spec) == []
    apparmor = "container.apparmor.security.beta.kubernetes.io/c"
    (found,) = findings("baseline", 30, {"annotations": {apparmor: "unconfined"}}, spec)
    said = f'annotation must not set AppArmor profile type to "{apparmor}="unconfined""'
    assert str(found) == f"forbidden AppArmor profile ({said})"


def test_other_requests_get_their_turns_while_the_pods_of_a_namespace_are_checked() -> None:
    async def story(world: World) -> None:
        made = await world.create(namespace("default"))
        for number in range(100):
            await world.create(pod(f"p{number}"))
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        stricter = {**made, "metadata": {**made["metadata"], "labels": labels}}
        others = asyncio.create_task(take_turns())
        await PodSecurity(world.cache).check("update", Target(NAMESPACE, "", "default"), stricter, made, ANN)
        others.cancel()
        assert turns >= 4

    tell(story)
