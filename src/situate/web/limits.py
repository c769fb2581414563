"""Every limit of the page's server. docs/reference/limits.md lists those that a user may meet."""

from typing import Final

GRANT_S: Final = 15 * 60.0
"""How long a login link is valid. It works once."""
MAX_GRANTS: Final = 100
"""Login links that are made and not used."""
LOGIN_S: Final = 8 * 3_600.0
"""How long a login lasts, whatever its user does."""
MAX_LOGINS: Final = 200
"""Logins at the same time; a new one ends the oldest."""
LOGIN_TRIES: Final = 30
LOGIN_TRIES_S: Final = 60.0
"""How many attempts to log in may fail in so many seconds, of all clients together."""

MAX_MODELS: Final = 8
"""Different users whose view of the cluster is kept at the same time; each takes the memory of a scheduler."""
LINGER_S: Final = 60.0
"""How long a model stays when its last reader has left: until the reader reloads the page, say."""
START_S: Final = 20.0
"""How long a reader waits for the first list of nodes and pods."""
RECHECK_S: Final = 30.0
"""How often we ask whether the user may still read what the model shows."""
USAGE_S: Final = 15.0
"""How often the metrics API is asked what nodes use: as often as metrics-server measures."""
USAGE_ABSENT_S: Final = 120.0
"""The same, of a cluster that has no metrics API, or that does not let this user read it."""
FLUSH_S: Final = 0.15
"""The shortest time between two updates; what changes meanwhile is sent together."""
NODES_FIRST_S: Final = 5.0
"""How long the lists of other kinds wait for the list of nodes."""
LISTING_FLUSH_S: Final = 0.5
"""The shortest time between two updates while pods are listed: each of them changes most nodes."""
FIRST_FLUSH_S: Final = 0.01
"""How long the first change after a quiet time waits for those that come with it."""

MAX_STREAMS: Final = 100
MAX_STREAMS_PER_LOGIN: Final = 12
"""Open pages."""
KEEP_ALIVE_S: Final = 20.0
"""How often a silent stream sends a comment, so that neither side takes the other for gone."""
WRITE_S: Final = 30.0
"""How long a reader may take nothing before its stream is closed. A slow one gets fewer, larger updates."""

MAX_WAITING: Final = 400
"""Rows of what waits; pods of one workload with one reason share a row."""
WAITING_S: Final = 1.0
"""How often the rows are computed again at most."""
MAX_PLACEMENTS: Final = 500
"""Placements that are kept, the newest."""
MAX_PREEMPTIONS: Final = 500
"""Preempted pods that are kept, the newest."""
MAX_REMEMBERED: Final = 2_000
"""Victims, and preemptors, of which is remembered what their Events do not say."""
MAX_GROUPS: Final = 400
"""Gangs that are shown."""
MAX_PODS_OF_NODE: Final = 500

MAX_BODY_BYTES: Final = 256 << 10
"""Of a request: a manifest, at most."""
MAX_QUESTIONS: Final = 2
"""Questions that are answered at the same time, of all users; others wait."""
QUESTION_S: Final = 60.0
"""How long a question may wait and take."""
MAX_SIMULATED: Final = 10_000
"""Pods that may come in a simulation of the page."""
MAX_REPORTS_PER_LOGIN: Final = 2
"""Reports of simulations that are kept, the newest."""
MAX_REPORT_BYTES: Final = 4 << 20
