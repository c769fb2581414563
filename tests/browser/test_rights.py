"""Who sees what, in a browser; and text that would like to be a script."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

from browser.conftest import Open, UpCluster, visit
from browser.test_views import pod

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


def test_a_viewer_of_one_namespace_sees_it_and_is_told_why_not_more(page: Open, cluster: UpCluster) -> None:
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "viewer", "namespace": "shop"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    }
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, binding)
    cluster.apply(pod("mine", "9", metadata={"namespace": "shop"}), pod("secret", "9"))
    one = page("--as", "alice", "-n", "shop")
    one.get_by_text("The map needs all nodes and pods").wait_for()
    one.get_by_text('User "alice" cannot list resource "nodes"').first.wait_for()
    one.get_by_role("link", name="Waiting").first.click()
    one.get_by_role("link", name="shop/mine").wait_for()
    assert "secret" not in (one.text_content("body") or "")
    one.get_by_role("link", name="Why").click()
    one.get_by_text("you do not see all nodes and pods").wait_for()
    visit(one, one.url.replace("/shop/mine", "/default/secret"))
    one.get_by_text("forbidden").first.wait_for()
    cluster.delete("namespace", "shop")
    cluster.delete("pod", "secret")


def test_a_link_works_once_and_without_one_there_is_a_login_page(page: Open, cluster: UpCluster) -> None:
    stranger = page(login=False)
    stranger.get_by_text("Open the link that").wait_for()
    assert stranger.locator("#bar").is_hidden()
    link = cluster.link()
    visit(stranger, link)
    stranger.wait_for_selector("#totals .figure")
    assert "#" not in stranger.url
    other = page(login=False)
    visit(other, link)
    other.get_by_text("this link was used already").wait_for()
    stranger.get_by_role("button", name="Log out").click()
    stranger.get_by_text("You are logged out.").wait_for()
    visit(stranger, stranger.url.partition("/map")[0] + "/waiting")
    stranger.get_by_text("Open the link that").wait_for()


def test_text_from_the_cluster_stays_text(page: Open, cluster: UpCluster) -> None:
    hostile = pod("hostile", "1", schedulerName="nobody", metadata={"annotations": {"note": HOSTILE}})
    cluster.apply(hostile)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": HOSTILE}
    path = "/api/v1/namespaces/default/pods/hostile/status"
    patch(cluster, path, {"status": {"conditions": [condition]}})
    one = page()
    origin = one.url.partition("/map")[0]
    for view in (
        "/waiting",
        "/gangs",
        "/placements",
        "/why/default/hostile",
        f"/why/default/{HOSTILE.replace('/', '%2F')}",
    ):
        visit(one, origin + view)
        one.wait_for_selector("main h1")
        if view == "/waiting":
            one.get_by_text(HOSTILE).first.wait_for()
        assert one.evaluate("window.hacked") is None
        assert one.locator("main img, main script").count() == 0
    visit(one, f"{origin}/map?q={HOSTILE}&node={HOSTILE}&by={HOSTILE}")
    one.wait_for_selector("aside .problem")
    assert one.evaluate("window.hacked") is None
    cluster.delete("pod", "hostile")


def patch(cluster: UpCluster, path: str, body: object) -> None:
    """As the administrator."""
    from situate.kube.client import Client
    from situate.kube.kubeconfig import find_access

    async def work() -> None:
        async with Client(find_access(str(cluster.directory / "kubeconfig"), None, None)) as client:
            data = json.dumps(body).encode()
            await client.request("PATCH", path, body=data, content_type="application/strategic-merge-patch+json")

    with ThreadPoolExecutor(1) as apart:  # Playwright has a loop in this thread
        apart.submit(lambda: asyncio.run(work())).result()
