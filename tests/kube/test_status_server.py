"""The scheduler's own port: what it says, to whom, and over which certificate."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from situate.kube.delegated import DelegatedAuthentication, DelegatedAuthorization, ExpiringCache, RequestUser
from situate.kube.errors import ApiError
from situate.kube.serving_certificate import pair_in, self_signed
from situate.kube.status_server import ListenSettings, StatusServer, by_certificate, openssl_name
from situate.loop.health import PING, Check
from situate.wire.errors import InputError

USERS = {"good": ("jane", ["devs"]), "root": ("root", ["system:masters"])}
MAY = {("jane", "/metrics")}


class Reviews:
    """Answers reviews as an API server does, and counts them."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.broken = False

    async def request(self, method: str, path: str, *, body: bytes = b"", **_: Any) -> bytes:
        if self.broken:
            raise ApiError(0, "Unreachable", "nobody is there")
        review: dict[str, Any] = msgspec.json.decode(body)
        self.asked.append(review)
        status: dict[str, Any]
        if review["kind"] == "TokenReview":
            name, groups = USERS.get(review["spec"]["token"], ("", []))
            status = {"authenticated": bool(name), "user": {"username": name, "groups": groups}}
        else:
            spec = review["spec"]
            status = {"allowed": (spec["user"], spec["nonResourceAttributes"]["path"]) in MAY}
        return msgspec.json.encode({"status": status})


class World:
    def __init__(self, **where: Any) -> None:
        self.reviews = Reviews()
        self.now = 0.0
        self.problem = ""
        checks = {
            "healthz": [PING, Check("leaderElection", lambda: self.problem)],
            "livez": [],
            "readyz": [PING, Check("shutdown", lambda: self.problem)],
        }
        client: Any = self.reviews
        self.serving = StatusServer(
            ListenSettings(address="127.0.0.1", port=0, **where),
            DelegatedAuthentication(client, clock=lambda: self.now),
            DelegatedAuthorization(client, clock=lambda: self.now),
            checks,
            {"/metrics": lambda: ("text/plain; version=0.0.4", b"up 1\n")},
        )
        self.session: aiohttp.ClientSession | None = None
        self.tls: ssl.SSLContext | bool = False

    async def get(self, path: str, token: str = "", method: str = "GET") -> tuple[int, str]:
        assert self.session is not None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"https://127.0.0.1:{self.serving.port}{path}"
        async with self.session.request(method, url, headers=headers, ssl=self.tls) as answer:
            return answer.status, await answer.text()


def play(scenario: Callable[[World], Awaitable[None]], **where: Any) -> None:
    async def run() -> None:
        world = World(**where)
        async with asyncio.timeout(10), world.serving, aiohttp.ClientSession() as world.session:
            await scenario(world)

    asyncio.run(run())


def test_health_is_ok_and_more_only_if_asked_for() -> None:
    async def scenario(world: World) -> None:
        assert await world.get("/healthz") == (200, "ok")
        assert await world.get("/livez") == (200, "ok")
        assert await world.get("/livez?verbose") == (200, "[+]ping ok\nlivez check passed\n")
        assert await world.get("/healthz?verbose") == (200, "[+]ping ok\n[+]leaderElection ok\nhealthz check passed\n")

    play(scenario)


def test_a_check_that_fails_is_named_and_its_reason_is_withheld() -> None:
    async def scenario(world: World) -> None:
        world.problem = "secret circumstances"
        text = "[+]ping ok\n[-]leaderElection failed: reason withheld\nhealthz check failed\n"
        assert await world.get("/healthz") == (500, text)
        assert await world.get("/livez") == (200, "ok")
        assert await world.get("/healthz?exclude=leaderElection&verbose") == (
            200,
            "[+]ping ok\n[+]leaderElection excluded: ok\nhealthz check passed\n",
        )

    play(scenario)


def test_a_check_that_there_is_not_cannot_be_excluded() -> None:
    async def scenario(world: World) -> None:
        status, text = await world.get("/livez?exclude=b&exclude=a&verbose")
        assert status == 200
        assert 'warn: some health checks cannot be excluded: no matches for "a","b"\n' in text

    play(scenario)


def test_a_single_check_has_its_own_path_for_those_who_may() -> None:
    async def scenario(world: World) -> None:
        assert (await world.get("/readyz/shutdown"))[0] == 403
        assert await world.get("/readyz/shutdown", "root") == (200, "ok")
        world.problem = "process is shutting down"
        assert await world.get("/readyz/shutdown", "root") == (
            500,
            "internal server error: process is shutting down\n",
        )

    play(scenario)


@pytest.mark.parametrize(
    "path, token, status",
    [
        pytest.param("/metrics", "good", 200, id="whoever may read it reads it"),
        pytest.param("/metrics", "root", 200, id="the masters may everything"),
        pytest.param("/metrics", "", 403, id="nobody in particular may not"),
        pytest.param("/metrics", "forged", 401, id="a token that is not known is refused"),
        pytest.param("/healthz", "forged", 401, id="also where no token is needed"),
        pytest.param("/configz", "good", 403, id="one path is not another"),
        pytest.param("/nothing", "root", 404, id="what there is not is not found"),
    ],
)
def test_who_may_read_what(path: str, token: str, status: int) -> None:
    async def scenario(world: World) -> None:
        got, text = await world.get(path, token)
        assert got == status
        assert got == 200 or f'"code":{status}' in text

    play(scenario)


