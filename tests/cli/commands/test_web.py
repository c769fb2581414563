"""`situate up` serves the page, and starts its process at the first connection; `situate web` serves any cluster."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from situate.cli import main

WITHIN_S = 60
LINK = re.compile(r"(https://127\.0\.0\.1:\d+)/login#([\w-]+)")


def situate(*words: str) -> Result:
    return CliRunner(env={"KUBECONFIG": None}).invoke(main, words, prog_name="situate")


def log_in(link: str) -> dict[str, str]:
    """Use a link as the page does."""
    found = LINK.search(link)
    assert found is not None, link
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    headers = {"Origin": found[1], "Content-Type": "application/json"}
    body = json.dumps({"link": found[2]}).encode()
    request = urllib.request.Request(f"{found[1]}/api/login", body, headers)
    with urllib.request.urlopen(request, timeout=WITHIN_S, context=tls) as response:
        answer: dict[str, str] = json.loads(response.read())
    return answer


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A cluster's directory, and what `up` printed."""
    directory = tmp_path_factory.mktemp("web") / "c"
    argv = [sys.executable, "-m", "situate", "up", "--dir", str(directory), "--port", "0", "--nodes", "2"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    try:
        yield directory, done.stdout
    finally:
        situate("down", "--dir", str(directory), "--delete")


def test_up_prints_a_link_that_lets_the_administrator_in(up: tuple[Path, str]) -> None:
    assert log_in(up[1])["user"] == "situate-admin"


def test_another_link_may_be_for_somebody_else(up: tuple[Path, str]) -> None:
    said = situate("web", "--login", "--cluster", str(up[0]), "--as", "alice")
    assert said.exit_code == 0, said.output
    assert log_in(said.output)["user"] == "alice"


def test_web_serves_the_page_for_a_kubeconfig_until_it_is_stopped(up: tuple[Path, str]) -> None:
    argv = [sys.executable, "-m", "situate", "web", "--kubeconfig", str(up[0] / "kubeconfig"), "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            link = next(line for line in process.stdout if LINK.search(line))
            assert log_in(link)["user"] == "situate-admin"
            again = next(line for line in process.stdout if LINK.search(line))
            assert again != link  # the first is used up
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 0


def test_a_cluster_without_a_page_has_no_link(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    argv = [sys.executable, "-m", "situate", "up", "--dir", directory, "--port", "0", "--nodes", "0", "--no-web"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    try:
        assert LINK.search(done.stdout) is None
        said = situate("web", "--login", "--cluster", str(tmp_path / "c"))
        assert (said.exit_code, "does not serve the page" in said.output) == (1, True)
    finally:
        situate("down", "--dir", str(tmp_path / "c"), "--delete")


@pytest.mark.parametrize(
    "words, text",
    [
        (["--as-group", "readers"], "--as-group needs --as"),
        (["--login", "--cluster", "./nowhere"], "no cluster is up"),
    ],
)
def test_what_makes_no_sense_is_one_line(words: list[str], text: str) -> None:
    said = situate("web", *words)
    assert said.exit_code in (1, 2)
    assert text in said.output
