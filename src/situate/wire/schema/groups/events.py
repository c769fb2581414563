"""Messages of events.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[events.v1]
kind Event: metadata 1 meta.v1.ObjectMeta!; eventTime 2 MicroTime!*; series 3 EventSeries?; reportingController 4
    string; reportingInstance 5 string~; action 6 string; reason 7 string; regarding 8 core.v1.ObjectReference! atomic;
    related 9 core.v1.ObjectReference? atomic; note 10 string; type 11 string; deprecatedSource 12 core.v1.EventSource!;
    deprecatedFirstTimestamp 13 Time!; deprecatedLastTimestamp 14 Time!; deprecatedCount 15 int32
EventSeries: count 1 int32!; lastObservedTime 2 MicroTime!*
"""
