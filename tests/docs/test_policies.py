"""The pages of situate's own plugins: the configurations and tables that they show are the files of the examples."""

import re
from pathlib import Path

import pytest

from situate.core.plugins.latency import LatencyFile
from situate.wire.config import load_config
from situate.wire.latency import load_latencies

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "policies"
SHOWN = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    return SHOWN.findall((ROOT / "docs" / "guides" / page).read_text())


@pytest.mark.parametrize(
    "page, file",
    [
        ("binpack.md", "binpack.yaml"),
        ("cost.md", "cost.yaml"),
        ("latency.md", "latency.yaml"),
        ("policies.md", "together.yaml"),
    ],
)
def test_the_configuration_of_a_page_is_the_file_in_the_examples(page: str, file: str) -> None:
    assert blocks(page)[0] == (EXAMPLES / file).read_text()


@pytest.mark.parametrize("page", ["binpack.md", "cost.md", "latency.md", "policies.md"])
def test_every_configuration_of_a_page_is_valid(page: str) -> None:
    shown = [block for block in blocks(page) if "KubeSchedulerConfiguration" in block]
    assert shown
    for block in shown:
        assert load_config(block.encode()).profiles


def test_the_table_of_the_page_is_the_file_in_the_examples() -> None:
    (shown,) = [block for block in blocks("latency.md") if block.startswith("places:")]
    file = (EXAMPLES / "latencies.yaml").read_bytes()
    assert load_latencies(shown.encode()) == load_latencies(file)
    assert file.decode().endswith(shown)
    assert set(LatencyFile.__struct_fields__) == {"places"}
