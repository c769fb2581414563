"""What `-o` means, the same in every command: table, wide, json, yaml, name and jsonpath=TEMPLATE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

TABLE: Final = "table"
WIDE: Final = "wide"
NAME: Final = "name"
JSONPATH: Final = "jsonpath"
FORMATS: Final = (TABLE, WIDE, "json", "yaml", NAME, JSONPATH)
PREFIX: Final = f"{JSONPATH}="

if TYPE_CHECKING:
    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # older releases of click do not subscript it


def for_people(output: str) -> bool:
    """Whether the format is a table, with or without more columns."""
    return output in (TABLE, WIDE)


def dump(values: Any, output: str) -> str:
    """Plain values as JSON, as YAML, or as a JSONPath template prints them."""
    from situate.wire.dump import dump_json, dump_yaml

    if output.startswith(PREFIX):
        from situate.cli.output.template import parse_template

        return parse_template(output.removeprefix(PREFIX)).render(values)
    return dump_json(values) if output == "json" else dump_yaml(values)


def names_of_pods(keys: Sequence[str]) -> list[str]:
    """`shop/web-0` becomes `pod/web-0`, as kubectl names it."""
    return [f"pod/{key.rpartition('/')[2]}" for key in keys]


class OutputFormat(_Text):
    """A format, as text. A template is parsed here, so that a mistake in it is found before anything is done."""

    name = "format"

    def __init__(self, formats: Sequence[str]) -> None:
        self.formats = tuple(formats)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join('jsonpath=TEMPLATE' if one == JSONPATH else one for one in self.formats)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if JSONPATH in self.formats and (text == JSONPATH or text.startswith(PREFIX)):
            from situate.cli.output.template import TemplateError, parse_template

            try:
                parse_template(text[len(PREFIX) :])
            except TemplateError as error:
                self.fail(f"{text}: {error}", param, ctx)
            return text
        if text not in self.formats:
            self.fail(f"{text!r} is not one of {', '.join(map(repr, self.formats))}.", param, ctx)
        return text
