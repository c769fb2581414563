"""A cluster that is up with its page, and a browser. Where there is no browser, one test says so for all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from browser import chromium

Browser: TypeAlias = Any
Page: TypeAlias = Any
"""Playwright's; it is not installed everywhere, so the tests cannot name its types."""
UP_S = 120
PATIENCE_MS = 30_000.0
VISITS = 5
EXPECTED = ("Failed to load resource", "ERR_NETWORK_CHANGED")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    absent = chromium.missing()
    idle = [item for item in items if "page" in getattr(item, "fixturenames", ())] if absent else []
    for item in idle[:1]:
        item.add_marker(pytest.mark.skip(f"{len(idle)} tests: {absent}"))
    if idle[1:]:
        config.hook.pytest_deselected(items=idle[1:])
        items[:] = [item for item in items if item not in idle[1:]]


class UpCluster:
    """A cluster of `situate up`, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *words: str, stdin: str = "") -> str:
        argv = [sys.executable, "-m", "situate", *words]
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=UP_S, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        self.run(
            "apply", "--kubeconfig", str(self.directory / "kubeconfig"), "-f", "-", stdin=yaml.safe_dump_all(objects)
        )

    def delete(self, kind: str, name: str) -> None:
        self.run("delete", "--kubeconfig", str(self.directory / "kubeconfig"), kind, name)

    def link(self, *words: str) -> str:
        return self.run("web", "--login", "--cluster", str(self.directory), *words).strip()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpCluster]:
    made = UpCluster(tmp_path_factory.mktemp("browser") / "c")
    made.run("up", "--dir", str(made.directory), "--port", "0", "--nodes", "12", "--zones", "3")
    try:
        yield made
    finally:
        made.run("down", "--dir", str(made.directory), "--delete")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        yield made
        made.close()


Open: TypeAlias = Callable[..., Page]


@pytest.fixture
def page(browser: Browser, cluster: UpCluster) -> Iterator[Open]:
    """Opens pages of people who are logged in. A console error, or a request to anybody else, fails the test."""
    contexts: list[Any] = []
    faults: list[str] = []

    def opened(*words: str, login: bool = True, **settings: Any) -> Page:
        context = browser.new_context(
            ignore_https_errors=True, **{"viewport": {"width": 1280, "height": 800}, **settings}
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        made = context.new_page()
        link = cluster.link(*words)
        origin = link.partition("/login")[0]
        # A browser logs every response above 399; what the page does with it is tested by what it shows.
        made.on("console", lambda message: _console(message, faults))
        made.on("pageerror", lambda error: faults.append(f"error: {error}"))
        made.on("request", lambda request: None if request.url.startswith(origin) else faults.append(request.url))
        visit(made, link if login else f"{origin}/map")
        if login:
            made.wait_for_selector("#totals .figure")
        return made

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def visit(page: Page, url: str) -> None:
    """Go there. Chromium gives up what it loads when the machine gets or loses a network interface, as other tests make
    them; then once more."""
    from playwright.sync_api import Error

    for attempt in range(VISITS):
        try:
            page.goto(url)
            return
        except Error as error:
            if "ERR_NETWORK_CHANGED" not in str(error) or attempt == VISITS - 1:
                raise


def _console(message: Any, faults: list[str]) -> None:
    if message.type in ("error", "warning") and not any(one in message.text for one in EXPECTED):
        faults.append(f"{message.type}: {message.text}")
