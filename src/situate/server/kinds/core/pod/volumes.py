"""Validation of volumes and of their mounts in containers.

Of in-tree drivers that Kubernetes has removed, only the number of sources is checked.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from situate.core.model.field_errors import quoted
from situate.server.kinds.core.persistentvolumeclaim import claim_template
from situate.server.kinds.core.pod.environment import VOLUME_FIELDS, field_ref, resource_ref
from situate.server.kinds.core.pod.paths import check_no_backsteps, descending, not_reserved
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.quantities import nanos

_HOST_PATH: Final = FieldChecks("core.v1.HostPathVolumeSource")
_IMAGE: Final = FieldChecks("core.v1.ImageVolumeSource")
_MOUNT: Final = FieldChecks("core.v1.VolumeMount")
Source: TypeAlias = Mapping[str, Any]
Volumes: TypeAlias = Mapping[str, Source]

FILE_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
ONE_KIND: Final = "may not specify more than 1 volume type"
_MIN_TOKEN_S, _MAX_TOKEN_S = 600, 1 << 32
_MAX_DRIVER: Final = 63


def volumes(found: Sequence[Source], pod_name: str, is_pod: bool, path: str, causes: Causes) -> Volumes:
    """Returns the valid volumes by name, for mounts to refer to."""
    right: dict[str, Source] = {}
    made = {f"{pod_name}-{one.get('name', '')}" for one in found if "ephemeral" in one} if pod_name else ()
    for index, volume in enumerate(found):
        at, before, name = f"{path}[{index}]", len(causes), volume.get("name", "")
        _volume(volume, at, causes)
        if is_pod and "image" in volume and not volume["image"].get("reference"):
            causes.required(f"{at}.image.reference")
        if pod_name and name and "ephemeral" in volume:
            for problem in subdomain(f"{pod_name}-{name}"):
                causes.invalid(f"{at}.name", name, f"PVC name {quoted(f'{pod_name}-{name}')}: {problem}")
        causes.require_valid(dns_label, name, f"{at}.name")
        if name in right:
            causes.duplicate(f"{at}.name", name)
        if len(causes) == before:
            right[name] = volume
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim is not None and claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            causes.invalid(f"{at}.persistentVolumeClaim.claimName", claim, detail)
    return right


def _volume(volume: Source, path: str, causes: Causes) -> None:
    count = 0
    for key, check_source in _SOURCES.items():
        if key not in volume:
            continue
        if count:
            causes.forbidden(f"{path}.{key}", ONE_KIND)
            continue
        count += 1
        if check_source is not None:
            check_source(volume[key], f"{path}.{key}", causes)
    causes.require(count, path, "must specify a volume type")


def _empty_dir(source: Source, path: str, causes: Causes) -> None:
    if "sizeLimit" in source and nanos(source["sizeLimit"]) < 0:
        causes.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def host_path(source: Source, path: str, causes: Causes) -> None:
    if not source.get("path"):
        causes.required(f"{path}.path")
        return
    check_no_backsteps(source["path"], f"{path}.path", causes)
    _HOST_PATH.check(source, path, causes, "type")


def nfs(source: Source, path: str, causes: Causes) -> None:
    where = source.get("path", "")
    causes.require(source.get("server"), f"{path}.server")
    causes.require(where, f"{path}.path")
    if not where.startswith("/"):
        causes.invalid(f"{path}.path", where, "must be an absolute path")


def _git_repo(source: Source, path: str, causes: Causes) -> None:
    causes.require(source.get("repository"), f"{path}.repository")
    descending(source.get("directory", ""), f"{path}.directory", causes)


def _claim(source: Source, path: str, causes: Causes) -> None:
    causes.require(source.get("claimName"), f"{path}.claimName")


def _mode(mode: int | None, path: str, causes: Causes) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        causes.invalid(path, mode, FILE_MODE)


def _files(name_key: str) -> Callable[[Source, str, Causes], None]:
    def check_files(source: Source, path: str, causes: Causes) -> None:
        causes.require(source.get(name_key), f"{path}.{name_key}")
        _mode(source.get("defaultMode"), f"{path}.defaultMode", causes)
        for index, item in enumerate(source.get("items", ())):
            _item(item, f"{path}.items[{index}]", causes)

    return check_files


def _item(item: Source, path: str, causes: Causes) -> None:
    causes.require(item.get("key"), f"{path}.key")
    causes.require(item.get("path"), f"{path}.path")
    not_reserved(item.get("path", ""), f"{path}.path", causes)
    _mode(item.get("mode"), f"{path}.mode", causes)


def _downward(source: Source, path: str, causes: Causes) -> None:
    _mode(source.get("defaultMode"), f"{path}.defaultMode", causes)
    for item in source.get("items", ()):
        _downward_item(item, path, causes)


def _downward_item(item: Source, path: str, causes: Causes) -> None:
    causes.require(item.get("path"), f"{path}.path")
    not_reserved(item.get("path", ""), f"{path}.path", causes)
    if "fieldRef" in item:
        field_ref(item["fieldRef"], VOLUME_FIELDS, f"{path}.fieldRef", causes)
        if "resourceFieldRef" in item:
            causes.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif "resourceFieldRef" in item:
        resource_ref(item["resourceFieldRef"], f"{path}.resourceFieldRef", causes, volume=True)
    else:
        causes.required(path, "one of fieldRef and resourceFieldRef is required")
    _mode(item.get("mode"), f"{path}.mode", causes)


def _projected(source: Source, path: str, causes: Causes) -> None:
    _mode(source.get("defaultMode"), f"{path}.defaultMode", causes)
    seen: set[str] = set()
    for index, one in enumerate(source.get("sources", ())):
        at = f"{path}.sources[{index}]"
        for key in ("secret", "configMap"):
            if key in one:
                _projected_files(one[key], seen, path, f"{at}.{key}", causes)
        for item in one.get("downwardAPI", {}).get("items", ()):
            _downward_item(item, f"{at}.downwardAPI", causes)
            _new_path(item.get("path", ""), item.get("path", ""), seen, path, causes)
        if "serviceAccountToken" in one:
            _token(one["serviceAccountToken"], path, f"{at}.serviceAccountToken", causes)
        if len(one) > 1:
            causes.forbidden(at, "may not specify more than 1 volume type per source")


def _projected_files(source: Source, seen: set[str], whole: str, path: str, causes: Causes) -> None:
    causes.require(source.get("name"), f"{path}.name")
    for index, item in enumerate(source.get("items", ())):
        _item(item, f"{path}.items[{index}]", causes)
        _new_path(item.get("path", ""), source.get("name", ""), seen, whole, causes)


def _new_path(found: str, shown: str, seen: set[str], path: str, causes: Causes) -> None:
    if found and found in seen:
        causes.invalid(path, shown, "conflicting duplicate paths")
    seen.add(found)


def _token(source: Source, whole: str, path: str, causes: Causes) -> None:
    seconds, where = source.get("expirationSeconds", 0), f"{path}.expirationSeconds"
    if seconds < _MIN_TOKEN_S:
        causes.invalid(where, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MAX_TOKEN_S:
        causes.invalid(where, seconds, "may not specify a duration larger than 2^32 seconds")
    if not source.get("path"):
        causes.required(f"{whole}.path")
    else:
        not_reserved(source["path"], f"{whole}.path", causes)


def csi_driver(name: str, path: str, causes: Causes) -> None:
    if not name:
        causes.required(path)
        return
    if len(name) > _MAX_DRIVER:
        causes.too_long(path, _MAX_DRIVER)
    for problem in subdomain(name.lower()):
        causes.invalid(path, name, problem)


def _csi(source: Source, path: str, causes: Causes) -> None:
    csi_driver(source.get("driver", ""), f"{path}.driver", causes)
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        if not secret.get("name"):
            causes.required(f"{path}.nodePublishSecretRef.name")
        else:
            causes.check(subdomain, secret["name"], f"{path}.name")


def _ephemeral(source: Source, path: str, causes: Causes) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        causes.required(f"{path}.volumeClaimTemplate")
    else:
        claim_template(template, f"{path}.volumeClaimTemplate", causes)


def _image(source: Source, path: str, causes: Causes) -> None:
    _IMAGE.check(source, path, causes, "pullPolicy")


_SOURCES: Final[Mapping[str, Callable[[Source, str, Causes], None] | None]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": None,
    "awsElasticBlockStore": None,
    "secret": _files("secretName"),
    "nfs": nfs,
    "iscsi": None,
    "glusterfs": None,
    "flocker": None,
    "persistentVolumeClaim": _claim,
    "rbd": None,
    "cinder": None,
    "cephfs": None,
    "quobyte": None,
    "downwardAPI": _downward,
    "fc": None,
    "flexVolume": None,
    "configMap": _files("name"),
    "azureFile": None,
    "vsphereVolume": None,
    "photonPersistentDisk": None,
    "portworxVolume": None,
    "azureDisk": None,
    "storageos": None,
    "scaleIO": None,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""In the order in which kube-apiserver checks them."""


