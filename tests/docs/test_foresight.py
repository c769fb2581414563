"""docs/guides/foresight.md: its configuration is the file in the examples, and its table of arguments is complete."""

import re
from pathlib import Path

import msgspec

from situate.core.plugins.foresight import ForesightArgs

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "foresight.md").read_text()


def test_the_configuration_of_the_page_is_the_file_in_the_examples() -> None:
    shown = re.search(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown.group(1) == (ROOT / "examples" / "foresight" / "config.yaml").read_text()


def test_the_arguments_of_the_page_are_those_there_are_with_their_defaults() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| `?([^`|]*?)`? \|", PAGE, re.MULTILINE))
    fields = {field.encode_name: field.default for field in msgspec.structs.fields(ForesightArgs)}
    assert list(told) == list(fields)
    for name, default in fields.items():
        assert told[name] == ("the bound pods" if default == () else f"{default:g}" if default == 1.0 else str(default))
