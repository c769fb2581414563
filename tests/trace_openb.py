"""A small trace, for tests."""

from situate.sim.openb.trace_files import TraceNode, TracePod, TraceRequest

NODES = (
    TraceNode("n0", 96_000, 393_216, 8, "G2"),
    TraceNode("n1", 104_000, 524_288, 2, "T4"),
    TraceNode("n2", 16_000, 122_880, 2, "P100"),
    TraceNode("n3", 16_000, 122_880, 2, "P100"),
)
ASKS = (
    *[TraceRequest(3_000, 1_024, 1, 810)] * 3,
    *[TraceRequest(11_000, 1_024, 1, 1_000)] * 4,
    *[TraceRequest(8_000, 1_024, 1, 470)] * 3,
    TraceRequest(4_000, 2_048, 1, 160, ("P100",)),
    TraceRequest(24_000, 1_024, 2, 1_000, ("G2", "T4")),
    TraceRequest(12_000, 1_024, 0, 0),
)
PODS = tuple(TracePod(f"p{at}", ask) for at, ask in enumerate(ASKS))
CAPACITY = 14_000
