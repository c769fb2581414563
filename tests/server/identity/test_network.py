import pytest

from situate.server.identity.network import check_listening, is_loopback
from situate.server.identity.secret_files import IdentityError


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST", "::ffff:127.0.0.1"]
)
def test_loopback_needs_nothing(host: str) -> None:
    assert is_loopback(host)
    check_listening(host, tls=False, identity=False)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "10.0.0.1", "example.com", "localhost.example.com", "::ffff:10.0.0.1", "127.0.0.1.nip.io"],
)
def test_off_loopback_everything_is_needed(host: str) -> None:
    assert not is_loopback(host)
    check_listening(host, tls=True, identity=True)
    for tls, identity, missing in ((False, True, "TLS"), (True, False, "identity"), (False, False, "TLS and identity")):
        with pytest.raises(IdentityError, match=f"without {missing}:"):
            check_listening(host, tls=tls, identity=identity)
