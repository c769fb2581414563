"""Takes the pictures of the page that the docs show, on a cluster of its own: `make pictures`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from browser import chromium

ROOT = Path(__file__).resolve().parents[2]
INTO = ROOT / "docs" / "pictures"
PLACED_S = 60.0
SHOTS = (
    ("map", "/map", "light", 1280, 760),
    ("map-dark", "/map?node=node-02", "dark", 1280, 760),
    ("page-why", "/why/default/{pod}", "light", 1180, 700),
    ("map-phone", "/map", "light", 390, 760),
)


def deployment(name: str, replicas: int, cpu: str, memory: str, **spec: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    template = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}], **spec}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    }


WORKLOADS = (
    deployment("batch", 6, "4", "2Gi"),
    deployment("cache", 9, "1", "13Gi"),
    deployment("web", 34, "700m", "1Gi"),
    deployment("search", 3, "2", "12Gi", nodeSelector={"disk": "ssd"}),
    deployment("reports", 2, "6", "4Gi"),
)


def situate(*words: str, stdin: str = "") -> str:
    argv = [sys.executable, "-m", "situate", *words]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True).stdout


def main() -> int:
    from playwright.sync_api import sync_playwright

    INTO.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        directory = Path(folder) / "c"
        kubeconfig = str(directory / "kubeconfig")
        situate("up", "--dir", str(directory), "--port", "0", "--nodes", "36", "--zones", "3")
        browser: Any = playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        try:
            situate("apply", "--kubeconfig", kubeconfig, "-f", "-", stdin=yaml.safe_dump_all(WORKLOADS))
            pod = waiting_pod(kubeconfig)
            for name, path, theme, width, height in SHOTS:
                context = browser.new_context(
                    ignore_https_errors=True, color_scheme=theme, viewport={"width": width, "height": height}
                )
                page = context.new_page()
                link = situate("web", "--login", "--cluster", str(directory)).strip()
                page.goto(link)
                page.wait_for_selector("#totals .figure")
                page.goto(link.partition("/login")[0] + path.format(pod=pod))
                page.wait_for_selector("main > *")
                page.wait_for_timeout(2_000)
                page.screenshot(path=str(INTO / f"{name}.png"))
                context.close()
        finally:
            browser.close()
            situate("down", "--dir", str(directory), "--delete")
    return 0


def waiting_pod(kubeconfig: str) -> str:
    """A pod of `reports`, when all pods are there and the scheduler has tried them."""
    deadline, before = time.monotonic() + PLACED_S, [""]
    while time.monotonic() < deadline:
        rows = [line.split() for line in situate("get", "pods", "--kubeconfig", kubeconfig).splitlines()[1:]]
        pending = sorted(row[0] for row in rows if row[2] == "Pending")
        if len(rows) == sum(one["spec"]["replicas"] for one in WORKLOADS) and pending == before:
            return next(name for name in pending if name.startswith("reports"))
        before = pending
        time.sleep(1.0)
    raise TimeoutError("the pods are not placed")


if __name__ == "__main__":
    sys.exit(main())
