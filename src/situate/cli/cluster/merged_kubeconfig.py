"""The context of a local cluster in the kubeconfig that kubectl reads, as kind and minikube put one there.

A context of ours has an extension that says which directory it belongs to. We neither replace nor remove any other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import yaml

from situate.cli.cluster.local import KUBECONFIG
from situate.wire.dump import dump_yaml
from situate.wire.yaml import load_yaml

EXTENSION: Final = "situate.dev"
LISTS: Final = ("clusters", "users", "contexts")
PRIVATE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700


def add_context(name: str, directory: Path, *, switch: bool) -> Path | None:
    """Copy the cluster's own context. Returns the file; None: kubectl reads the cluster's own kubeconfig already.

    `switch`: make it the current context. Raises ClickException.
    """
    path, own = _target(), directory / KUBECONFIG
    if path.resolve() == own.resolve():
        return None
    given: Any = yaml.safe_load(own.read_bytes())
    with _locked(path):
        content = _read(path)
        known = _entry(content, "contexts", name)
        if known is not None and _directory_of(known) is None:
            raise click.ClickException(f"{path} has a context {name} already, for another cluster; nothing was changed")
        ours = {"name": EXTENSION, "extension": {"directory": str(directory.absolute())}}
        made = {"cluster": name, "user": name, "extensions": [ours]}
        _replace(content, "clusters", {"name": name, "cluster": given["clusters"][0]["cluster"]})
        _replace(content, "users", {"name": name, "user": given["users"][0]["user"]})
        _replace(content, "contexts", {"name": name, "context": made})
        if switch or not content.get("current-context"):
            content["current-context"] = name
        _write(path, content)
    return path


def remove_context(name: str, directory: Path) -> Path | None:
    """Remove what `add_context` added for this directory. Returns the file; None: it was not there."""
    path = _target()
    if not path.is_file():
        return None
    with _locked(path):
        content = _read(path)
        known = _entry(content, "contexts", name)
        if known is None or _directory_of(known) != str(directory.absolute()):
            return None
        for kind in LISTS:
            content[kind] = [one for one in content[kind] if not (isinstance(one, dict) and one.get("name") == name)]
        if content.get("current-context") == name:
            content["current-context"] = ""
        _write(path, content)
    return path


def _target() -> Path:
    """The file that kubectl would write: of several, the first that exists."""
    listed = [Path(path) for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    found = next((path for path in listed if path.exists()), listed[-1] if listed else None)
    path = found or Path.home() / ".kube" / "config"
    return path.resolve() if path.is_symlink() else path


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """As kubectl locks it."""
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    lock = path.with_name(f"{path.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
    except FileExistsError:
        raise click.ClickException(
            f"{path} is locked by another program; if no such program runs, remove {lock}"
        ) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    content = next(load_yaml(path.read_bytes(), str(path)), None) if path.exists() else None
    if content is None:
        content = {"apiVersion": "v1", "kind": "Config"}
    if not isinstance(content, dict) or any(not isinstance(content.get(kind) or [], list) for kind in LISTS):
        raise click.ClickException(f"{path} is not a kubeconfig; nothing was changed")
    for kind in LISTS:
        content[kind] = content.get(kind) or []
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w") as file:
            file.write(dump_yaml(content))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _entry(content: dict[str, Any], kind: str, name: str) -> dict[str, Any] | None:
    return next((one for one in content[kind] if isinstance(one, dict) and one.get("name") == name), None)


def _replace(content: dict[str, Any], kind: str, entry: dict[str, Any]) -> None:
    others = [one for one in content[kind] if not (isinstance(one, dict) and one.get("name") == entry["name"])]
    content[kind] = [*others, entry]


def _directory_of(entry: dict[str, Any]) -> str | None:
    """Which of our clusters a context belongs to; None: it is not ours."""
    context = entry.get("context")
    extensions = context.get("extensions") if isinstance(context, dict) else None
    for one in extensions if isinstance(extensions, list) else ():
        if isinstance(one, dict) and one.get("name") == EXTENSION and isinstance(one.get("extension"), dict):
            return str(one["extension"].get("directory"))
    return None
