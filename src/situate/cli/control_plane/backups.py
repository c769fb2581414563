"""Backup and restore of a control plane's directory: its store, its keys and its users.

A restore stages everything in a folder of its own, and then commits by writing a journal. From then on,
the next process that opens the directory finishes the restore. Before that, the directory is unchanged.
"""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from situate import __version__
from situate.cli.cluster.connection import KUBECONFIG
from situate.server.identity.file_names import AUTHORITY
from situate.server.identity.secret_files import write_private
from situate.server.identity.setup import USER_TOKENS
from situate.server.identity.users import ISSUED
from situate.store.backup import (
    OWNER_ONLY,
    BackupEnd,
    BackupEntry,
    BackupFile,
    BackupHeader,
    open_backup,
    verify_backup,
    write_backup,
)
from situate.store.durable import sync_folder
from situate.store.errors import BackupError, StoreError
from situate.store.format import FORMAT
from situate.store.sqlite.file import lock
from situate.store.sqlite.snapshot import make_store, snapshot_of

STORE_FILE: Final = "store.db"
BESIDE_STORE: Final = (f"{STORE_FILE}-wal", f"{STORE_FILE}-shm")
"""They belong to the store of this name, and would damage another."""
JOURNAL: Final = "restore.json"
STAGED: Final = ".restore-"
REPLACED: Final = "replaced-"
FILES: Final = (USER_TOKENS, ISSUED, KUBECONFIG)
AUTHORITY_FILE: Final = f"{AUTHORITY}/ca.crt"
REVISIONS_PER_S: Final = 10_000
"""More than a store writes in a second. A restore skips this many revisions for each second since the backup: a cluster
that was restored from the same backup before may have used them."""
FORCE: Final = "--force replaces it all the same, and keeps the old files beside it"
NEWER: Final = (
    "{directory} has the same cluster at revision {found}, and {file} is of revision {kept}: what was written since"
    " would be lost; " + FORCE
)
ANOTHER: Final = "{directory} has another cluster than {file}; " + FORCE
UNREADABLE: Final = "the store in {directory} cannot be read ({why}); " + FORCE


def back_up_directory(directory: Path, to: Path) -> tuple[BackupHeader, BackupEnd]:
    """Back up a directory whose store is a file, whether its server runs or not."""
    finish_restore(directory)
    with snapshot_of(directory / STORE_FILE) as (marker, revision, entries):
        header = new_header(marker.format, marker.identity, revision)
        return header, write_backup(to, header, entries, files_of(directory))


def new_header(format_: int, identity: str, revision: int) -> BackupHeader:
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return BackupHeader(format=format_, release=__version__, identity=identity, revision=revision, created=created)


def files_of(directory: Path) -> Iterator[BackupFile]:
    """Keys, users and kubeconfig: without them, existing credentials would not work after a restore."""
    for name in (*sorted(directory.glob(f"{AUTHORITY}/*")), *(directory / one for one in FILES)):
        if name.is_file() and not name.is_symlink() and not name.name.startswith("."):
            mode = name.stat().st_mode & 0o777
            yield BackupFile(str(name.relative_to(directory)), mode, name.read_bytes())


# ── restore ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def restore_directory(directory: Path, source: Path, *, force: bool) -> tuple[BackupHeader, BackupEnd, int]:
    """Raises StoreError, and changes nothing, if the backup is damaged, a server runs here, or what is here is newer or
    another cluster's, unless `force` says to replace it. Returns the restored revision, too."""
    header, end = verify_backup(source)
    if header.format > FORMAT:
        raise BackupError(f"{source} was made by situate {header.release}, which is newer; use that release")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = directory / STORE_FILE
    held = lock(store)  # a server that starts now is refused
    staged, there = directory / f"{STAGED}{secrets.token_hex(4)}", True
    try:
        _finish(directory)
        for left in directory.glob(f"{STAGED}*"):  # left by a restore that was killed before it was committed
            shutil.rmtree(left, ignore_errors=True)
        there = store.stat().st_size > 0
        newest = _check(directory, source, header, there=there, force=force)
        staged.mkdir(mode=0o700)
        with open_backup(source) as (_, parts):
            files: list[BackupFile] = []

            def entries() -> Iterator[BackupEntry]:
                for part in parts:
                    if isinstance(part, BackupEntry):
                        yield part
                    elif isinstance(part, BackupFile):
                        files.append(part)

            seen = max(newest, header.revision) + _age_s(header) * REVISIONS_PER_S
            revision = make_store(staged / STORE_FILE, header.identity, seen, entries())
        _stage_files(directory, staged, files)
        sync_folder(staged)
        _commit(directory, staged)
        _finish(directory)
    except BaseException:
        if not (directory / JOURNAL).exists():
            shutil.rmtree(staged, ignore_errors=True)
            if not there:
                store.unlink(missing_ok=True)  # the lock made it
        raise
    finally:
        held.release()
    return header, end, revision


