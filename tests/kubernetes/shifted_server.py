"""`situate` with a wall clock that can be shifted while it runs: `python shifted_server.py FILE server ...`.

SIGUSR2 has it read the shift, in seconds, from FILE. Only the wall clock is shifted: nobody can set the steady one.
"""

import signal
import sys
import time
from pathlib import Path
from types import FrameType

SECOND_NS = 1_000_000_000


def main() -> None:
    where = Path(sys.argv.pop(1))
    shift_s = 0
    wall_ns = time.time_ns

    def read(_signal: int, _frame: FrameType | None) -> None:
        nonlocal shift_s
        shift_s = int(where.read_text() or 0)

    signal.signal(signal.SIGUSR2, read)
    # Before anything of situate is imported: it binds these functions.
    time.time_ns = lambda: wall_ns() + shift_s * SECOND_NS
    time.time = lambda: time.time_ns() / SECOND_NS
    from situate.cli import main as situate

    situate(prog_name="situate")


main()
