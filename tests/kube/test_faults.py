"""Faults of ours are told in one line, and nobody sees a traceback."""

import asyncio
import os

import pytest

from situate.kube.faults import first, say_exiting, say_unexpected
from situate.loop.drive import EngineError
from situate.loop.logs import KEYS


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - any
        return caught


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    return [(record.getMessage(), getattr(record, KEYS)["err"]) for record in caplog.records]


def test_what_a_task_raised_and_nobody_heard_is_said_with_where(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(say_unexpected)
        loop.call_soon(lambda: os.environ["ABSENT"])
        await asyncio.sleep(0)

    asyncio.run(scenario())
    [(message, error)] = lines(caplog)
    assert message.startswith("An unexpected error, going on: please report it")
    assert str(error).startswith("KeyError: 'ABSENT' (in __getitem__, ")


def test_a_connection_that_broke_inside_a_library_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    say_unexpected(loop, {"message": "Fatal error on transport", "exception": raised(ConnectionResetError())})
    loop.close()
    assert lines(caplog) == []


@pytest.mark.parametrize(
    "error, message",
    [(EngineError("what (where)"), "The engine failed, exiting"), (ValueError("x"), "An unexpected error, exiting")],
)
def test_what_ends_the_process_is_said(error: Exception, message: str, caplog: pytest.LogCaptureFixture) -> None:
    say_exiting(raised(error))
    [(said, _)] = lines(caplog)
    assert said.startswith(message)


def test_of_what_several_tasks_raised_the_first_counts() -> None:
    one = ValueError("one")
    assert first(ExceptionGroup("", [ExceptionGroup("", [one]), ValueError("two")])) is one
