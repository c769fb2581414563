"""Container images on nodes: by name, the rows that have it and its size there."""

from __future__ import annotations

from situate.core.model.node import Node


class ImageTable:
    """Image name -> node row -> size in bytes. A node that lists a name twice has it once, with the first size."""

    __slots__ = ("sizes",)

    def __init__(self) -> None:
        self.sizes: dict[str, dict[int, int]] = {}

    def add(self, row: int, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                self.sizes.setdefault(name, {}).setdefault(row, image.size_bytes)

    def remove(self, row: int, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                by_row = self.sizes.get(name)
                if by_row is not None and by_row.pop(row, None) is not None and not by_row:
                    del self.sizes[name]

    def holders(self, name: str) -> dict[int, int]:
        return self.sizes.get(name, {})
