"""The text of an expression, positions in it, and issues printed with the line they are about."""

from bisect import bisect_right
from dataclasses import dataclass, field

MAX_ISSUES = 100
MAX_SNIPPET_BYTES = 16_384
DESCRIPTION = "<input>"
NO_LOCATION = (-1, -1)


class SourceText:
    """An expression's text; positions are code points, lines count from 1, columns from 0."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends = [index + 1 for index, character in enumerate(text) if character == "\n"]

    def location(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._ends, offset)
        return line + 1, offset - (self._ends[line - 1] if line else 0)

    def line(self, number: int) -> str | None:
        if not self.text or number < 1 or number > len(self._ends) + 1:
            return None
        return self.text.split("\n")[number - 1]


@dataclass(slots=True)
class Issues:
    """What is wrong with an expression, in the order found; printed in the order of the text."""

    source: SourceText
    found: list[tuple[tuple[int, int], str]] = field(default_factory=list)
    count: int = 0

    def report(self, location: tuple[int, int], message: str) -> None:
        self.count += 1
        if self.count <= MAX_ISSUES:
            self.found.append((location, message))

    def __str__(self) -> str:
        shown = [self._show(location, message) for location, message in sorted(self.found, key=lambda issue: issue[0])]
        if self.count > MAX_ISSUES:
            shown.append(f"{self.count - MAX_ISSUES} more errors were truncated")
        return "\n".join(shown)

    def _show(self, location: tuple[int, int], message: str) -> str:
        line, column = location
        shown = f"ERROR: {DESCRIPTION}:{line}:{column + 1}: {message}"
        snippet = self.source.line(line)
        if snippet is None or len(snippet.encode("utf-8", "surrogatepass")) > MAX_SNIPPET_BYTES:
            return shown
        snippet = snippet.replace("\t", " ")
        before = "".join("." if character < "\x80" else "\uff0e" for character in snippet[: max(column, 0)])
        wide = 0 <= column < len(snippet) and snippet[column] >= "\x80"
        return f"{shown}\n | {snippet}\n | {before}{'＾' if wide else '^'}"
