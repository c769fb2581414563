"""Validation of file paths in pods. A path inside a volume must not leave the volume."""

from typing import Final

from situate.server.kinds.field_errors import Causes

BACKSTEPS: Final = "must not contain '..'"


def check_no_backsteps(path_of_file: str, path: str, causes: Causes) -> None:
    if ".." in path_of_file and ".." in path_of_file.split("/"):
        causes.invalid(path, path_of_file, BACKSTEPS)


def descending(path_of_file: str, path: str, causes: Causes) -> None:
    if path_of_file.startswith("/"):
        causes.invalid(path, path_of_file, "must be a relative path")
    check_no_backsteps(path_of_file, path, causes)


def not_reserved(path_of_file: str, path: str, causes: Causes) -> None:
    """Names that begin with two dots are reserved for the kubelet."""
    descending(path_of_file, path, causes)
    if path_of_file.startswith("..") and not path_of_file.startswith("../"):
        causes.invalid(path, path_of_file, "must not start with '..'")