# ── in containers ───────────────────────────────────────────────────────────────────────────────────────────────────


def mounts(container: Source, known: Volumes, path: str, causes: Causes) -> None:
    at_devices = {one.get("name", ""): one.get("devicePath", "") for one in container.get("volumeDevices", ())}
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        name, where = mount.get("name", ""), mount.get("mountPath", "")
        causes.require(name, f"{path}[{index}].name")
        if name not in known:
            causes.not_found(f"{path}[{index}].name", name)
        causes.require(where, f"{path}[{index}].mountPath")
        if where in seen:
            causes.invalid(f"{path}[{index}].mountPath", where, "must be unique")
        seen.add(where)
        if name in at_devices:
            causes.invalid(f"{path}[{index}].name", name, "must not already exist in volumeDevices")
        if where in at_devices.values():
            causes.invalid(f"{path}[{index}].mountPath", where, "must not already exist as a path in volumeDevices")
        if len(mount) > 2:
            _mount_options(mount, container, index, path, causes)


def _mount_options(mount: Source, container: Source, index: int, path: str, causes: Causes) -> None:
    if inside := mount.get("subPath"):
        descending(inside, f"{path}.subPath", causes)
    if expression := mount.get("subPathExpr"):
        if inside:
            causes.invalid(f"{path}[{index}].subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        descending(expression, f"{path}.subPathExpr", causes)
    propagation = mount.get("mountPropagation")
    _MOUNT.check(mount, path, causes, "mountPropagation")
    if propagation == "Bidirectional" and not container.get("securityContext", {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        causes.forbidden(f"{path}.mountPropagation", detail)
    _recursive_read_only(mount, propagation, f"{path}.recursiveReadOnly", causes)


def _recursive_read_only(mount: Source, propagation: str | None, path: str, causes: Causes) -> None:
    how = mount.get("recursiveReadOnly")
    if how is None or how == "Disabled":
        return
    if how not in ("Enabled", "IfPossible"):
        causes.not_supported(path, how, ("Disabled", "Enabled", "IfPossible"))
        return
    if not mount.get("readOnly"):
        causes.forbidden(path, "may only be specified when readOnly is true")
    if propagation not in (None, "None"):
        causes.forbidden(path, "may only be specified when mountPropagation is None or not specified")


def devices(container: Source, known: Volumes, path: str, causes: Causes) -> None:
    mounted = {one.get("name", ""): one.get("mountPath", "") for one in container.get("volumeMounts", ())}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices", ())):
        at, name, where = f"{path}[{index}]", device.get("name", ""), device.get("devicePath", "")
        causes.require(name, f"{at}.name")
        if name in names:
            causes.invalid(f"{at}.name", name, "must be unique")
        if name not in known:
            causes.not_found(f"{at}.name", name)
        elif "persistentVolumeClaim" not in known[name] and "ephemeral" not in known[name]:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            causes.invalid(f"{at}.name", name, detail)
        causes.require(where, f"{at}.devicePath")
        if where in paths:
            causes.invalid(f"{at}.devicePath", where, "must be unique")
        if ".." in where.split("/"):
            causes.invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')")
        else:
            paths.add(where)
        if name in mounted:
            causes.invalid(f"{at}.name", name, "must not already exist in volumeMounts")
        if where in mounted.values():
            causes.invalid(f"{at}.devicePath", where, "must not already exist as a path in volumeMounts")
        names.add(name)
