"""`situate config` says what is wrong with a configuration, and prints the default one."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from situate.cli import main
from situate.core.config.defaults import default_configuration
from situate.core.config.resolve import complete
from situate.wire.config import dump_config

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["config", *arguments], input=text)


def validate(tmp_path: Path, text: str) -> Result:
    file = tmp_path / "scheduler.yaml"
    file.write_text(text)
    result = run("validate", str(file))
    shown = f"{tmp_path}/"
    result.stdout_bytes = result.stdout.replace(shown, "").encode()
    result.stderr_bytes = result.stderr.replace(shown, "").encode()
    return result


@pytest.mark.parametrize(
    "body, line",
    [
        pytest.param("", "scheduler.yaml: valid: 1 profile: default-scheduler\n", id="nothing configured"),
        pytest.param(
            "profiles: [{schedulerName: a}, {schedulerName: b}]\n",
            "scheduler.yaml: valid: 2 profiles: a, b\n",
            id="two profiles",
        ),
        pytest.param(
            "profiles: [{plugins: {multiPoint: {enabled: [{name: 'plugins/mine.py:Mine'}, {name: 'a.b:C'}]}}}]\n",
            "scheduler.yaml: valid: 1 profile: default-scheduler\n",
            id="plugins of others",
        ),
    ],
)
def test_a_valid_file_is_said_to_be(tmp_path: Path, body: str, line: str) -> None:
    result = validate(tmp_path, HEAD + body)
    assert (result.exit_code, result.stdout, result.stderr) == (0, line, "")


@pytest.mark.parametrize(
    "text, lines",
    [
        pytest.param(
            HEAD + "parallelism: 0\nprofiles: [{schedulerName: ''}]\n",
            [
                "scheduler.yaml: parallelism: Invalid value: 0: should be an integer value greater than zero",
                "scheduler.yaml: profiles[0].schedulerName: Required value",
            ],
            id="bad values, a line each",
        ),
        pytest.param(
            HEAD + "foo: 1\nbar: 2\n",
            [
                'scheduler.yaml: strict decoding error: unknown field "bar"',
                'scheduler.yaml: strict decoding error: unknown field "foo"',
            ],
            id="unknown fields, a line each",
        ),
        pytest.param(
            HEAD + "profiles: [{plugins: {score: {enabled: [{name: Foo}, {name: NodePorts}]}}}]\n",
            [
                'scheduler.yaml: profiles[0].plugins.score: ScorePlugin "Foo" does not exist',
                'scheduler.yaml: profiles[0].plugins.score: plugin "NodePorts" does not extend ScorePlugin plugin',
            ],
            id="plugins that cannot run, a line each",
        ),
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
            [
                (
                    'scheduler.yaml: no kind "KubeSchedulerConfiguration" is registered for version '
                    '"kubescheduler.config.k8s.io/v1beta3" '
                    '(only "KubeSchedulerConfiguration" of version "kubescheduler.config.k8s.io/v1" is read)'
                )
            ],
            id="an old version",
        ),
        pytest.param(
            "a: [",
            ["error: scheduler.yaml: line 2, column 1: not YAML: did not find expected node content"],
            id="a file that is not YAML",
        ),
    ],
)
def test_what_is_wrong_is_told_on_stderr_with_exit_code_2(tmp_path: Path, text: str, lines: list[str]) -> None:
    result = validate(tmp_path, text)
    assert (result.exit_code, result.stdout, result.stderr.splitlines()) == (2, "", lines)


def test_a_name_that_would_move_the_cursor_does_not(tmp_path: Path) -> None:
    result = validate(tmp_path, HEAD + 'profiles: [{schedulerName: "a\\e[2Jb"}]\n')
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout


def test_a_file_that_is_not_there_is_one_line() -> None:
    result = run("validate", "nowhere.yaml")
    assert (result.exit_code, result.stderr) == (2, "error: nowhere.yaml: No such file or directory\n")


def test_standard_input_is_read() -> None:
    assert run("validate", "-", text=HEAD).stdout == "-: valid: 1 profile: default-scheduler\n"


def test_the_default_configuration_is_printed_as_yaml() -> None:
    result = run("default")
    assert (result.exit_code, result.stdout) == (0, dump_config(complete(default_configuration())))
    assert result.stdout.startswith("apiVersion: kubescheduler.config.k8s.io/v1\n")


def test_the_default_configuration_is_printed_as_json() -> None:
    result = run("default", "-o", "json")
    assert json.loads(result.stdout)["profiles"][0]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_what_is_printed_is_valid(tmp_path: Path, output: str) -> None:
    result = validate(tmp_path, run("default", "--output", output).stdout)
    assert result.stdout == "scheduler.yaml: valid: 1 profile: default-scheduler\n"
