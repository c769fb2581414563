import pytest

from situate.server.errors import StatusError
from situate.server.http.host_allowlist import HostAllowlist

HOSTS = HostAllowlist(["api.example.com", "10.0.0.1"])


@pytest.mark.parametrize(
    "header",
    ["localhost", "localhost:6443", "127.0.0.1:1", "[::1]:6443", "[::1]", "API.example.com", "api.example.com."],
)
def test_names_of_this_machine_and_of_the_certificate_are_allowed(header: str) -> None:
    HOSTS.check(header)


@pytest.mark.parametrize(
    "header", ["", "evil.example", "localhost.evil.example", "localhost:x", "127.0.0.1:80:80", "[::2]"]
)
def test_all_others_are_refused(header: str) -> None:
    with pytest.raises(StatusError) as refused:
        HOSTS.check(header)
    assert refused.value.code == 403


def test_a_star_allows_any_name() -> None:
    HostAllowlist(["*"]).check("whoever:443")
