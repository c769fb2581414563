"""The same requests by the same users, performed on kube-apiserver and on situate: the same code and the same message.

`make test` performs a sample, `make authorization-matrix` every cell. docs/reference/api.md shows the differences.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kubernetes.authorization_cells import Cell, cells
from kubernetes.authorization_kinds import KINDS
from kubernetes.authorization_performing import Outcome, Performer
from kubernetes.authorization_users import USERS
from kubernetes.cluster import FEATURE_GATES, Cluster
from kubernetes.own_cluster import OwnCluster

SAMPLE = 3_200
SEED = 1
FLAGS = ("--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction")
# Whether it tells of `impersonate` or of one of its new verbs depends on what it was asked before.
GATES = FEATURE_GATES | {"ConstrainedImpersonation": False}
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


class Difference(NamedTuple):
    """A known one. `reason` is a line of docs/reference/api.md."""

    applies: Callable[[Cell, Outcome, Outcome], bool]
    """To a cell with kube-apiserver's outcome and ours."""
    reason: str


DIFFERENCES = (
    Difference(
        lambda cell, theirs, mine: (
            cell.kind.plural == "services"
            and cell.operation in ("put status of absent", "apply patch of status of absent")
            and theirs.code in (201, 403)
            and mine.code == 404
        ),
        "A PUT or an apply to the `status` of a Service that does not exist is a 404, as for every other kind; "
        "kube-apiserver creates a Service without a cluster IP.",
    ),
    Difference(
        lambda cell, theirs, mine: (
            not any(header == "Impersonate-User" for header, _ in cell.headers)
            and cell.headers != ()
            and (theirs.code, theirs.reason) == (mine.code, mine.reason) == (400, "BadRequest")
        ),
        "The 400 for `Impersonate-Group`, `-Uid` or `-Extra-` without `Impersonate-User` does not quote the headers.",
    ),
)


def test_everybody_gets_the_same_answers_as_from_kube_apiserver(control_plane: Cluster, tmp_path: Path) -> None:
    """`control_plane` only says that there are binaries: nodes need another authorizer than its own."""
    every = cells()
    asked = every if os.environ.get("MATRIX") == "all" else random.Random(SEED).sample(every, SAMPLE)
    with Cluster(tmp_path / "kube", apiserver_flags=FLAGS, feature_gates=GATES) as kube:
        theirs = Performer(kube).perform(asked)
    with OwnCluster(tmp_path / "own") as own:
        mine = Performer(own).perform(asked)
    print(f"{len(asked)} cells: {sorted(Counter(outcome.code for outcome in theirs).items())}")
    different = [
        f"{cell.id} ({cell.method} {cell.path})\n  kube-apiserver: {wanted}\n  situate:        {found}"
        for cell, wanted, found in zip(asked, theirs, mine, strict=True)
        if wanted != found and not any(each.applies(cell, wanted, found) for each in DIFFERENCES)
    ]
    assert not different, f"{len(different)} of {len(asked)}:\n" + "\n".join(different[:20])
    assert {200, 201, 403, 404, 409} <= {outcome.code for outcome in theirs}


def test_the_sample_has_every_user_kind_and_method() -> None:
    every, asked = cells(), random.Random(SEED).sample(cells(), SAMPLE)
    assert len({cell.name for cell in every if cell.name}) == sum(1 for cell in every if cell.name)
    assert {cell.user.id for cell in asked} >= {user.id for user in USERS}
    assert {cell.kind.id for cell in asked} >= {kind.id for kind in KINDS}
    assert {(cell.method, cell.content_type) for cell in asked} == {(cell.method, cell.content_type) for cell in every}


def test_the_page_has_the_reason_of_every_difference() -> None:
    page = PAGE.read_text()
    assert [each.reason for each in DIFFERENCES if each.reason not in page] == []
