"""The browser that the tests drive: the system's Chromium, through Playwright. Says what is missing, if anything is."""

from __future__ import annotations

import importlib.util
import shutil
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def path() -> str:
    """Empty if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), "")


def missing() -> str | None:
    """What keeps these tests from running, in one line."""
    if not path():
        return "no Chromium on the path; `make chromium` installs it from Debian's packages"
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed; `make chromium` installs it"
    return None
