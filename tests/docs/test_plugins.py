"""docs/PLUGINS.md: its examples run as they stand, in each of the three ways to name them; its tables are complete."""

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from situate.core.model.node import Node
from situate.core.plugins.support.per_node import OneNode
from situate.core.plugins.table import ARGS, BUILT_IN
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "PLUGINS.md").read_text()
FILES = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
OBJECTS = ["-f", str(ROOT / "examples" / "cluster.yaml"), "-f", str(ROOT / "examples" / "workload.yaml")]


def place(config: Path, *, path: Path | None = None) -> list[str]:
    """The lines that the command prints; three pods and more fit nowhere."""
    env = os.environ | ({} if path is None else {"PYTHONPATH": str(path)})
    done = subprocess.run(
        [sys.executable, "-m", "situate", "place", *OBJECTS, "--config", str(config)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    return done.stdout.splitlines()


def shown() -> list[str]:
    """What the page says that its configuration leads to."""
    found = re.search(r"^\$ situate place [^\n]*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found.group(1).splitlines() if found else []


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def renamed(config: str, names: dict[str, str]) -> str:
    for name, other in names.items():
        config = config.replace(f"name: {name}\n", f"name: {other}\n")
    return config


def test_the_page_has_two_plugins_and_a_configuration() -> None:
    assert list(FILES) == ["pools.py", "headroom.py", "config.yaml"]


@pytest.mark.parametrize("name", FILES)
def test_an_example_of_the_page_is_the_file_in_the_examples(name: str) -> None:
    assert FILES[name] == (ROOT / "examples" / "plugins" / name).read_text()


def test_plugins_are_found_by_file(tmp_path: Path) -> None:
    written(tmp_path, FILES)
    assert place(tmp_path / "config.yaml") == shown()


def test_plugins_are_found_by_module(tmp_path: Path) -> None:
    names = {"pools.py:PoolOrder": "ours.pools:PoolOrder", "headroom.py:Headroom": "ours.headroom:Headroom"}
    config = renamed(FILES["config.yaml"], names)
    written(
        tmp_path, {"config.yaml": config, **{f"lib/ours/{name}": FILES[name] for name in ("pools.py", "headroom.py")}}
    )
    assert place(tmp_path / "config.yaml", path=tmp_path / "lib") == shown()


def test_plugins_are_found_by_entry_point(tmp_path: Path) -> None:
    config = renamed(FILES["config.yaml"], {"pools.py:PoolOrder": "PoolOrder", "headroom.py:Headroom": "Headroom"})
    points = "[situate.plugins]\nPoolOrder = my_package.pools:PoolOrder\nHeadroom = my_package.headroom:Headroom\n"
    written(
        tmp_path,
        {
            "config.yaml": config,
            "lib/my_package/pools.py": FILES["pools.py"],
            "lib/my_package/headroom.py": FILES["headroom.py"],
            "lib/my_package-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n",
            "lib/my_package-1.0.dist-info/entry_points.txt": points,
        },
    )
    assert place(tmp_path / "config.yaml", path=tmp_path / "lib") == shown()


def test_the_plugins_of_the_page_make_a_difference(tmp_path: Path) -> None:
    """Without each of them, and with other arguments, the outcome is another."""
    written(tmp_path, FILES)
    config = yaml.safe_load(FILES["config.yaml"])
    (profile,) = config["profiles"]
    enabled, arguments = profile["plugins"]["multiPoint"]["enabled"], profile["pluginConfig"]
    outcomes = [shown()]
    for at in range(2):
        profile["plugins"]["multiPoint"]["enabled"] = [enabled[at]]
        profile["pluginConfig"] = [arguments[at]]
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        outcomes.append(place(tmp_path / "config.yaml"))
    assert len({"\n".join(lines) for lines in outcomes}) == len(outcomes)


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of its own, but for the header."""
    table = PAGE.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_what_the_page_says_can_be_read_is_there() -> None:
    cluster = Cluster()
    cluster.add_node(Node())
    view = View(cluster)
    things = {"pod": PodClass, "view": View, "node": OneNode(view, 0, Node())}
    named = [cell for heading in ("of the pod", "of all nodes", "of one node") for cell, _ in rows(heading)]
    asked = re.findall(r"`(pod|view|node)\.(\w+)", " ".join(named))
    assert len(asked) > 25
    fields = set(PodClass.__dataclass_fields__)
    missing = [f"{of}.{name}" for of, name in asked if not hasattr(things[of], name) and name not in fields]
    assert missing == []


def test_the_built_in_plugins_of_the_page_are_those_there_are() -> None:
    named = [cells[0].strip("`") for cells in rows("plugin")]
    assert named == list(BUILT_IN)


def test_the_arguments_of_the_page_are_those_there_are() -> None:
    told = {cells[0].strip("`"): set(re.findall(r"`(\w+)`", cells[2])) for cells in rows("plugin")}
    for name, arguments in told.items():
        fields = {field.encode_name for field in msgspec.structs.fields(ARGS[name])} if name in ARGS else set()
        assert arguments == fields - {"apiVersion", "kind"}, name
