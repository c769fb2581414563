"""A disk that can lose power: it keeps what was synced, and of the rest whatever the dice leave, sector by sector.

Whoever writes to it afterwards does not notice, and it is for the test to know that nothing of it is kept.

A virtual file system for SQLite, in memory. It has no shared memory, so a connection to it must lock exclusively.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import apsw

SECTOR = 512


@dataclass
class Stored:
    """A file: what survives for sure, what was written since, and both together as a reader sees it."""

    kept: bytearray = field(default_factory=bytearray)
    since: list[tuple[int, bytes | None]] = field(default_factory=list)
    seen: bytearray = field(default_factory=bytearray)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class Disk(apsw.VFS):
    """`before` is called with the name of each operation that changes something; it may raise, or set `dead`."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.name = f"disk {id(self)}"
        self.files = {name: Stored(bytearray(data), [], bytearray(data)) for name, data in (files or {}).items()}
        self.before: Callable[[str], None] = lambda _operation: None
        self.dead = False
        super().__init__(self.name, "")

    def connect(self) -> apsw.Connection:
        connection = apsw.Connection("/store.db", vfs=self.name)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        return connection

    def begin(self, operation: str) -> None:
        if not self.dead:
            self.before(operation)

    def after_power_loss(self, dice: random.Random) -> dict[str, bytes]:
        """What is found on it later. Each unsynced sector is there or not; sometimes none is, sometimes all are."""
        chance = dice.choice([0.0, 0.3, 0.7, 1.0])
        found: dict[str, bytes] = {}
        for name, file in self.files.items():
            content = bytearray(file.kept)
            for offset, data in file.since:
                if data is None:
                    if dice.random() < chance:
                        _apply(content, offset, None)
                    continue
                for start in range(0, len(data), SECTOR):
                    if dice.random() < chance:
                        _apply(content, offset + start, data[start : start + SECTOR])
            found[name] = bytes(content)
        return found

    # -- what SQLite calls ---------------------------------------------------------------------------------------

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "OpenFile":  # type: ignore[override]  # noqa: N802
        flags[1] = flags[0]
        if name is None:
            return OpenFile(Disk(), Stored())
        path = name if isinstance(name, str) else name.filename()
        return OpenFile(self, self.files.setdefault(path, Stored()))

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        self.begin("delete")
        if self.dead:
            self.files[name].seen.clear()
        else:
            self.files.pop(name, None)

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: N802
        return name in self.files

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


class OpenFile:
    """One handle."""

    def __init__(self, disk: Disk, file: Stored) -> None:
        self._disk = disk
        self._file = file

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._file.seen[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.begin("write")
        self._change(offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.begin("truncate")
        self._change(size, None)

    def _change(self, offset: int, data: bytes | None) -> None:
        if not self._disk.dead:
            self._file.since.append((offset, data))
        _apply(self._file.seen, offset, data)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.begin("sync")
        if not self._disk.dead:
            self._file.kept = bytearray(self._file.seen)
            self._file.since.clear()

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._file.seen)

    def xSectorSize(self) -> int:  # noqa: N802
        return SECTOR

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        return False

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xClose(self) -> None:  # noqa: N802
        pass
