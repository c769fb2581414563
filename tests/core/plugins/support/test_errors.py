"""Faults of plugins that are not ours are told with the line of theirs that led to them."""

from functools import partial
from typing import Any

import pytest

from situate.core.plugins.support.errors import PluginError, call


def run(source: str) -> str:
    """What is said of a plugin whose file has this source."""
    theirs: dict[str, Any] = {}
    exec(compile(source, "/plugins/quiet.py", "exec"), theirs)
    with pytest.raises(PluginError) as caught:
        call("Quiet", "check", theirs["check"])
    return str(caught.value)


@pytest.mark.parametrize(
    "source, said",
    [
        pytest.param(
            "def check():\n    return {}['rack']\n", "KeyError: 'rack' (quiet.py, line 2)", id="a line of theirs"
        ),
        pytest.param(
            "import json\ndef check():\n    return inner()\ndef inner():\n    return json.loads('{')\n",
            "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1) "
            "(quiet.py, line 5)",
            id="the innermost line of theirs, where a library raised",
        ),
        pytest.param("def check():\n    raise ValueError\n", "ValueError (quiet.py, line 2)", id="nothing said"),
        pytest.param(
            "def check():\n    raise SystemExit(3)\n", "SystemExit: 3 (quiet.py, line 2)", id="the wish to leave"
        ),
    ],
)
def test_a_fault_is_told_with_its_line(source: str, said: str) -> None:
    assert run(source) == f'plugin "Quiet": check raised {said}'


def test_a_fault_without_a_line_of_theirs_has_none() -> None:
    with pytest.raises(PluginError, match=r"making it raised TypeError: object\(\) takes no arguments$"):
        call("Quiet", "making it", partial(object, 1))  # type: ignore[call-arg]


def test_what_was_told_already_is_not_told_again() -> None:
    def fails() -> None:
        raise PluginError("Quiet", "gave nothing")

    with pytest.raises(PluginError, match=r'^plugin "Quiet": gave nothing$'):
        call("Quiet", "check", fails)


def test_an_interrupt_is_nobodys_fault() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call("Quiet", "check", interrupted)
