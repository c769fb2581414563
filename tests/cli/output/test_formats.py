"""`-o` means the same in every command."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from situate.cli import main
from situate.cli.output.formats import FORMATS, OutputFormat
from situate.cli.output.template import TemplateError, parse_template

LACKS = {
    "simulate": {"name"},
    "trace openb": {"name"},
    "replay": {"name"},
    "version": {"name"},
    "config default": {"table", "wide", "name"},
    "apply": {"wide"},
    "delete": {"wide", "json", "yaml", "jsonpath"},
}
"""What has no meaning there: some list no objects, a configuration is not a table, and kubectl has as few for what it
deletes."""
ALSO = {"check": {"sarif"}}
FOR_OTHER_USES = {"envtest kube-apiserver", "envtest etcd", "scheduler"}
"""Programs with the flags of others."""


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path.strip(), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from walk(child, f"{path} {name}")


WITH_OUTPUT = [
    (path, option)
    for path, command in walk(main, "")
    if path not in FOR_OTHER_USES
    for option in command.params
    if {"-o", "--output"} & {*option.opts}
]


@pytest.mark.parametrize("path, option", WITH_OUTPUT, ids=[path for path, _ in WITH_OUTPUT])
def test_every_command_with_an_output_has_the_same_formats(path: str, option: click.Option) -> None:
    assert option.opts == ["-o", "--output"]
    assert isinstance(option.type, OutputFormat)
    assert {*option.type.formats} == {*FORMATS} - LACKS.get(path, set()) | ALSO.get(path, set())
    assert option.default == option.type.formats[0] or path == "config default"


def test_every_command_that_lists_or_answers_has_an_output() -> None:
    plans = {f"plan {one}" for one in ("fit", "nodes", "survive", "drain", "drift", "defrag")}
    lists = {"clusters", "status", "get", "events", "user list", "token list", "certificates list", "version"}
    answers = {"why", "place", "check", "simulate", "trace openb", "replay", "config default"}
    writes = {"apply", "delete"}
    assert {path for path, _ in WITH_OUTPUT} == plans | lists | answers | writes


OBJECT = {
    "items": [
        {"name": "a", "n": 1, "ready": True, "labels": {"app.io/x": "one"}},
        {"name": "b", "n": 2.5, "ready": False, "none": None},
    ]
}


@pytest.mark.parametrize(
    "template, text",
    [
        pytest.param("{.items[*].name}", "a b", id="values with blanks between them"),
        pytest.param('{range .items[*]}{.name}={.n}{"\\n"}{end}', "a=1\nb=2.5\n", id="a range"),
        pytest.param("{range .items[*]}[{@.name}]{end}.", "[a][b].", id="text around it, and the current value"),
        pytest.param("{$.items[0].ready}", "true", id="a boolean as in JSON"),
        pytest.param("{.items[1].none}", "null", id="null"),
        pytest.param("{.items[0].labels}", '{"app.io/x":"one"}', id="an object as JSON"),
        pytest.param(r"{.items[0].labels.app\.io/x}", "one", id="a dot in a name"),
        pytest.param('{.items[?(@.name=="b")].n}', "2.5", id="a filter"),
        pytest.param("{.items[-1:].name}", "b", id="a slice"),
        pytest.param("{.nothing}", "", id="what is absent prints nothing"),
        pytest.param("{'}'}", "}", id="a quoted brace"),
    ],
)
def test_a_template_prints_what_kubectl_prints(template: str, text: str) -> None:
    assert parse_template(template).render(OBJECT) == text


@pytest.mark.parametrize(
    "template, problem",
    [
        ("", "write paths in braces"),
        (".items", "write paths in braces"),
        ("{.items", "a brace is not closed"),
        ("{.items[}", "unterminated array"),
        ("{range .items[*]}{.name}", "{range} without {end}"),
        ("{.a}{end}", "{end} without {range}"),
        ("{}", "a path is missing"),
        ("{range}{end}", "a path is missing"),
        ("{.a}" * 5_000, "at most 16384 characters"),
    ],
)
def test_a_bad_template_says_what_is_wrong(template: str, problem: str) -> None:
    with pytest.raises(TemplateError, match=problem):
        parse_template(template)


def test_a_bad_template_is_one_line_before_anything_is_done() -> None:
    done = CliRunner().invoke(main, ["get", "pods", "-o", "jsonpath={.items", "--kubeconfig", "nowhere"])
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "a brace is not closed" in done.stderr


def test_a_long_list_is_printed_whole() -> None:
    assert len(parse_template("{.items[*]}").render({"items": list(range(20_000))}).split()) == 20_000
