"""The page on a large cluster that changes: how soon it is painted, how late its updates are, what its server takes.

5,000 hollow nodes and 20,000 pods, in zones; then pods come and go, ten a second. Prints one line for each figure, and
exits with 1 if one is over its limit. Needs Chromium: `make bench-page`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from browser import chromium
from situate.kube.client import Client
from situate.kube.kubeconfig import find_access

PAINT_S = 1.5
UPDATE_S = 0.2
SHARE = 0.2
ROUNDS = 30
CHURN_S = 15.0
PODS = "/api/v1/namespaces/default/pods"
AT_ONCE = 24
SHOWN = "document.querySelector('canvas') && document.querySelector('#totals .figure')"
COUNTED = "!document.getElementById('totals').textContent.includes('still counting')"
LABEL = "document.querySelector('canvas').getAttribute('aria-label')"
WATCH = """() => {
  window.seen = [];
  const total = document.getElementById("totals");
  new MutationObserver(() => window.seen.push([Date.now(), total.textContent])).observe(total, { childList: true, subtree: true });
}"""  # noqa: E501


def pod(name: str, node: str = "", cpu: str = "100m") -> bytes:
    requests = {"cpu": cpu, "memory": "128Mi"}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if node:
        spec["nodeName"] = node
    return msgspec.json.encode({"metadata": {"name": name}, "spec": spec})


async def fill(client: Client, nodes: int, pods: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)
    width = len(str(nodes))

    async def one(number: int) -> None:
        async with gate:
            # Some nodes are fuller than others, so that the map has something to show.
            node = f"node-{(number * 7919) % nodes * (number % 3 + 1) // 3 + 1:0{width}}"
            await client.request("POST", PODS, body=pod(f"load-{number}", node, f"{100 * (1 + number % 9)}m"))

    await asyncio.gather(*(one(number) for number in range(pods)))


def cpu_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100


def page_process(server: int) -> int:
    """The child of the control plane that serves the page."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return next(int(one) for one in children if b"web" in Path(f"/proc/{one}/cmdline").read_bytes())


async def measure(directory: Path, nodes: int, pods: int, picture: str) -> bool:
    from playwright.async_api import async_playwright

    access = find_access(str(directory / "kubeconfig"), None, None)
    async with Client(access, qps=-1) as client, async_playwright() as playwright:
        while len(msgspec.json.decode(await client.request("GET", "/api/v1/nodes"))["items"]) < nodes:
            await asyncio.sleep(2)
        began = time.monotonic()
        await fill(client, nodes, pods)
        print(f"{pods} pods on {nodes} nodes after {time.monotonic() - began:.0f} s")
        browser = await playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        context = await browser.new_context(
            ignore_https_errors=True, bypass_csp=True, viewport={"width": 1280, "height": 800}
        )
        page = await context.new_page()
        link = situate("web", "--login", "--cluster", str(directory)).strip()
        began = time.monotonic()
        await page.goto(link)
        await page.wait_for_function(f"({SHOWN}) && ({LABEL} || '').includes(' zones;')", timeout=60_000)
        first = time.monotonic() - began
        await page.wait_for_function(COUNTED, timeout=60_000)
        counted = time.monotonic() - began
        paints = []
        for _ in range(5):
            began = time.monotonic()
            await page.goto(link.partition("/login")[0] + "/map")
            await page.wait_for_function(f"({SHOWN}) && ({LABEL} || '').includes(' zones;')")
            paints.append(time.monotonic() - began)
        await page.evaluate(WATCH)
        delays = [await update(client, page, number) for number in range(ROUNDS)]
        state = json.loads((directory / "server.json").read_text())
        pid = page_process(state["pid"])
        before, began = cpu_seconds(pid), time.monotonic()
        number = 0
        while time.monotonic() - began < CHURN_S:
            await client.request("POST", PODS, body=pod(f"churn-{int(time.time() * 1_000)}", f"node-{number + 1:04}"))
            number += 1
            await asyncio.sleep(max(0.0, number / 10 - (time.monotonic() - began)))
        share = (cpu_seconds(pid) - before) / (time.monotonic() - began)
        if picture:
            await page.screenshot(path=picture)
        await browser.close()
    figures = (
        ("first paint, nothing runs yet", first, PAINT_S, "s"),
        ("every pod counted", counted, float("inf"), "s"),
        ("paint of a reload, median of 5", statistics.median(paints), PAINT_S, "s"),
        (f"update, median of {ROUNDS}", statistics.median(delays), UPDATE_S, "s"),
        (f"update, the slowest of {ROUNDS}", max(delays), float("inf"), "s"),
        ("server's share, ten pods a second", share, SHARE, "cores"),
    )
    for name, value, limit, unit in figures:
        print(f"{name:34} {value:8.2f} {unit}{'' if value <= limit else f'  over the limit of {limit}'}")
    return all(value <= limit for _, value, limit, _ in figures)


async def update(client: Client, page: Any, number: int) -> float:
    """From the API server's response until the page shows one pod more."""
    shown = await page.evaluate("window.seen.length")
    await client.request("POST", PODS, body=pod(f"more-{int(time.time() * 1_000)}", "node-0001", "1m"))
    sent = time.time()
    await page.wait_for_function(f"() => window.seen.length > {shown}")
    at = await page.evaluate(f"window.seen[{shown}][0]")
    await asyncio.sleep(0.3)
    return max(0.0, float(at) / 1_000 - sent)


def situate(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "situate", *words], capture_output=True, text=True, check=True)
    return done.stdout


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=5_000)
    options.add_argument("--pods", type=int, default=20_000)
    options.add_argument("--picture", default="", help="Where to write a screenshot.")
    given = options.parse_args()
    if absent := chromium.missing():
        print(absent, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "c"
        words = ("--port", "0", "--nodes", str(given.nodes), "--zones", "5", "--node-cpu", "16", "--store", "memory")
        situate("up", "--dir", str(directory), *words)
        try:
            return 0 if asyncio.run(measure(directory, given.nodes, given.pods, given.picture)) else 1
        finally:
            situate("down", "--dir", str(directory), "--delete")


if __name__ == "__main__":
    sys.exit(main())
