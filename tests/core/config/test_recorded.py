"""What kube-scheduler v1.36.4 made of 598 configurations, and what we make of them.

`recorded.jsonl.gz` has one configuration a line (`text`), and what its own code answered: its reader's complaint
(`refused`), its validation's problems (`errors`; those of NodeResourcesFit's arguments, which it validates only when
it builds the plugin, apart in `fitErrors`), why the scheduler did not start (`start`), or the plugins at each point
(`points`) and the configuration that `--write-config-to` writes (`written`). Some were written by hand for a rule,
some drawn at random.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from situate.core.config.defaults import BUILT_IN_POINTS
from situate.core.config.errors import ConfigError
from situate.core.config.resolve import complete, resolve
from situate.wire.config import ConfigInputError, dump_config, load_config
from situate.wire.errors import InputError

with gzip.open(Path(__file__).parent / "recorded.jsonl.gz", "rt") as _lines:
    RECORDED: list[dict[str, Any]] = [json.loads(line) for line in _lines]

# Kubernetes' writer knows other forms of plain text and numbers than ours; both read back the same.
WRITTEN_OTHERWISE = {
    "qps huge",
    "a date for a name",
    "a timestamp for a name",
    "schedulerName =",
    "schedulerName <<",
}


def those_with(key: str) -> list[Any]:
    return [pytest.param(one, id=one["id"]) for one in RECORDED if key in one]


@pytest.mark.parametrize("recorded", those_with("refused"))
def test_what_kube_scheduler_cannot_read_is_refused(recorded: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        load_config(recorded["text"].encode())


@pytest.mark.parametrize("recorded", those_with("errors"))
def test_every_problem_that_kube_scheduler_finds_is_found_in_its_words_and_order(recorded: dict[str, Any]) -> None:
    with pytest.raises(ConfigInputError) as raised:
        load_config(recorded["text"].encode())
    fit = set(recorded["fitErrors"])
    problems = raised.value.problems
    assert [one for one in problems if one not in fit] == list(dict.fromkeys(recorded["errors"]))
    assert [one for one in problems if one in fit] == list(dict.fromkeys(recorded["fitErrors"]))


@pytest.mark.parametrize("recorded", those_with("start"))
def test_what_kube_scheduler_does_not_start_with_is_said_in_its_words(recorded: dict[str, Any]) -> None:
    config = load_config(recorded["text"].encode())
    with pytest.raises(ConfigError) as raised:
        resolve(config, BUILT_IN_POINTS)
    path, text = raised.value.problems[0].split(": ", 1)
    assert path.startswith("profiles[")
    assert recorded["start"].endswith(text)


@pytest.mark.parametrize("recorded", those_with("points"))
def test_the_same_plugins_run_in_the_same_order_with_the_same_weights(recorded: dict[str, Any]) -> None:
    profiles = resolve(load_config(recorded["text"].encode()), BUILT_IN_POINTS)
    weights = {"score": "weights", "placementScore": "placement_weights"}
    found = {
        profile.scheduler_name: {
            point: [
                f"{name}={getattr(profile, weights[point])[name]}" if point in weights else name for name in plugins
            ]
            for point, plugins in profile.points.items()
        }
        for profile in profiles
    }
    assert found == recorded["points"]


@pytest.mark.parametrize("recorded", those_with("written"))
def test_the_configuration_is_written_as_kube_scheduler_writes_it(recorded: dict[str, Any]) -> None:
    written = dump_config(complete(load_config(recorded["text"].encode())))
    if recorded["id"] in WRITTEN_OTHERWISE:
        assert load_config(written.encode()) == load_config(recorded["written"].encode())
    else:
        assert written == recorded["written"]