def _check(directory: Path, source: Path, header: BackupHeader, *, there: bool, force: bool) -> int:
    """The newest revision of the directory's store; 0 if unknown. BackupError if it must not be replaced."""
    if not there:
        return 0
    try:
        with snapshot_of(directory / STORE_FILE) as (marker, revision, _):
            if not force and header.identity != marker.identity:
                raise BackupError(ANOTHER.format(directory=directory, file=source))
            if not force and revision > header.revision:
                raise BackupError(NEWER.format(directory=directory, file=source, found=revision, kept=header.revision))
            return revision
    except BackupError:
        raise
    except StoreError as error:
        if not force:
            raise BackupError(UNREADABLE.format(directory=directory, why=error)) from None
        return 0


def _age_s(header: BackupHeader) -> int:
    try:
        return max(0, int((datetime.now(UTC) - datetime.fromisoformat(header.created)).total_seconds()))
    except (TypeError, ValueError):
        return 0  # the backup does not have the time


def _stage_files(directory: Path, staged: Path, files: list[BackupFile]) -> None:
    """All of them, unless the directory has the same authority: then its files are newer, and stay."""
    ours = {file.path: file for file in files}
    authority = ours.get(AUTHORITY_FILE)
    with contextlib.suppress(FileNotFoundError):
        if authority is not None and (directory / AUTHORITY_FILE).read_bytes() == authority.content:
            return
    for file in files:
        path = Path(file.path)
        if path.is_absolute() or ".." in path.parts or (path.parts[0] != AUTHORITY and file.path not in FILES):
            raise BackupError(f"the backup has a file that does not belong there: {file.path!r}")
        (staged / path).parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(staged / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        with os.fdopen(handle, "wb") as target:
            target.write(file.content)
            os.fchmod(handle, file.mode)
            os.fsync(handle)
    if authority is not None:
        sync_folder(staged / AUTHORITY)


def _commit(directory: Path, staged: Path) -> None:
    """Commit the restore: once the journal exists, the restore will be finished."""
    journal = {
        "staged": staged.name,
        "replaced": f"{REPLACED}{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{staged.name.removeprefix(STAGED)}",
        "names": sorted(one.name for one in staged.iterdir()),
    }
    write_private(directory / JOURNAL, json.dumps(journal).encode())


def finish_restore(directory: Path) -> None:
    """Finish a restore that was committed. InUseError if another process is about to."""
    if (directory / JOURNAL).exists():
        held = lock(directory / STORE_FILE)
        try:
            _finish(directory)
        finally:
            held.release()


def _finish(directory: Path) -> None:
    """Each step may have been done already. Hold the lock: two at once would move the restored store away."""
    try:
        journal = json.loads((directory / JOURNAL).read_text())
    except FileNotFoundError:
        return
    staged, replaced = directory / journal["staged"], directory / journal["replaced"]
    for name in journal["names"]:
        if not (staged / name).exists():
            continue  # it has been moved
        for old in (*(BESIDE_STORE if name == STORE_FILE else ()), name):
            if (directory / old).is_dir() or ((directory / old).exists() and (directory / old).stat().st_size):
                replaced.mkdir(mode=0o700, exist_ok=True)
                (directory / old).rename(replaced / old)
        (staged / name).rename(directory / name)
    sync_folder(directory)
    (directory / JOURNAL).unlink(missing_ok=True)
    sync_folder(directory)
    shutil.rmtree(staged, ignore_errors=True)
