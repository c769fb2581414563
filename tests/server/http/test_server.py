import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from server.http.test_filters import REVIEW, REVIEWS, Slow
from server.http.world import PODS, Door, pod, told, world
from situate.server.http.server import serve
from situate.server.http.settings import Limits, ServerSettings
from situate.server.identity.pki.authority import Authority, open_authority
from situate.server.registry.registry import Registry
from situate.server.tables import printers
from situate.store.memory import MemoryStore
from situate.wire.errors import InputError


def registry() -> Registry:
    return Registry(MemoryStore(), wall_ns=lambda: 0, new_uid=lambda: "u")


def test_a_port_that_is_taken_is_said_so() -> None:
    async def story() -> None:
        async with world() as here:
            settings = ServerSettings(port=here.server.address[1])
            with pytest.raises(InputError, match="is in use"):
                await serve(settings, registry(), Door(), printers, tls=None)

    told(story)


def test_nothing_is_served_off_this_machine_without_tls() -> None:
    async def story() -> None:
        with pytest.raises(InputError, match=r"will not listen on 0\.0\.0\.0 without TLS"):
            await serve(ServerSettings(address="0.0.0.0", port=0), registry(), Door(), printers, tls=None)

    told(story)


def test_every_spelling_of_this_machine_is_served_without_tls() -> None:
    async def story() -> None:
        server = await serve(ServerSettings(address="LOCALHOST", port=0), registry(), Door(), printers, tls=None)
        await server.stop()

    told(story)


def test_requests_in_flight_are_finished_before_the_server_stops() -> None:
    async def story() -> None:
        slow = Slow()
        async with world(specials=slow.specials) as here, here.line() as line:
            line.request("POST", REVIEWS, REVIEW)
            await slow.until(1)
            stopping = asyncio.create_task(here.server.stop())
            await asyncio.sleep(0)
            assert not stopping.done()
            slow.go.set()
            reply = await line.reply()
            assert (reply.code, reply.headers["connection"]) == (201, "close")
            await stopping

    told(story)


def test_a_request_that_does_not_finish_does_not_keep_the_server() -> None:
    async def story() -> None:
        slow = Slow()
        async with world(specials=slow.specials, limits=Limits(stop_s=0.05)) as here, here.line() as line:
            line.request("POST", REVIEWS, REVIEW)
            await slow.until(1)
            await here.server.stop()
            assert await line.ended()

    told(story)


NAMES = ("localhost", "127.0.0.1")


def trusting(authority: Authority, folder: Path, user: str = "") -> ssl.SSLContext:
    """A client that trusts the authority, with a certificate of its own if it says who it is."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    if user:
        credential = authority.client(user, ["g"], datetime.now(UTC))
        path = folder / f"{user}.pem"
        path.write_bytes(credential.certificate + credential.key)
        context.load_cert_chain(path)
    return context


def test_on_tls_a_client_is_known_by_its_certificate(tmp_path: Path) -> None:
    authority = open_authority(tmp_path / "pki", datetime.now(UTC))

    async def story() -> None:
        tls = authority.tls(NAMES, datetime.now(UTC))
        async with world(tls=tls, client_tls=trusting(authority, tmp_path, "carol")) as here:
            assert here.server.url.startswith("https://127.0.0.1:")
            assert (await here.ask("POST", PODS, pod())).code == 201
            here.client_tls = trusting(authority, tmp_path)
            assert (await here.get(PODS)).code == 200
            assert [record.caller and record.caller.name for record in here.door.audit.records] == [
                "certified",
                "alice",
            ]

    told(story)


def test_a_certificate_of_somebody_elses_authority_is_refused(tmp_path: Path) -> None:
    ours = open_authority(tmp_path / "ours", datetime.now(UTC))
    theirs = open_authority(tmp_path / "theirs", datetime.now(UTC))

    async def story() -> None:
        async with world(tls=ours.tls(NAMES, datetime.now(UTC))) as here:
            foreign = trusting(theirs, tmp_path, "mallory")
            foreign.check_hostname = False
            foreign.verify_mode = ssl.CERT_NONE
            here.client_tls = foreign
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await here.get(PODS)
            assert here.door.audit.records == []

    told(story)
