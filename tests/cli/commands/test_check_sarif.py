"""`situate check -o sarif`: the findings as code-scanning services read them, and what the action runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from situate.cli import main
from situate.cli.commands.check.rules import RULES

ROOT = Path(__file__).parents[3]
MANIFEST = """\
apiVersion: v1
kind: Node
metadata: {name: only}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "10"}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: c
          image: web:1
          resources:
            requests:
              cpu: "64"
              memory: 1Gi
"""


def results(path: Path, *arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["check", "-f", str(path), "-o", "sarif", *arguments], catch_exceptions=False)
    log = json.loads(done.stdout)
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.code for rule in RULES]
    return list(run["results"])


def lines(found: list[dict[str, Any]]) -> dict[str, int]:
    return {one["ruleId"]: one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in found}


def test_a_finding_has_its_rule_its_level_and_the_line_of_its_field(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(MANIFEST)
    found = results(path)
    assert lines(found) == {"SIT003": 16, "SIT002": 19}
    assert {one["ruleId"]: one["level"] for one in found} == {"SIT003": "error", "SIT002": "warning"}
    assert all(RULES[one["ruleIndex"]].code == one["ruleId"] for one in found)
    (large,) = [one for one in found if one["ruleId"] == "SIT003"]
    assert "requests 64 cpu in all" in large["message"]["text"]


def test_an_object_of_a_list_is_found_in_it(tmp_path: Path) -> None:
    items = list(yaml.safe_load_all(MANIFEST))
    path = tmp_path / "list.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    assert all(line > 1 for line in lines(results(path)).values())


def test_without_a_file_there_is_no_line() -> None:
    done = CliRunner().invoke(main, ["check", "-f", "-", "-o", "sarif"], input=MANIFEST, catch_exceptions=False)
    for one in json.loads(done.stdout)["runs"][0]["results"]:
        assert list(one["locations"][0]) == ["logicalLocations"]


def test_it_ends_as_the_table_does(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(MANIFEST)
    command = ["check", "-f", str(path), "-o", "sarif"]
    assert CliRunner().invoke(main, command).exit_code == 1
    assert CliRunner().invoke(main, [*command, "--fail-on", "never"]).exit_code == 0


@pytest.mark.parametrize("fail_on, code", [("error", 1), ("never", 0)])
def test_what_the_action_runs_writes_the_findings_and_ends_as_asked(tmp_path: Path, fail_on: str, code: int) -> None:
    (tmp_path / "web.yaml").write_text(MANIFEST)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "situate").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m situate "$@"\n')
    (programs / "situate").chmod(0o755)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (script,) = [step["run"] for step in action["runs"]["steps"] if step.get("id") == "check"]
    env = {"PATH": f"{programs}:/usr/bin:/bin", "FILES": "web.yaml", "FAIL_ON": fail_on, "IGNORE": "SIT002"}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    (run,) = json.loads((tmp_path / "situate.sarif").read_text())["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["SIT003"]
