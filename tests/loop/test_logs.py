"""Log lines as Kubernetes' components write them, and nothing in them that should not be."""

import json
import logging
import re
from collections.abc import Iterator
from io import StringIO

import pytest

from situate.loop.logs import LONGEST, Log, Logging, set_up

log = Log("situate.test")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Logging is the process's; leave it as it was."""
    names = (None, "situate", "asyncio", "aiohttp")
    levels = [logging.getLogger(name).level for name in names]
    handlers = list(logging.getLogger().handlers)
    yield
    logging.getLogger().handlers[:] = handlers
    for name, level in zip(names, levels, strict=True):
        logging.getLogger(name).setLevel(level)


def written(**wanted: object) -> StringIO:
    stream = StringIO()
    set_up(Logging(**wanted), stderr=stream)  # type: ignore[arg-type]
    return stream


def test_a_text_line_has_klogs_header_the_message_and_its_keys() -> None:
    stream = written()
    log.info("Successfully bound pod to node", pod="default/web", node="n1", evaluatedNodes=3)
    line = stream.getvalue()
    assert re.fullmatch(
        r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "
        r'"Successfully bound pod to node" pod="default/web" node="n1" evaluatedNodes=3\n',
        line,
    )


@pytest.mark.parametrize("say, letter", [(log.info, "I"), (log.warning, "W"), (log.error, "E")])
def test_the_first_letter_says_how_bad_it_is(say: object, letter: str) -> None:
    stream = written()
    say("it")  # type: ignore[operator]
    assert stream.getvalue().startswith(letter)


def test_a_json_line_has_the_names_that_kubernetes_uses() -> None:
    stream = written(format="json", verbosity=2)
    log.v(2).info("it", pod="default/web", tries=2, names=["a", "b"])
    line = json.loads(stream.getvalue())
    assert {key: line[key] for key in ("msg", "v", "pod", "tries", "names")} == {
        "msg": "it",
        "v": 2,
        "pod": "default/web",
        "tries": 2,
        "names": ["a", "b"],
    }
    assert re.fullmatch(r"test_logs\.py:\d+", line["caller"])
    assert line["ts"] > 1e12


def test_a_level_is_shown_from_its_verbosity_on() -> None:
    stream = written(verbosity=2)
    log.v(2).info("shown")
    log.v(3).info("hidden")
    assert "shown" in stream.getvalue()
    assert "hidden" not in stream.getvalue()
    assert (log.v(2).enabled, log.v(3).enabled) == (True, False)


def test_vmodule_shows_more_of_the_files_whose_name_fits() -> None:
    stream = written(vmodule=(("test_l*", 4),))
    log.v(4).info("shown")
    log.v(5).info("hidden")
    assert "shown" in stream.getvalue()
    assert "hidden" not in stream.getvalue()
    stream = written(vmodule=(("other", 4),))
    log.v(4).info("hidden")
    assert stream.getvalue() == ""


def test_split_streams_part_errors_from_the_rest() -> None:
    errors, rest = StringIO(), StringIO()
    set_up(Logging(split_stream=True), stderr=errors, stdout=rest)
    log.info("all is well")
    log.error("it is not")
    assert ("all is well" in rest.getvalue(), "it is not" in rest.getvalue()) == (True, False)
    assert ("all is well" in errors.getvalue(), "it is not" in errors.getvalue()) == (False, True)


def test_records_of_the_standard_library_are_lines_too() -> None:
    stream = written()
    logging.getLogger("situate.other").warning("%d of %s", 2, "them")
    assert stream.getvalue().endswith('] "2 of them"\n')


@pytest.mark.parametrize("wanted", ["text", "json"])
def test_a_token_is_masked_wherever_it_turns_up(wanted: str) -> None:
    stream = written(format=wanted)
    log.error("sent Bearer abc.def-ghi", header="Basic dXNlcjpwYXNz")
    assert "abc.def-ghi" not in stream.getvalue()
    assert "dXNlcjpwYXNz" not in stream.getvalue()


@pytest.mark.parametrize("wanted", ["text", "json"])
def test_whatever_is_said_is_one_line(wanted: str) -> None:
    stream = written(format=wanted)
    log.error("two\nlines", err="and\r\nmore", long="x" * (2 * LONGEST))
    assert stream.getvalue().count("\n") == 1
    assert len(stream.getvalue()) < 2 * LONGEST


def test_an_exception_is_named_and_its_traceback_is_not_shown() -> None:
    stream = written()
    try:
        raise ValueError("ours")
    except ValueError:
        logging.getLogger("situate.other").exception("it failed")
    assert '"it failed: ValueError: ours"' in stream.getvalue()
    assert "Traceback" not in stream.getvalue()


def test_setting_up_again_replaces_what_was() -> None:
    first = written()
    second = written()
    log.info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1
