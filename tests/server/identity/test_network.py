import pytest

from situate.server.identity.network import check_listening, is_loopback
from situate.wire.errors import InputError


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "[::1]",
        "localhost",
        "LOCALHOST",
        "::ffff:127.0.0.1",
        "[::1%lo]",
        "ip6-localhost",
    ],
)
def test_loopback_needs_nothing(host: str) -> None:
    assert is_loopback(host)
    check_listening(host, tls=False)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "10.0.0.1", "example.com", "localhost.example.com", "::ffff:10.0.0.1", "127.0.0.1.nip.io"],
)
def test_off_loopback_tls_is_needed(host: str) -> None:
    assert not is_loopback(host)
    check_listening(host, tls=True)
    with pytest.raises(InputError, match="without TLS:"):
        check_listening(host, tls=False)


def test_a_refusal_says_where_it_will_not_listen() -> None:
    with pytest.raises(InputError, match=r"will not listen on 10\.0\.0\.1 without TLS"):
        check_listening("10.0.0.1", tls=False)
    with pytest.raises(InputError, match="will not listen on every address without TLS"):
        check_listening("", tls=False)