def test_nothing_can_be_written() -> None:
    async def scenario(world: World) -> None:
        assert (await world.get("/metrics", "root", "POST"))[0] == 405

    play(scenario)


def test_answers_of_reviews_are_kept_for_ten_seconds() -> None:
    async def scenario(world: World) -> None:
        for _ in range(3):
            await world.get("/metrics", "good")
        assert [one["kind"] for one in world.reviews.asked] == ["TokenReview", "SubjectAccessReview"]
        world.now += 10
        await world.get("/metrics", "good")
        assert len(world.reviews.asked) == 4

    play(scenario)


def test_an_api_server_that_cannot_be_asked_is_a_refusal_but_not_for_health() -> None:
    async def scenario(world: World) -> None:
        world.reviews.broken = True
        status, text = await world.get("/metrics", "good")
        assert status == 500
        assert "nobody is there" not in text
        assert await world.get("/livez") == (200, "ok")

    play(scenario)


def test_only_so_many_answers_are_kept() -> None:
    kept: ExpiringCache[int] = ExpiringCache(limit=2, clock=lambda: 0.0)
    for at in range(3):
        kept.put(at, at, 10)
    assert [kept.get(at) for at in range(3)] == [None, 1, 2]


# -- TLS ---------------------------------------------------------------------------------------------------------------


def test_without_a_certificate_one_is_made_that_a_client_can_check(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        tls = ssl.create_default_context(cafile=str(tmp_path / "kube-scheduler.crt"))
        world.tls = tls
        assert await world.get("/livez") == (200, "ok")

    play(scenario, cert_dir=str(tmp_path))
    assert (tmp_path / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600


def test_the_certificate_of_a_folder_is_used_again(tmp_path: Path) -> None:
    first = pair_in(tmp_path)[0].read_bytes()
    assert pair_in(tmp_path)[0].read_bytes() == first


def test_no_two_certificates_that_are_made_are_the_same() -> None:
    assert self_signed() != self_signed()


def test_a_certificate_that_is_replaced_is_used_from_then_on(tmp_path: Path) -> None:
    cert, key = pair_in(tmp_path)

    async def scenario(world: World) -> None:
        new_cert, new_key = self_signed()
        cert.write_bytes(new_cert)
        key.write_bytes(new_key)
        world.serving.reload_certificate()
        world.tls = ssl.create_default_context(cadata=new_cert.decode())
        assert await world.get("/livez") == (200, "ok")

    play(scenario, cert_file=str(cert), key_file=str(key))


def test_a_client_certificate_says_who_somebody_is() -> None:
    class Shown:
        def __init__(self, certificate: object) -> None:
            self.certificate = certificate

        def get_extra_info(self, name: str) -> object:
            return self.certificate if name == "peercert" else None

    subject = ((("organizationName", "devs"),), (("organizationName", "ops"),), (("commonName", "jane"),))
    assert by_certificate(Shown({"subject": subject})) == RequestUser("jane", ("devs", "ops", "system:authenticated"))
    assert by_certificate(Shown({"subject": subject[:2]})) is None
    assert by_certificate(Shown(None)) is None


def test_a_client_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    authority, cert, key = (tmp_path / name for name in ("ca.crt", "me.crt", "me.key"))
    authority.write_bytes(self_signed()[0])
    for path, data in zip((cert, key), self_signed("jane"), strict=True):
        path.write_bytes(data)

    async def scenario(world: World) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        world.tls = tls
        assert (await world.get("/livez"))[0] == 200
        world.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        world.tls.check_hostname, world.tls.verify_mode = False, ssl.CERT_NONE
        world.tls.load_cert_chain(cert, key)
        with pytest.raises(aiohttp.ClientError):
            await world.get("/livez")

    play(scenario, client_ca_file=str(authority))


@pytest.mark.parametrize(
    "where, problem",
    [
        ({"cert_file": "here.crt"}, "--tls-cert-file and --tls-private-key-file must be given together"),
        ({"cert_file": "absent.crt", "key_file": "absent.key"}, "absent.crt: No such file or directory"),
        ({"ciphers": ("TLS_NONE",)}, "the serving certificate or its settings cannot be used"),
        ({"client_ca_file": "absent.ca"}, "absent.ca: No such file or directory"),
    ],
)
def test_what_cannot_be_served_with_is_one_clear_line(where: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        World(**where)


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            client: Any = Reviews()
            where = ListenSettings(address="127.0.0.1", port=taken.getsockname()[1])
            serving = StatusServer(where, DelegatedAuthentication(client), DelegatedAuthorization(client), {}, {})
            with pytest.raises(InputError, match=r"127\.0\.0\.1:\d+ is already in use.*--secure-port"):
                await serving.__aenter__()

    asyncio.run(run())


@pytest.mark.parametrize(
    "suite, name",
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"),
    ],
)
def test_cipher_suites_go_by_their_iana_names(suite: str, name: str) -> None:
    assert openssl_name(suite) == name
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(openssl_name(suite))
