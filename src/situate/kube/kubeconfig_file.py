"""Kubeconfig files, decoded and merged as kubectl does: of each name, the first entry counts.

`kubeconfig` chooses the context and makes an Access of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from situate.wire.errors import InputError, from_decoder
from situate.wire.yaml import load_yaml

FILE_BYTES: Final = 16 << 20

Kind = TypeVar("Kind")


class Extension(msgspec.Struct, frozen=True):
    name: str = ""
    extension: Any = None


class KubeconfigCluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[Extension] = []


class EnvVar(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    command: str = ""
    args: list[str] = []
    env: list[EnvVar] = []
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(msgspec.Struct, frozen=True):
    name: str = ""


class User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    auth_provider: AuthProvider | None = None
    exec_: Exec | None = msgspec.field(default=None, name="exec")


class Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: KubeconfigCluster = KubeconfigCluster()


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User = User()


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context = Context()


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    kind: str = "Config"
    api_version: str = msgspec.field(default="v1", name="apiVersion")
    current_context: str = ""
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []


@dataclass(frozen=True, slots=True)
class Sourced(Generic[Kind]):
    """An entry, and the file that it is in."""

    file: str
    name: str
    value: Kind


@dataclass(slots=True)
class MergedKubeconfig:
    files: list[str]
    clusters: dict[str, Sourced[KubeconfigCluster]]
    users: dict[str, Sourced[User]]
    contexts: dict[str, Sourced[Context]]
    current: str = ""


@dataclass(frozen=True, slots=True)
class EntryLocation:
    """Where an entry is, for error messages and for paths relative to its file."""

    file: str
    subject: str
    entry: str

    def bad(self, field: str, problem: str) -> NoReturn:
        path = f"{self.entry}.{field}" if self.entry and field else self.entry or field
        raise InputError(problem, file=self.file, subject=self.subject, path=path)

    def resolved(self, path: str) -> str:
        return str(Path(self.file).parent / path)


def merged_files(paths: list[str]) -> MergedKubeconfig:
    merged = MergedKubeconfig(paths, {}, {}, {})
    for path in paths:
        read = _read(path)
        merged.current = merged.current or read.current_context
        for cluster in read.clusters:
            merged.clusters.setdefault(cluster.name, Sourced(path, cluster.name, cluster.cluster))
        for user in read.users:
            merged.users.setdefault(user.name, Sourced(path, user.name, user.user))
        for context in read.contexts:
            merged.contexts.setdefault(context.name, Sourced(path, context.name, context.context))
    return merged


def _read(path: str) -> _File:
    try:
        with Path(path).open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"the kubeconfig cannot be read: {error.strerror}", file=path) from None
    if len(data) > FILE_BYTES:
        raise InputError(f"the kubeconfig is larger than {FILE_BYTES} bytes", file=path)
    documents = [one for one in load_yaml(data, path) if one is not None]
    if not documents:
        return _File()
    if len(documents) > 1:
        raise InputError("not a kubeconfig: holds several YAML documents", file=path)
    plain = _without_nulls(documents[0])
    try:
        read = msgspec.convert(plain, _File)
    except msgspec.ValidationError as error:
        field, what = from_decoder(str(error), plain)
        raise InputError(f"not a kubeconfig: {what}", file=path, path=field) from None
    if read.kind != "Config" or read.api_version != "v1":
        raise InputError(f'not a kubeconfig: it is a "{read.kind}" of "{read.api_version}"', file=path)
    return read


def _without_nulls(value: Any) -> Any:
    """A null field counts as absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value if one is not None] if isinstance(value, list) else value
