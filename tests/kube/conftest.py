"""What holds for every test of kube/."""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "loop" / "data"


@pytest.fixture(autouse=True)
def _few_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading those of the system takes a tenth of a second each time."""
    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "other-ca.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(DATA))
