"""How others reach the server of a directory, and what a duration is."""

import socket
from datetime import timedelta
from pathlib import Path

import click
import pytest

from situate.cli.cluster import directory
from situate.cli.cluster.directory import Duration, server_address


@pytest.mark.parametrize(
    "listens, expected",
    [
        ("https://127.0.0.1:7443", "https://127.0.0.1:7443"),
        ("https://10.0.0.1:7443", "https://10.0.0.1:7443"),
        ("https://0.0.0.0:7443", f"https://{socket.gethostname()}:7443"),
        ("https://[::]:7443", f"https://{socket.gethostname()}:7443"),
    ],
)
def test_a_server_on_every_address_has_the_name_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listens: str, expected: str
) -> None:
    monkeypatch.setattr(directory, "read_state", lambda _: {"url": listens})
    assert server_address(tmp_path) == expected


@pytest.mark.parametrize(
    "text, expected", [("30m", timedelta(minutes=30)), ("12h", timedelta(hours=12)), ("7d", timedelta(7))]
)
def test_a_duration(text: str, expected: timedelta) -> None:
    assert Duration(timedelta(days=365)).convert(text, None, None) == expected


@pytest.mark.parametrize("text", ["", "0h", "1", "1w", "-1h", "1.5h", "9999999999d", "366d", "1h "])
def test_not_a_duration(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration(timedelta(days=365)).convert(text, None, None)
