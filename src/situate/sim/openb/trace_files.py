"""Reads the files of the openb trace (alibaba/clusterdata): CSV with a header, one node or pod per line.

Opens no file. Errors are InputErrors with the line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Final

from situate.core.model.gpu import DEVICE_MILLI, MOST_DEVICES
from situate.wire.errors import InputError

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
MODELS: Final = "gpu_spec"
"""An optional column: the GPU models that a pod accepts."""
BETWEEN_MODELS: Final = "|"
MOST: Final = 1 << 40
"""An upper bound for every number."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    name: str
    milli_cpu: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True, order=True)
class TraceRequest:
    """The request of a pod. Pods with equal requests are of one kind."""

    milli_cpu: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    """Thousandths of each GPU."""
    models: tuple[str, ...] = ()
    """The accepted models; none: any."""

    @property
    def demand(self) -> int:
        """Thousandths of a GPU in total."""
        return self.gpus * self.gpu_milli


@dataclass(frozen=True, slots=True)
class TracePod:
    name: str
    ask: TraceRequest


def read_nodes(data: bytes, file: str) -> tuple[TraceNode, ...]:
    """The nodes, in the file's order. Raises InputError."""
    found: dict[str, TraceNode] = {}
    for where, row in _rows(data, file, NODE_COLUMNS):
        name = _name(row["sn"], "sn", where, found)
        gpus = _number(row, "gpu", where)
        if gpus > MOST_DEVICES:
            raise InputError(f"{gpus} is more than {MOST_DEVICES}", file=where, path="gpu")
        found[name] = TraceNode(
            name, _number(row, "cpu_milli", where), _number(row, "memory_mib", where), gpus, row["model"]
        )
    if not any(node.gpus for node in found.values()):
        raise InputError("no node has a GPU", file=file)
    return tuple(found.values())


def read_pods(data: bytes, file: str) -> tuple[TracePod, ...]:
    """The pods, in the file's order. Raises InputError."""
    found: dict[str, TracePod] = {}
    for where, row in _rows(data, file, POD_COLUMNS):
        name = _name(row["name"], "name", where, found)
        found[name] = TracePod(name, _ask(row, where))
    if not any(pod.ask.demand for pod in found.values()):
        raise InputError("no pod asks for a GPU", file=file)
    return tuple(found.values())


def _ask(row: Mapping[str, str], where: str) -> TraceRequest:
    gpus, milli = _number(row, "num_gpu", where), _number(row, "gpu_milli", where)
    if gpus and not 1 <= milli <= DEVICE_MILLI:
        raise InputError(f"{milli} is not from 1 to {DEVICE_MILLI}", file=where, path="gpu_milli")
    if gpus > 1 and milli < DEVICE_MILLI:
        raise InputError(f"a share of each of {gpus} GPUs: several GPUs must be whole", file=where, path="gpu_milli")
    models = tuple(sorted(dict.fromkeys(model for model in row.get(MODELS, "").split(BETWEEN_MODELS) if model)))
    return TraceRequest(
        _number(row, "cpu_milli", where),
        _number(row, "memory_mib", where),
        gpus,
        milli if gpus else 0,
        models if gpus else (),
    )


def _rows(data: bytes, file: str, wanted: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each line as a dict, with its location."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("is not text in UTF-8", file=f"{file}:{line}") from None
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        names = next(reader, [])
        missing = [name for name in wanted if name not in names]
        if missing:
            raise InputError(f"the header has no column {missing[0]}", file=f"{file}:1")
        for fields in reader:
            where = f"{file}:{reader.line_num}"
            if not fields:
                continue
            if len(fields) != len(names):
                raise InputError(f"{len(fields)} columns, but the header has {len(names)}", file=where)
            yield where, dict(zip(names, fields, strict=True))
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", file=f"{file}:{reader.line_num}") from None


def _name(name: str, column: str, where: str, taken: Mapping[str, object]) -> str:
    if not name:
        raise InputError("is empty", file=where, path=column)
    if name in taken:
        raise InputError(f"{name} is a duplicate", file=where, path=column)
    return name


def _number(row: Mapping[str, str], column: str, where: str) -> int:
    text = row[column]
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(MOST)) or int(text) > MOST:
        raise InputError(f'"{text}" is not a whole number', file=where, path=column)
    return int(text)
