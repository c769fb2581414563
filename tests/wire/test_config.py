"""Configuration files: read with everything that is wrong with them, written as kube-scheduler writes them.

Also the page on configuration: what it shows is valid, and it names every setting with its default.
"""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from situate.core.config.defaults import BUILT_IN_POINTS, OUT_OF_TREE_POINTS, default_configuration, enabled_names
from situate.core.config.encode import encode
from situate.core.config.resolve import complete
from situate.core.config.types import (
    API_VERSION,
    KIND,
    NOT_IN_FILES,
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    PluginConfig,
    Plugins,
)
from situate.core.plugins.table import ARGS
from situate.wire.config import ConfigInputError, config_of, dump_config, load_config, profiles_of
from situate.wire.errors import InputError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PAGE = (Path(__file__).parent.parent.parent / "docs" / "reference" / "configuration.md").read_text()


def load(body: str) -> KubeSchedulerConfiguration:
    return load_config((HEAD + body).encode(), "scheduler.yaml")


def error_of(text: str) -> InputError:
    with pytest.raises(InputError) as raised:
        load_config(text.encode(), "scheduler.yaml")
    return raised.value


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_read_with_its_defaults_set() -> None:
    config = load("parallelism: 4\n")
    assert config.parallelism == 4
    assert config.profiles == default_configuration().profiles


def test_json_is_read_as_well() -> None:
    text = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 4}'
    assert load_config(text.encode()) == load("parallelism: 4\n")


def test_a_document_that_is_read_already_will_do() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 4}
    assert config_of(document) == load("parallelism: 4\n")


def test_only_the_first_document_is_read() -> None:
    assert load("parallelism: 4\n---\nfoo: 1\n") == load("parallelism: 4\n")


@pytest.mark.parametrize(
    "text, line",
    [
        pytest.param(
            "a: [",
            "scheduler.yaml: line 2, column 1: not YAML: did not find expected node content",
            id="a file that is not YAML",
        ),
        pytest.param(
            "",
            "scheduler.yaml: KubeSchedulerConfiguration: Object 'Kind' is missing",
            id="an empty file",
        ),
        pytest.param(
            HEAD + "parallelism: 1\nparallelism: 2\n",
            'scheduler.yaml: line 4, column 1: key "parallelism" is given twice',
            id="a key given twice",
        ),
        pytest.param(
            HEAD + "foo: 1\n",
            'scheduler.yaml: KubeSchedulerConfiguration: strict decoding error: unknown field "foo"',
            id="an unknown field",
        ),
        pytest.param(
            HEAD + "parallelism: 0\npercentageOfNodesToScore: 101\npodInitialBackoffSeconds: 0\n",
            "scheduler.yaml: KubeSchedulerConfiguration: parallelism: Invalid value: 0: "
            "should be an integer value greater than zero (and 2 more)",
            id="several bad values",
        ),
    ],
)
def test_what_is_wrong_is_one_line(text: str, line: str) -> None:
    assert str(error_of(text)) == line


def test_the_error_has_every_problem() -> None:
    error = error_of(HEAD + "parallelism: 0\npercentageOfNodesToScore: 101\n")
    assert isinstance(error, ConfigInputError)
    assert error.problems == (
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD + "profiles: " + "[" * 10_000, id="deep nesting"),
        pytest.param("a: &a [x, x, x, x, x, x, x, x, x]\n" + HEAD, id="an anchor in an unknown field"),
        pytest.param(
            "\n".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]" if i else "a1: &a1 [x]" for i in range(20)),
            id="a bomb of aliases",
        ),
        pytest.param(HEAD + "parallelism: 1e100000000\n", id="a number without end"),
        pytest.param(HEAD + "leaderElection: {leaseDuration: " + "9" * 100_000 + "h}\n", id="a duration without end"),
        pytest.param(HEAD + "profiles: [{schedulerName: " + "x: " * 50 + "\n", id="colons"),
    ],
)
def test_a_hostile_file_is_refused_in_one_line(text: str) -> None:
    assert "\n" not in str(error_of(text))


def test_a_profile_that_cannot_run_is_an_error_of_the_file() -> None:
    config = load("profiles: [{plugins: {filter: {enabled: [{name: Foo}]}}}]\n")
    with pytest.raises(ConfigInputError) as raised:
        profiles_of(config, BUILT_IN_POINTS, "scheduler.yaml")
    assert str(raised.value) == (
        'scheduler.yaml: KubeSchedulerConfiguration: profiles[0].plugins.filter: FilterPlugin "Foo" does not exist'
    )


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_json_has_what_yaml_has() -> None:
    config = complete(default_configuration())
    assert json.loads(dump_config(config, "json")) == encode(config)
    assert load_config(dump_config(config, "json").encode()) == load_config(dump_config(config).encode())


