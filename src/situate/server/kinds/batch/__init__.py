"""The kinds of batch/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.batch import cronjob, job
from situate.server.kinds.kind import Kind

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    cronjob.KIND,
    job.KIND,
)
