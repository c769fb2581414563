"""The kinds of batch/v1: their strategies, one file a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.server.kinds.batch import cronjob, job
from situate.server.kinds.strategy import Strategy

__all__ = ["STRATEGIES"]

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "batch/CronJob": cronjob.STRATEGY,
    "batch/Job": job.STRATEGY,
}
