"""The pod's volumes as directories of this machine. Nothing is mounted: a process sees the machine's own files.

The environment variable SITUATE_VOLUME_<NAME> (upper case, `_` for `-`) has the path of a volume; that of the volume
with the ServiceAccount's token is also in SITUATE_SERVICE_ACCOUNT. ConfigMaps, Secrets, tokens and the downward API are
written when the pod starts; later changes are not seen.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from situate.agent.environment import (
    ConfigReference,
    ContainerConfigError,
    EnvironmentSources,
    TokenReference,
    data_of,
    field_of,
    references_in,
    resource_of,
)

FAILED_MOUNT: Final = "FailedMount"
NOT_HERE: Final = "the process runtime does not support volumes of type {} (volume {})"
CLOSED: Final = "volume {}: user {} may not enter {}: choose a --dir that every user can reach"
FILE_MODE: Final = 0o644
FS_GROUP_FILE: Final = 0o440
FS_GROUP_DIRECTORY: Final = 0o2770
"""The group of new files in a directory is its own."""
CREATE_S: Final = 5.0
"""How long the creation of a hostPath may take."""
SOURCES: Final = ("configMap", "secret", "downwardAPI", "projected", "emptyDir", "hostPath")
CLAIMED: Final = ("persistentVolumeClaim", "ephemeral")
"""Sources that stand for a claim: `claim_volumes` finds the directory."""


TOKEN_S: Final = 3_600
"""The life of a token that does not set it."""
ACCOUNT_AT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ACCOUNT_VARIABLE: Final = "SITUATE_SERVICE_ACCOUNT"


def variable_of(name: str) -> str:
    return "SITUATE_VOLUME_" + name.upper().replace("-", "_").replace(".", "_")


def volume_references(pod: Mapping[str, Any]) -> Iterator[ConfigReference]:
    for volume in pod["spec"].get("volumes", ()):
        yield from references_in(volume, "configMap", "secret", "secretName")
        for source in volume.get("projected", {}).get("sources", ()):
            yield from references_in(source, "configMap", "secret")


def token_references(pod: Mapping[str, Any], root: Path) -> Iterator[TokenReference]:
    """The tokens to ask for: those of volumes that do not exist yet."""
    for volume in pod["spec"].get("volumes", ()):
        for source in volume.get("projected", {}).get("sources", ()):
            if "serviceAccountToken" in source and not (root / volume["name"]).exists():
                yield _token_of(source["serviceAccountToken"])


def _token_of(source: Mapping[str, Any]) -> TokenReference:
    return TokenReference(source.get("audience", ""), source.get("expirationSeconds", TOKEN_S))


def token_directory(container: Mapping[str, Any], volumes: Mapping[str, str]) -> dict[str, str]:
    """Where a container finds the token of its ServiceAccount: a process sees no mount."""
    for mount in container.get("volumeMounts", ()):
        path = volumes.get(variable_of(mount.get("name", "")))
        if mount.get("mountPath") == ACCOUNT_AT and path is not None:
            return {ACCOUNT_VARIABLE: path}
    return {}


@dataclass(frozen=True, slots=True)
class VolumeOwner:
    """The owner of the volumes that the agent creates. None: the agent's user, which the containers also have."""

    user: int | None = None
    group: int | None = None
    fs_group: int | None = None

    def give(self, path: Path, mode: int) -> None:
        """Like the kubelet, give the pod's fsGroup the access that it needs to the volume."""
        os.chown(path, -1 if self.user is None else self.user, -1 if self.group is None else self.group)
        if self.fs_group is not None:
            os.chown(path, -1, self.fs_group)
            mode |= FS_GROUP_DIRECTORY if path.is_dir() else FS_GROUP_FILE
        path.chmod(mode)


def prepare_volumes(
    pod: Mapping[str, Any], root: Path, around: EnvironmentSources, owner: VolumeOwner | None = None
) -> dict[str, str]:
    """Create the volumes that do not exist; return their paths by variable. Raises ContainerConfigError."""
    paths, owner = {}, owner or VolumeOwner()
    closed = None if owner.user is None else closed_parent(root, owner.user)
    for volume in pod["spec"].get("volumes", ()):
        if closed is not None and "hostPath" not in volume:
            text = CLOSED.format(volume["name"], owner.user, closed)
            raise ContainerConfigError(text, FAILED_MOUNT)
        try:
            paths[variable_of(volume["name"])] = str(_made(pod, volume, root / volume["name"], around, owner))
        except (OSError, ValueError) as error:  # ValueError: a NUL in a path, or a Secret that is not base64
            why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            raise ContainerConfigError(f"volume {volume['name']}: {why}", FAILED_MOUNT) from None
    return paths


def closed_parent(path: Path, user: int) -> Path | None:
    """The first directory above a path that a user without groups may not enter."""
    for parent in reversed(path.parents):
        if parent.is_dir() and (found := parent.stat()).st_uid != user and not found.st_mode & stat.S_IXOTH:
            return parent
    return None


def check_mounts(container: Mapping[str, Any]) -> None:
    """Nothing is mounted, but a path that could not be mounted is refused. Raises ContainerConfigError."""
    for mount in container.get("volumeMounts", ()):
        for field in ("mountPath", "subPath", "subPathExpr"):
            if "\0" in mount.get(field, ""):
                text = f"volume {mount.get('name', '')}: {field} contains a NUL character"
                raise ContainerConfigError(text, FAILED_MOUNT)


