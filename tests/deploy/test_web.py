"""The page as a Deployment: its flags, its probes, what its account may, and that this is enough."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.rights import KUSTOMIZE, Allowed, Json, allowed, objects_of
from situate.cli.commands.web import DEFAULT_PORT, web
from situate.cli.input.devices import also_devices
from situate.kube.kinds import ALL_KINDS
from web.serving import PageWorld, Visitor, first, page_world

WEB = KUSTOMIZE / "components" / "web"
RIGHTS = KUSTOMIZE / "components" / "web-rights" / "rights.yaml"
WEB_ACCOUNT = {"kind": "ServiceAccount", "name": "situate-web", "namespace": "situate-system"}
OWN = "situate.dev"
"""The group that only our own control plane has, where nobody deploys the page as a pod."""


def deployment(folder: Path = WEB) -> Json:
    [found] = objects_of(folder / "deployment.yaml")
    return found


def container() -> Json:
    [found] = deployment()["spec"]["template"]["spec"]["containers"]
    return dict(found)


def given() -> set[Allowed]:
    return allowed(objects_of(RIGHTS), WEB_ACCOUNT)


# ── the manifests ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_is_in_no_variant_that_does_not_name_it() -> None:
    for variant in ("base", "overlays/preemption", "overlays/instead"):
        named = yaml.safe_load((KUSTOMIZE / variant / "kustomization.yaml").read_text())
        assert not [one for key in ("resources", "components") for one in named.get(key, []) if "web" in one]


@pytest.mark.parametrize("args", [["--address=0.0.0.0", "--tokens-only"], ["--address=0.0.0.0"]])
def test_the_command_takes_the_flags_and_listens_where_the_probes_look(args: list[str]) -> None:
    context = web.make_context("web", list(args))
    assert (context.params["address"], context.params["port"]) == ("0.0.0.0", DEFAULT_PORT)
    [port] = container()["ports"]
    assert (port["name"], port["containerPort"]) == ("https", DEFAULT_PORT)
    assert container()["args"][1:] == ["--address=0.0.0.0", "--tokens-only"]
    assert "value: [web, --address=0.0.0.0]" in (RIGHTS.parent / "kustomization.yaml").read_text()


def test_its_pod_may_as_little_as_the_schedulers() -> None:
    [scheduler] = objects_of(KUSTOMIZE / "base" / "deployment.yaml")
    inside, others = (one["spec"]["template"]["spec"] for one in (deployment(), scheduler))
    assert inside["securityContext"] == others["securityContext"]
    assert container()["securityContext"] == others["containers"][0]["securityContext"]
    assert container()["image"] == others["containers"][0]["image"]


def test_services_and_budgets_of_the_scheduler_do_not_select_the_page() -> None:
    labels = deployment()["spec"]["template"]["metadata"]["labels"]
    [service] = objects_of(WEB / "service.yaml")
    assert service["spec"]["selector"].items() <= labels.items()
    for file in ("service.yaml", "budget.yaml"):
        [other] = objects_of(KUSTOMIZE / "base" / file)
        selector = other["spec"]["selector"]
        assert not selector.get("matchLabels", selector).items() <= labels.items()


# ── the rights ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_the_component_for_rights_the_account_has_none() -> None:
    named = yaml.safe_load((WEB / "kustomization.yaml").read_text())["resources"]
    assert allowed(objects_of(*(WEB / one for one in named)), WEB_ACCOUNT) == set()


def test_the_rights_are_those_of_a_reader_of_what_scheduling_reads() -> None:
    watched = {Allowed(verb, one.group, one.resource) for one in also_devices(ALL_KINDS) for verb in ("list", "watch")}
    more = {
        Allowed("get", "", "pods"),
        Allowed("list", "", "events"),
        Allowed("watch", "", "events"),
        Allowed("list", "scheduling.k8s.io", "priorityclasses"),
        Allowed("list", "metrics.k8s.io", "nodes"),
        Allowed("get", "", "configmaps", "kube-system", "situate-schedulers"),
    }
    assert given() == watched | more
    assert not [one for one in given() if "*" in "".join(one) or one.resource == "secrets"]


def test_with_these_rights_every_view_and_question_works(tmp_path: Path) -> None:
    async def work() -> None:
        async with page_world(tmp_path / "c") as world:
            await grant(world)
            async with world.person("page") as page:
                await every_view(world, page)

    asyncio.run(work())


async def grant(world: PageWorld) -> None:
    """Bind the roles of the manifests to a user, with what our own control plane has beside Kubernetes."""
    own = {
        "kind": "ClusterRole",
        "metadata": {"name": "own"},
        "rules": [
            {
                "apiGroups": [OWN],
                "resources": ["placementevents", "placementdecisions"],
                "verbs": ["get", "list", "watch"],
            }
        ],
    }
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "own"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "own"},
        "subjects": [WEB_ACCOUNT],
    }
    for item in (*objects_of(RIGHTS), own, binding):
        namespace = item["metadata"].get("namespace")
        within = f"/namespaces/{namespace}" if namespace else ""
        if "subjects" in item:
            item["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "page"}]
        path = f"/apis/rbac.authorization.k8s.io/v1{within}/{item['kind'].lower()}s"
        code, found = await world.api.send("POST", path, item)
        assert code == 201, found


async def every_view(world: PageWorld, page: Visitor) -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "big", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "9"}}}]},
    }
    code, found = await world.api.send("POST", "/api/v1/namespaces/default/pods", pod)
    assert code == 201, found
    summary = await first(page, "summary", "summary", lambda now: now["waiting"] == 1)
    assert (summary["whole"], summary["problems"]) == (True, [])
    for view in ("map", "waiting", "gangs"):
        assert await first(page, view, view)
    for view in ("placements", "preemptions"):
        assert (await first(page, view, view))["problem"] == ""
    code, why = await page.get("/api/why/default/big")
    assert (code, why["standing"]) == (200, "unschedulable")
    assert not [note for note in why["notes"] if "cannot" in note], why["notes"]
    manifest = json.dumps(pod)
    for path, body in (
        ("/api/room", {"manifest": manifest}),
        ("/api/drain", {"nodes": ["node-1"]}),
        ("/api/survive", {}),
        ("/api/simulate", {"cluster": True}),
    ):
        code, found = await page.post(path, body)
        assert code == 200, found
        assert not [note for note in found["notes"] if "cannot" in note or "forbidden" in note], found["notes"]