AWKWARD = ["y", "no", "on", "", "null", "~", "1", "1e3", "0x10", ".inf", "2020-01-02", "<<", "="]
AWKWARD += ["*", "&a", "a: b", "# a", "a\nb", " a", "é", "- a"]


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_is_written_so_that_it_reads_back(name: str) -> None:
    config = load(f"profiles: [{{schedulerName: a, pluginConfig: [{{name: {json.dumps(name)}, args: {{a: 1}}}}]}}]\n")
    assert load_config(dump_config(config).encode()) == config


def test_text_that_would_read_as_something_else_is_in_double_quotes() -> None:
    text = dump_config(load('profiles: [{schedulerName: "yes", plugins: {score: {disabled: [{name: "*"}]}}}]\n'))
    assert '  schedulerName: "yes"\n' in text
    assert "      - name: '*'\n" in text


# ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────────

SHOWN = list(re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("text", SHOWN, ids=lambda text: " ".join(text.split())[74:130])
def test_a_configuration_on_the_page_is_valid(text: str) -> None:
    config = load_config(text.encode(), "docs/reference/configuration.md")
    named = [name for profile in config.profiles for name in enabled_names(profile.plugins or Plugins())]
    assert profiles_of(config, {**BUILT_IN_POINTS, **{name: OUT_OF_TREE_POINTS for name in named if ":" in name}})


def test_the_page_shows_configurations() -> None:
    assert len(SHOWN) >= 5


def rows(heading: str) -> dict[str, str]:
    """Setting and default, of the table under a heading."""
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    if section is None:
        raise LookupError(heading)
    return dict(re.findall(r"^\| `([\w]+)` \| (.*?) \|", section[1], re.MULTILINE))


def fields_of(cls: type[msgspec.Struct], *apart: str) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(cls)} - set(apart) - NOT_IN_FILES


@pytest.mark.parametrize(
    "heading, cls, apart",
    [
        pytest.param("The process", KubeSchedulerConfiguration, ("profiles", "extenders"), id="the process"),
        pytest.param("leaderElection", LeaderElection, (), id="leaderElection"),
        pytest.param("clientConnection", ClientConnection, (), id="clientConnection"),
        pytest.param("profiles", KubeSchedulerProfile, (), id="profiles"),
        pytest.param("extenders", Extender, (), id="extenders"),
        pytest.param("tlsConfig", ExtenderTLSConfig, (), id="tlsConfig"),
        pytest.param("managedResources", ExtenderManagedResource, (), id="managedResources"),
        *(pytest.param(f"{plugin}Args", cls, (), id=f"{plugin}Args") for plugin, cls in ARGS.items()),
    ],
)
def test_the_page_names_every_setting(heading: str, cls: type[msgspec.Struct], apart: tuple[str, ...]) -> None:
    assert set(rows(heading)) == fields_of(cls, *apart)


def defaults_of(document: dict[str, Any]) -> dict[str, str]:
    return {key: f"`{json.dumps(value)}`" for key, value in document.items() if not isinstance(value, dict | list)}


@pytest.mark.parametrize("heading", ["The process", "leaderElection", "clientConnection"])
def test_the_page_gives_the_defaults_of_settings(heading: str) -> None:
    found = encode(default_configuration())
    defaults = defaults_of(found if heading == "The process" else found[heading])
    given = rows(heading)
    assert {key: given[key] for key in defaults if key in given} == {
        key: value for key, value in defaults.items() if key in given
    }


@pytest.mark.parametrize("plugin", sorted(ARGS))
def test_the_page_gives_the_defaults_of_arguments(plugin: str) -> None:
    given_none = (PluginConfig(name=plugin, args=ARGS[plugin]()),)  # also for those that are off by default
    profile = replace(default_configuration().profiles[0], plugin_config=given_none)
    (entry,) = encode(replace(default_configuration(), profiles=(profile,)))["profiles"][0]["pluginConfig"]
    args = entry["args"]
    given = rows(f"{plugin}Args")
    defaults = defaults_of({key: value for key, value in args.items() if key not in ("apiVersion", "kind")})
    assert {key: given[key] for key in defaults} == defaults


def test_the_page_names_every_plugin_with_its_weight_and_points() -> None:
    table = re.findall(r"^\| \d+ \| `(\w+)` \| (\d*|–) \| (.*?) \|", PAGE, re.MULTILINE)
    given = {name: (weight, set(re.findall(r"\w+", points))) for name, weight, points in table}
    enabled = {ref.name: ref.weight for ref in _default_plugins()}
    assert list(given) == list(enabled)
    assert given == {
        name: (str(weight) if weight else "–", set(BUILT_IN_POINTS[name])) for name, weight in enabled.items()
    }


def _default_plugins() -> tuple[Any, ...]:
    plugins = default_configuration().profiles[0].plugins or Plugins()
    return plugins.multi_point.enabled


def test_a_file_cannot_say_which_version_it_is_for() -> None:
    with pytest.raises(ConfigInputError, match='unknown field "kubernetesVersion"'):
        config_of({"apiVersion": API_VERSION, "kind": KIND, "kubernetesVersion": "1.37"})
