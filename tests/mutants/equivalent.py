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
    (
        "server/placing/bind_transaction.py",
        "# A bind adds the node's name to the spec and nothing else, so the cached demand of the old spec holds.",
        "judged = after if request is None or self._before is None else self._before",
        "judged = after if request is None or (self._before is not None) else self._before",
    ): "a bind's new spec demands what the old one does; only the old one is cached, which is faster",
    (
        "server/placing/node_configuration.py",
        "raise",
        "if others:",
        "if not (others):",
    ): "it decides only whether a line is logged",
    (
        "store/backup.py",
        "if line.end is not None:",
        "if line.end != BackupEnd(entries, files, digest.hexdigest()) or packed.read(1):",
        "if line.end != BackupEnd(entries, files, digest.hexdigest()) or packed.read(2):",
    ): "whether anything follows is the same question for one byte and for two",
    (
        "store/etcd/credentials.py",
        'with path.open("rb") as file:',
        "data = file.read(MAX_FILE_BYTES + 1)",
        "data = file.read(MAX_FILE_BYTES + 2)",
    ): "a file that is too large is refused by its first byte beyond the limit, however many more are read",
    (
        "store/etcd/credentials.py",
        '_check(ca, partial(checked.load_verify_locations, ca), "has no certificates in PEM")',
        "if certificate is not None and key is not None:",
        "if (certificate is not None or key is not None):",
    ): "one without the other was refused above; mypy needs both",
    (
        "store/memory.py",
        'raise InvalidRequestError("a lease lasts at least a second")',
        "lease = LeaseId(secrets.randbits(LEASE_BITS) + 1)",
        "lease = LeaseId(secrets.randbits(LEASE_BITS) + 2)",
    ): "the number is random, and positive either way",
    (
        "store/sqlite/store.py",
        "schema.check_ttl(ttl_s)",
        "lease = LeaseId(secrets.randbits(LEASE_BITS) + 1)",
        "lease = LeaseId(secrets.randbits(LEASE_BITS) + 2)",
    ): "the number is random, and positive either way",
    (
        "store/etcd/watch.py",
        "self._interrupted = False",
        "self._quiet = 0",
        "pass",
    ): "a tick counts only while somebody reads, and each read sets it to 0 first",
    (
        "store/etcd/watch.py",
        "self._interrupted = False",
        "self._quiet = 0",
        "self._quiet = 1",
    ): "a tick counts only while somebody reads, and each read sets it to 0 first",
    (
        "agent/shim_exec.py",
        "self._selector.unregister(one.connection)",
        "one.connection.close()",
        "pass",
    ): "nothing refers to the command any more after the next line, so Python closes its socket at once",
}
"""By path, the line above, the lines before and the lines after."""


def key_of(mutant: Mutant) -> tuple[str, str, str, str]:
    return mutant.path, mutant.above, mutant.before, mutant.after


def reason_of(mutant: Mutant) -> str:
    return EQUIVALENT.get(key_of(mutant), "")
