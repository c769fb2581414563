"""docs/guides/plugins.md: its examples run as they stand, in each of the ways to name them; its tables are complete."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from situate.core.config.types import API_VERSION, KIND
from situate.core.model.node import Node
from situate.core.plugins.support.per_node import OneNode
from situate.core.plugins.table import ARGS, BUILT_IN
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "plugins.md").read_text()
FILES = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
BUILT_IN_EXAMPLE = FILES.pop("preferred_label.py")
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


def test_a_built_in_plugin_is_a_file_and_a_line_of_the_table(tmp_path: Path) -> None:
    """The page's example, in a copy of the source: situate decodes and validates its arguments, and it scores."""
    shutil.copytree(ROOT / "src" / "situate", tmp_path / "situate", ignore=shutil.ignore_patterns("__pycache__"))
    plugins = tmp_path / "situate" / "core" / "plugins"
    (plugins / "preferred_label.py").write_text(BUILT_IN_EXAMPLE)
    (line,) = re.findall(r"^ +(PluginSpec\(.*\))$", PAGE, re.MULTILINE)
    imported = "from situate.core.plugins.preferred_label import PreferredLabel, PreferredLabelArgs\n"
    table = (plugins / "table.py").read_text()
    table = table.replace("from situate.core.plugins.bin_pack", f"{imported}from situate.core.plugins.bin_pack")
    (plugins / "table.py").write_text(table.replace("    # Ours.\n", f"    # Ours.\n    {line},\n"))

    def run(args: dict[str, object], *command: str) -> str:
        profile = {
            "plugins": {"multiPoint": {"enabled": [{"name": "PreferredLabel", "weight": 50}]}},
            "pluginConfig": [{"name": "PreferredLabel", "args": args}],
        }
        config = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        asked = [sys.executable, "-m", "situate", *command, str(tmp_path / "config.yaml")]
        env = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(asked, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    path = "profiles[0].pluginConfig[0].args"
    assert f"{path}.label: Required value" in run({}, "config", "validate")
    wrong = run({"label": "disk", "score": 101}, "config", "validate")
    assert f"{path}.score: Invalid value: 101: not in valid range [1, 100]" in wrong
    assert f'unknown field "{path}.lable"' in run({"lable": "disk"}, "config", "validate")
    default = place(ROOT / "examples" / "plugins" / "config.yaml")
    assert run({"label": "disk"}, "place", *OBJECTS, "--config").splitlines()[:1] == default[:1]
    assert run({"label": "disk"}, "place", *OBJECTS, "--config") != run(
        {"label": "disk", "score": 1}, "place", *OBJECTS, "--config"
    )


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
    fields = set(PodClass.__struct_fields__)
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
