"""Every view of the page, in a browser, on a cluster that changes."""

from __future__ import annotations

import json
import re
from typing import Any

from browser.conftest import Open, Page, UpCluster, visit

VIEWS = ("/map", "/waiting", "/placements", "/preemptions", "/gangs", "/probe")


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    metadata = {"name": name, **spec.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def show(page: Page, name: str) -> None:
    page.get_by_role("link", name=re.compile(f"^{name}")).first.click()


PAINTED = """() => {
  const canvas = document.querySelector("canvas");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3]) colours.add(data.slice(at, at + 3).join());
  return colours.size;
}"""


def test_the_map_shows_every_node_and_follows_the_cluster(page: Open, cluster: UpCluster) -> None:
    one = page(bypass_csp=True)  # waiting for a function evaluates it
    one.wait_for_function(f"({PAINTED})() > 3")
    assert "12 nodes in 3 zones" in (one.locator("canvas").get_attribute("aria-label") or "")
    cluster.apply(pod("filler", "3800m"))
    one.get_by_role("button", name="Table").click()
    one.get_by_text("95 %").first.wait_for()
    assert one.locator(".listing tbody tr").count() == 12
    one.get_by_role("searchbox").fill("node-0")
    one.wait_for_function("document.querySelectorAll('.listing tbody tr').length === 9")
    cluster.delete("pod", "filler")
    one.get_by_text("95 %").first.wait_for(state="detached")


def test_the_map_works_with_the_keyboard(page: Open, cluster: UpCluster) -> None:
    one = page(bypass_csp=True)  # waiting for a function evaluates it
    one.wait_for_function(f"({PAINTED})() > 3")
    one.locator("canvas").focus()
    one.keyboard.press("ArrowRight")
    panel = one.get_by_role("complementary")
    panel.get_by_role("heading", name="node-01").wait_for()
    assert "node=node-01" in one.url
    one.keyboard.press("ArrowRight")
    panel.get_by_role("heading", name="node-04").wait_for()
    one.wait_for_function("document.getElementById('said').textContent.startsWith('node-04: cpu')")
    one.keyboard.press("+")
    one.keyboard.press("0")
    one.keyboard.press("/")
    assert one.evaluate("document.activeElement.id") == "search"
    one.keyboard.type("node-11")
    one.keyboard.press("Enter")
    panel.get_by_role("heading", name="node-11").wait_for()


def test_a_click_selects_a_node_and_what_draining_it_would_do_is_one_more(page: Open, cluster: UpCluster) -> None:
    one = page(bypass_csp=True)  # waiting for a function evaluates it
    one.wait_for_function(f"({PAINTED})() > 3")
    one.locator("canvas").click(position={"x": 40, "y": 70})
    panel = one.get_by_role("complementary")
    panel.get_by_role("heading", name="node-01").wait_for()
    panel.get_by_role("link", name="What would draining it do?").click()
    one.get_by_text("It would work.", exact=True).wait_for()


def test_what_waits_appears_by_itself_with_what_would_help(page: Open, cluster: UpCluster) -> None:
    one = page()
    show(one, "Waiting")
    cluster.apply(pod("too-big", "7"))
    row = one.locator("article", has_text="default/too-big")
    row.get_by_text("12 Insufficient cpu").wait_for()
    row.get_by_role("button", name="What would help").click()
    row.get_by_text("less cpu").wait_for()
    row.get_by_role("link", name="Why").click()
    one.get_by_role("heading", name="What rules out nodes").wait_for()
    assert one.url.endswith("/why/default/too-big")
    one.locator(".ways a").first.click()
    one.get_by_role("heading", name="refuses it").wait_for()
    assert "?node=node-" in one.url
    shared = one.url
    one.get_by_role("link", name="All nodes").click()
    one.go_back()
    assert one.url == shared
    one.get_by_role("heading", name="refuses it").wait_for()
    show(one, "Waiting")
    cluster.delete("pod", "too-big")
    row.wait_for(state="detached")


def test_placements_come_as_they_are_made_and_say_why_there(page: Open, cluster: UpCluster) -> None:
    one = page()
    show(one, "Placements")
    one.get_by_role("heading", name="Placements").wait_for()
    cluster.apply(pod("placed", "100m"))
    row = one.locator(".stream li", has_text="default/placed").filter(has_text="→")
    row.get_by_role("button", name="Why there").click()
    row.get_by_text(re.compile("nodes of 12 fitted")).wait_for()
    one.get_by_role("button", name="Evicted").click()
    row.wait_for(state="detached")
    cluster.delete("pod", "placed")


def test_a_gang_is_shown_until_it_is_whole(page: Open, cluster: UpCluster) -> None:
    labels = {"situate.dev/gang": "train", "situate.dev/gang-size": "2"}
    cluster.apply(pod("train-0", "1", metadata={"labels": labels}))
    one = page()
    show(one, "Gangs")
    row = one.locator("article", has_text="default/train")
    row.get_by_text("waits", exact=True).wait_for()
    row.get_by_text("needs 2 at once").wait_for()
    cluster.apply(pod("train-1", "1", metadata={"labels": labels}))
    row.get_by_text("whole").wait_for()
    for name in ("train-0", "train-1"):
        cluster.delete("pod", name)


def test_a_preemption_says_who_had_to_go_for_whom_and_why(page: Open, cluster: UpCluster) -> None:
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    only = {"nodeSelector": {"kubernetes.io/hostname": "node-05"}}
    cluster.apply(important, pod("low", "3", **only))
    one = page()
    show(one, "Placements")
    one.locator(".stream li", has_text="default/low").filter(has_text="→ node-05").wait_for()
    show(one, "Preemptions")
    cluster.apply(pod("high", "3", priorityClassName="urgent", **only))
    row = one.locator("article", has_text="default/high")
    row.get_by_text("took the room of 1 pod on node-05: its priority is 1000, theirs 0.").wait_for()
    row.get_by_text("Insufficient cpu").wait_for()
    row.get_by_text("placed", exact=True).wait_for()
    assert row.locator(".victims").inner_text() == "default/low priority 0"
    show(one, "Placements")
    evicted = one.locator(".stream li", has_text="default/low").filter(has_text="PreemptionByScheduler")
    evicted.get_by_role("link", name="for whom").click()
    row.get_by_role("link", name="default/low").wait_for()
    one.get_by_role("searchbox").fill("nobody")
    row.wait_for(state="detached")
    one.get_by_role("searchbox").fill("node-05")
    row.get_by_role("link", name="Why").click()
    one.get_by_role("heading", name="default/high").wait_for()
    cluster.delete("pod", "high")
    cluster.delete("priorityclass", "urgent")


PACK = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: BinPack, weight: 10}]}}}]
"""


def test_policies_are_simulated_side_by_side_with_their_report(page: Open, cluster: UpCluster) -> None:
    one = page()
    show(one, "What if")
    form = one.locator(".simulation")
    form.get_by_role("button", name="Simulate").click()
    form.get_by_text("no pod would come").wait_for()
    form.get_by_label("Workloads to come").fill(json.dumps(pod("guest", "1")))
    form.get_by_label("A policy of yours").fill(PACK)
    form.get_by_label("arrive").fill("every:10s")
    form.get_by_label("pods", exact=True).fill("6")
    form.get_by_label("run for").fill("10m")
    form.get_by_role("button", name="Simulate").click()
    form.get_by_role("columnheader", name="your policy").wait_for()
    used = form.get_by_role("row").filter(has=one.get_by_role("rowheader", name="used, most"))
    assert used.get_by_role("cell").all_inner_texts() == ["6", "2"]
    report = one.frame_locator("iframe")
    report.get_by_role("heading", name="6 pods on 12 nodes").wait_for()
    assert report.locator("main svg").count() > 10
    styled = "document.querySelector('main') && getComputedStyle(document.querySelector('main')).maxWidth"
    assert one.frames[-1].evaluate(styled) == "1240px"
    with one.context.expect_page() as opened:
        form.get_by_role("link", name="Open the report").click()
    opened.value.get_by_role("heading", name="Side by side").wait_for()


def test_what_if_counts_tries_and_refuses_nonsense(page: Open, cluster: UpCluster) -> None:
    one = page()
    show(one, "What if")
    one.get_by_role("textbox", name="cpu").fill("1")
    one.get_by_role("button", name="Count").first.click()
    one.locator(".answer", has_text=re.compile("more fit, on 12 nodes")).wait_for()
    one.get_by_role("button", name="Try every zone").click()
    one.locator(".answer", has_text="Every pod would find a node again").wait_for()
    one.get_by_text("Paste a manifest instead").click()
    one.get_by_label("A manifest with a pod or workload").fill("kind: Nonsense")
    one.get_by_role("button", name="Count").nth(1).click()
    one.locator(".answer .problem").first.wait_for()


def test_everything_has_a_name_and_landmarks_and_fits_a_phone(page: Open, cluster: UpCluster) -> None:
    unnamed = """() => [...document.querySelectorAll("button, a, input, select, textarea")]
      .filter((one) => !one.hidden)
      .filter((one) => !one.textContent.trim() && !one.getAttribute("aria-label") && !(one.labels || []).length)
      .map((one) => one.outerHTML)"""
    one = page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    origin = one.url.partition("/map")[0]
    for path in VIEWS:
        visit(one, origin + path)
        one.wait_for_selector("main > *")
        assert one.evaluate(unnamed) == []
        for role in ("main", "navigation", "banner"):
            assert one.get_by_role(role).count() == 1
        assert one.get_by_role("heading", level=1).count() == 1
        assert one.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path


def test_light_and_dark_can_be_chosen(page: Open, cluster: UpCluster) -> None:
    one = page(color_scheme="light")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = one.evaluate(ground)
    one.get_by_role("button", name="Switch between light and dark").click()
    assert one.evaluate(ground) != light
    one.reload()
    one.wait_for_selector("#totals .figure")
    assert one.evaluate(ground) != light
