"""The Dockerfile, as far as it goes without Docker: what it copies is there, and makes a wheel that works by itself.

That an image comes out of it is not tried here.
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from deploy.rights import KUSTOMIZE, ROOT
from situate import __version__

DOCKERFILE = (ROOT / "Dockerfile").read_text()
TIMEOUT_S = 120.0


def instructions(name: str) -> list[str]:
    """What stands after an instruction, each with its continued lines."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)


def copied() -> list[str]:
    """What is copied from the folder that the image is built in."""
    words = [line.split() for line in instructions("COPY") if not line.startswith("--from")]
    return [source for *sources, _ in words for source in sources]


def ignored(path: str) -> bool:
    """By .dockerignore: the last line that fits decides."""
    verdict = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        whole = pattern.removeprefix("!").removeprefix("**/")
        if fnmatch.fnmatch(path, whole) or path.startswith(f"{whole}/") or f"/{whole}" in f"/{path}":
            verdict = not pattern.startswith("!")
    return verdict


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    words = [str(word) for word in command]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | environment
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", copied())
def test_what_is_copied_is_there_and_not_ignored(path: str) -> None:
    assert (ROOT / path).exists()
    assert not ignored(path)


@pytest.mark.parametrize("path", [".git", ".venv", "tests", "Makefile", "src/situate/__pycache__"])
def test_nothing_else_is_sent_to_the_builder(path: str) -> None:
    assert ignored(path)


def test_the_process_is_that_of_the_deployment() -> None:
    deployment = yaml.safe_load((KUSTOMIZE / "base" / "deployment.yaml").read_text())
    inside = deployment["spec"]["template"]["spec"]
    user = inside["securityContext"]
    assert instructions("USER") == [f"{user['runAsUser']}:{user['runAsGroup']}"]
    assert instructions("ENTRYPOINT") == ['["situate"]']
    assert inside["containers"][0]["args"][0] == "scheduler"
    assert inside["containers"][0]["ports"][0]["containerPort"] == int(instructions("EXPOSE")[0])


def test_the_manifests_and_the_chart_name_the_version_of_the_program() -> None:
    deployment = yaml.safe_load((KUSTOMIZE / "base" / "deployment.yaml").read_text())
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "situate" / "Chart.yaml").read_text())
    assert (image, chart["appVersion"]) == (f"localhost/situate:{__version__}", __version__)
    assert f"docker build -t localhost/situate:{__version__} ." in DOCKERFILE


def test_a_wheel_of_what_is_copied_works_in_an_environment_of_its_own(tmp_path: Path) -> None:
    sources, wheels, home = tmp_path / "build", tmp_path / "wheels", tmp_path / "situate"
    sources.mkdir()
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, sources / name)
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", wheels, cwd=sources)
    [wheel] = wheels.iterdir()
    assert wheel.name.startswith(f"situate-{__version__}-py3-none-any")

    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=tmp_path)
    pip = (sys.executable, "-m", "pip", "--python", home / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=tmp_path)
    # What it depends on is not fetched anew: it is looked up where the tests have it, where situate itself is not.
    others = {"PYTHONPATH": sysconfig.get_path("purelib")}
    said = run(home / "bin" / "situate", "scheduler", "--version", cwd=tmp_path, **others)
    assert said.startswith(f"situate {__version__} ")
    at = run(home / "bin" / "python", "-c", "import situate; print(situate.__file__)", cwd=tmp_path, **others)
    assert Path(at.strip()).is_relative_to(home)
    config = KUSTOMIZE / "base" / "config.yaml"
    run(
        home / "bin" / "situate",
        "scheduler",
        f"--config={config}",
        "--write-config-to=whole.yaml",
        cwd=tmp_path,
        **others,
    )
    assert "schedulerName: situate" in (tmp_path / "whole.yaml").read_text()
