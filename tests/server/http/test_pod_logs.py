from collections.abc import AsyncIterator

import pytest

from server.http.world import PODS, pod, told, world
from situate.server.errors import StatusError
from situate.server.http.pod_logs import container_of
from situate.server.http.ports import LogOptions
from situate.server.requests import Object


class Written:
    """What a container wrote."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, LogOptions]] = []

    async def open(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        self.asked.append((namespace, pod, container, options))

        async def pieces() -> AsyncIterator[bytes]:
            yield b"one\n"
            yield b"two\n"

        return pieces()


def bound(name: str, *containers: str) -> Object:
    obj = pod(name)
    obj["spec"] = {"nodeName": "n", "containers": [{"name": one, "image": "i"} for one in containers]}
    return obj


def test_a_log_is_passed_on_as_it_comes() -> None:
    source = Written()

    async def story() -> None:
        async with world(logs=source) as here:
            assert (await here.ask("POST", PODS, bound("p", "c"))).code == 201
            reply = await here.get(f"{PODS}/p/log?tailLines=5&timestamps=true")
            assert (reply.code, reply.body) == (200, b"one\ntwo\n")
            assert reply.headers["content-type"].startswith("text/plain")
            assert source.asked == [("default", "p", "c", LogOptions(timestamps=True, tail_lines=5))]

    told(story)


def test_a_pod_that_runs_nowhere_has_an_empty_log() -> None:
    async def story() -> None:
        async with world(logs=Written()) as here:
            await here.ask("POST", PODS, pod())
            reply = await here.get(f"{PODS}/p/log")
            assert (reply.code, reply.body) == (204, b"")
            assert (await here.get(f"{PODS}/q/log")).message == 'pods "q" not found'

    told(story)


@pytest.mark.parametrize(
    "containers, asked, message",
    [
        (["a", "b"], "", "a container name must be specified for pod p, choose one of: [a b]"),
        (["a"], "x", "container x is not valid for pod p"),
        ([], "", "a container name must be specified for pod p"),
    ],
)
def test_the_container_must_be_plain(containers: list[str], asked: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        container_of(bound("p", *containers), asked)
    assert (refused.value.code, refused.value.message) == (400, message)
    assert container_of(bound("p", "a", "b"), "b") == "b"
