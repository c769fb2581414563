"""Mutants that change no behaviour that a test could notice, each with the reason."""

from mutants.mutate import Mutant

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "core/engine/gang_scheduling.py",
        "yield Release(reservation, problem)",
        "continue",
        "pass",
    ): "the cycle carries out a Release before it asks for the next action, and then there is no such pod to evict",
    (
        "core/engine/engine.py",
        "if entry is None:",
        "self._arrivals += 1",
        "self._arrivals += 2",
    ): "the number of an arrival is only compared with others",
    (
        "core/engine/engine.py",
        "self._batch = batch",
        "self._arrivals = 0",
        "self._arrivals = 1",
    ): "the number of an arrival is only compared with others",
    (
        "core/engine/extenders.py",
        "rank[row] += score",
        "rank[~left] = -1",
        "rank[~left] = -2",
    ): "first_best takes no negative rank",
    (
        "core/engine/in_flight.py",
        "self._by_node: dict[str, dict[str, Nomination]] = {}",
        "self._version = 0",
        "self._version = 1",
    ): "a version is only compared with others: whether a timer is that of the latest nomination",
    (
        "core/engine/in_flight.py",
        "self.remove(entry.key)",
        "self._version += 1",
        "self._version += 2",
    ): "a version is only compared with others: whether a timer is that of the latest nomination",
    (
        "core/engine/compare.py",
        "feasible[held] = False",
        "rank = np.where(feasible, total, -1)",
        "rank = np.where(feasible, total, -2)",
    ): "totals are never negative, and first_best takes no negative one; the rank of such a node is not reported",
    (
        "core/engine/consultations.py",
        'if outcome.kind != "asked":',
        "self.forget(outcome.consultation.entry.key)",
        "pass",
    ): "it only frees memory earlier: the pod's next consultation, or its end, forgets this one",
    (
        "server/identity/pki/revocation.py",
        "except StatusError as error:",
        "if error.code != HTTPStatus.CONFLICT:",
        "if not (error.code != HTTPStatus.CONFLICT):",
    ): "the branch only writes a log line",
    (
        "server/identity/pki/revocation.py",
        "except StatusError as error:",
        "if error.code != HTTPStatus.CONFLICT:",
        "if (error.code == HTTPStatus.CONFLICT):",
    ): "the branch only writes a log line",
    (
        "server/identity/audit/log.py",
        "self._thread: threading.Thread | None = None",
        "self._size = 0",
        "pass",
    ): "_open sets the size before anything reads it",
    (
        "server/identity/audit/log.py",
        "self._thread: threading.Thread | None = None",
        "self._size = 0",
        "self._size = 1",
    ): "_open sets the size before anything reads it",
    (
        "core/engine/cycle.py",
        "case _:",
        "assert_never(answer)",
        "pass",
    ): "mypy proves that nothing gets there",
    (
        "core/engine/cycle.py",
        "case _:",
        "assert_never(action)",
        "pass",
    ): "mypy proves that nothing gets there",
    (
        "core/engine/cycle.py",
        "node = None if row is None else cluster.nodes.objects[row]",
        "if row is not None and node is not None:",
        "if (row is not None or node is not None):",
    ): "a row that is found by a node's name has a node; the second half is for mypy",
    (
        "core/engine/gang_attempt.py",
        "self._gang.refused_as = None",
        "planned = list(zip(self._entries, found.rows, found.annotations, strict=True))",
        "planned = list(zip(self._entries, found.rows, found.annotations, strict=False))",
    ): "a plan has a row and annotations for every member",
    (
        "core/engine/gang_attempt.py",
        "by: dict[int, QueuedPod] = {}",
        "for entry, row in zip(self._entries, found.rows, strict=True):",
        "for entry, row in zip(self._entries, found.rows, strict=False):",
    ): "a plan has a row for every member",
}
"""By path, the line above, the lines before and the lines after."""


def key_of(mutant: Mutant) -> tuple[str, str, str, str]:
    return mutant.path, mutant.above, mutant.before, mutant.after


def reason_of(mutant: Mutant) -> str:
    return EQUIVALENT.get(key_of(mutant), "")