def _made(
    pod: Mapping[str, Any], volume: Mapping[str, Any], path: Path, around: EnvironmentSources, owner: VolumeOwner
) -> Path:
    kind = next((one for one in (*SOURCES, *CLAIMED) if one in volume), None)
    if kind in CLAIMED:
        claimed = around.claims[volume["name"]]
        if not claimed.exists():
            claimed.mkdir()
            owner.give(claimed, 0o777)  # as for emptyDir
        return claimed
    if kind is None:
        kinds = [one for one in volume if one != "name"]
        raise ContainerConfigError(NOT_HERE.format(" ".join(kinds), volume["name"]), FAILED_MOUNT)
    if kind == "hostPath":
        return _host_path(volume["hostPath"], owner)
    for directory in (path.parent.parent, path.parent):
        if not directory.is_dir():
            directory.mkdir(parents=True)
            directory.chmod(0o711)  # whatever the umask
    if path.exists():
        return path  # its files may belong to the containers by now, so leave them alone
    if kind == "emptyDir":
        path.mkdir()
        owner.give(path, 0o777)  # like the kubelet, whatever the umask
    else:
        _fill(path, dict(_files(pod, volume, around)), owner)
    return path


def _host_path(source: Mapping[str, Any], owner: VolumeOwner) -> Path:
    if "\0" in source["path"]:
        raise ValueError("its hostPath contains a NUL character")
    path, kind = Path(source["path"]), source.get("type", "")
    if kind == "DirectoryOrCreate" and not path.is_dir():
        _create(["mkdir", "-p", "-m", "755", "--", str(path)], owner)
    elif kind == "FileOrCreate" and not path.exists():
        _create(["touch", "--", str(path)], owner)
    wrong = (kind.startswith("Directory") and not path.is_dir()) or (kind.startswith("File") and not path.is_file())
    if wrong:
        raise ContainerConfigError(f"hostPath type check failed: {path} is not a {kind.lower()}", FAILED_MOUNT)
    return path


def _create(command: list[str], owner: VolumeOwner) -> None:
    """With the container's rights: an agent that is root must not create what the container may not. Raises OSError,
    ValueError."""
    rights: Any = {} if owner.user is None else {"user": owner.user, "group": owner.group, "extra_groups": []}
    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CREATE_S, env=env, **rights)
    except subprocess.TimeoutExpired:
        raise ValueError(f"{command[-1]} could not be created within {CREATE_S:g} s") from None
    if done.returncode:
        raise ValueError(done.stderr.strip() or f"{command[0]} failed")


def _fill(path: Path, files: Mapping[str, tuple[bytes, int]], owner: VolumeOwner) -> None:
    """Replace the directory atomically."""
    made = path.with_name(f".{path.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o755)
    for name, (data, mode) in files.items():
        file = made / name
        if not file.resolve().is_relative_to(made.resolve()):
            raise ContainerConfigError(f"{name}: outside its volume", FAILED_MOUNT)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        owner.give(file, mode)
    # The innermost first: whoever owns a directory can replace what is in it by symbolic links.
    for directory in (*sorted((one for one in made.rglob("*") if one.is_dir()), reverse=True), made):
        owner.give(directory, 0o755)
    made.replace(path)


def _files(
    pod: Mapping[str, Any], source: Mapping[str, Any], around: EnvironmentSources, mode: int = FILE_MODE
) -> Iterator[tuple[str, tuple[bytes, int]]]:
    if found := source.get("projected"):
        for one in found.get("sources", ()):
            if not _is_known(one):
                raise ContainerConfigError(NOT_HERE.format(" ".join(one), "projected"), FAILED_MOUNT)
            yield from _files(pod, one, around, found.get("defaultMode", mode))
        return
    if found := source.get("serviceAccountToken"):
        token = around.tokens.get(_token_of(found))
        if token is None:
            raise ContainerConfigError("its ServiceAccount token is missing", FAILED_MOUNT)
        yield found["path"], (token.encode(), mode)
        return
    if found := source.get("downwardAPI"):
        for item in found.get("items", ()):
            text = _downward(pod, item, around)
            yield item["path"], (text.encode(), item.get("mode", found.get("defaultMode", mode)))
        return
    name_field = "secretName" if "secretName" in source.get("secret", {}) else "name"
    for reference in references_in(source, "configMap", "secret", name_field):
        found = source.get("configMap") or source.get("secret") or {}
        data = data_of(pod, reference, around.objects)
        default = found.get("defaultMode", mode)
        if "items" not in found:
            yield from ((key, (text, default)) for key, text in data.items())
            continue
        for item in found["items"]:
            if item["key"] in data:
                yield item["path"], (data[item["key"]], item.get("mode", default))
            elif not reference.optional:
                raise ContainerConfigError(
                    f"references non-existent {reference.kind.lower()} key: {item['key']}", FAILED_MOUNT
                )


def _is_known(source: Mapping[str, Any]) -> bool:
    return any(one in source for one in ("configMap", "secret", "downwardAPI", "serviceAccountToken"))


def _downward(pod: Mapping[str, Any], item: Mapping[str, Any], around: EnvironmentSources) -> str:
    if "resourceFieldRef" in item:
        return resource_of(pod, pod["spec"]["containers"][0], item["resourceFieldRef"], around.allocatable)
    return field_of(pod, item.get("fieldRef", {}).get("fieldPath", ""), around.host_ip)
