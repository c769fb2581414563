"""docs/guides/gpu.md: its configuration is the file in the examples, and its tables are complete."""

import re
from pathlib import Path

import msgspec
import pytest

from situate.core.model.annotations import GPU_DEVICES, GPU_MEMORY, GPU_MILLI
from situate.core.model.gpu import DISCOVERED_MEMORY, MOST_DEVICES
from situate.core.plugins.table import ARGS

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "gpu.md").read_text()


def test_the_configuration_of_the_page_is_the_file_in_the_examples() -> None:
    shown = re.search(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown.group(1) == (ROOT / "examples" / "gpu" / "config.yaml").read_text()


@pytest.mark.parametrize("plugin", ["GpuShare", "Fragmentation"])
def test_the_arguments_of_the_page_are_those_there_are_with_their_defaults(plugin: str) -> None:
    table = PAGE.partition(f"| argument of `{plugin}` |")[2].partition("\n\n")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| `?([^`|]*?)`? \|", table, re.MULTILINE))
    fields = {field.encode_name: field.default for field in msgspec.structs.fields(ARGS[plugin])}
    assert list(told) == list(fields)
    for name, default in fields.items():
        assert told[name] == ("the bound pods" if default == () else f"{default:g}" if default == 1.0 else str(default))


@pytest.mark.parametrize(
    "word", [GPU_MILLI, GPU_MEMORY, GPU_DEVICES, DISCOVERED_MEMORY, f"Up to {MOST_DEVICES} devices"]
)
def test_the_page_names_what_is_read_and_written(word: str) -> None:
    assert word in PAGE
