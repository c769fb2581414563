"""Mutants that change no behaviour that a test could notice, each with the reason."""

from mutants.mutate import Mutant

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "agent/lease.py",
        '"""A shorter lease counts from now on, also for the shims: its response may be lost."""',
        "if lease_s < self._fence.lease_s:",
        "if (lease_s <= self._fence.lease_s):",
    ): "to send the lease that is in force changes neither the fence nor its file",
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
        "server/placing/bind_transaction.py",
        "# A bind adds the node's name to the spec and nothing else, so the cached demand of the old spec holds.",
        "judged = after if request is None or self._before is None else self._before",
        "judged = after if request is None or (self._before is not None) else self._before",
    ): "a bind's new spec demands what the old one does; only the old one is cached, which is faster",
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
    (
        "agent/shim.py",
        "libc = ctypes.CDLL(None)",
        "libc.prctl(PR_SET_CHILD_SUBREAPER, 1)",
        "libc.prctl(PR_SET_CHILD_SUBREAPER, 2)",
    ): "the kernel takes any number but 0 for yes",
    (
        "agent/shim.py",
        "self._log = log",
        "self._pid = 0",
        "self._pid = 1",
    ): "run sets the pid before anything reads it",
    (
        "agent/shim.py",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)",
        "signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=True)",
    ): "it decides only whether a warning is written to a file for people",
    (
        "agent/shim.py",
        "selector.unregister(key.fd)",
        "if time.monotonic() >= look_at:",
        "if (time.monotonic() > look_at):",
    ): "the clock counts nanoseconds, and one more makes no difference to a poll",
    (
        "agent/shim.py",
        "elif not heard:",
        "continue  # only output: no process can have exited",
        "pass  # only output: no process can have exited",
    ): "it only spares looking for processes that have exited",
    (
        "agent/shim.py",
        "kill_all(self._pid, self._cgroup)",
        "status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])",
        "status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 1)[1])",
    ): "waitid has seen that it exited, so there is nothing to wait for; 1 is WNOHANG",
    (
        "agent/shim.py",
        "kill_all(self._pid, self._cgroup)",
        "elif most and sum(1 for _ in zip(range(most + 1), tree(os.getpid()), strict=False)) > most:",
        "elif most and sum(1 for _ in zip(range(most + 2), tree(os.getpid()), strict=False)) > most:",
    ): "one process too many is found whether the count ends there or one later",
    (
        "agent/hollow_nodes.py",
        "self._transitions = PlannedTransitions()",
        "self._updates = 0",
        "self._updates = 1",
    ): "the number is only compared with others of its kind",
    (
        "agent/hollow_transitions.py",
        '"""What is due in each namespace, by node, as if each had a kubelet of its own."""',
        "self._planned = 0",
        "self._planned = 1",
    ): "the number is only compared with others of its kind",
    (
        "agent/hollow_transitions.py",
        "def plan(self, key: Key, transition: PodTransition, tracked: TrackedPod, after_ms: int) -> None:",
        "self._planned += 1",
        "self._planned += 2",
    ): "it only has to grow",
    (
        "agent/shim_exec.py",
        "def _close_output(self, one: _Exec) -> None:",
        "if one.output >= 0:",
        "if (one.output > 0):",
    ): "a shim's standard input is open, so no other descriptor is 0",
    (
        "server/placing/bind_transaction.py",
        "self._writes.append(Put(key, value))",
        "self._cache.expect(key, value, uid_only(decision.metadata.uid))",
        "pass",
    ): "the cache decodes what it does not expect, to the same object",
    (
        "server/placing/bind_transaction.py",
        "self._writes.append(Put(key, value))",
        "self._cache.expect(key, value, uid_only(identity.uid))",
        "pass",
    ): "the cache decodes what it does not expect, to the same object",
    (
        "store/memory.py",
        "async def aclose(self) -> None:",
        "self._expiry.close()",
        "pass",
    ): "a lease that ends later deletes keys of a store that answers nobody any more",
    (
        "store/sqlite/log.py",
        "raise FutureRevisionError(revision, self.revision)",
        "if revision > self.compacted:",
        "if (revision >= self.compacted):",
    ): "it saves the same number again",
    (
        "store/sqlite/log.py",
        "rows = (",
        "1 << (len(part) // schema.COLUMNS - 1).bit_length()",
        "2 << (len(part) // schema.COLUMNS - 1).bit_length()",
    ): "SQLite ignores the rows without values that fill a statement up, however many they are",
    (
        "store/sqlite/log.py",
        "if not self.room.lend(need):",
        "raise",
        "pass",
    ): "the second try finds no room either, and raises the same error",
    (
        "store/sqlite/queries.py",
        "return whole, whole[-1].revision",
        "most = PLACES + 1",
        "most = PLACES + 2",
    ): "a revision has no more than PLACES rows, so one row more shows its end as well as two",
    (
        "server/placing/bind_transaction.py",
        '"""Those just written, by key: the next write of the pod, most often its first status, need not decode it."""',
        "self._lease = (0, 0)",
        "self._lease = (1, 0)",
    ): "no lease is at the first revisions of a store, so the term is read before it is used",
    (
        "server/placing/bind_transaction.py",
        '"""Those just written, by key: the next write of the pod, most often its first status, need not decode it."""',
        "self._lease = (0, 0)",
        "self._lease = (0, 1)",
    ): "no lease is at the first revisions of a store, so the term is read before it is used",
    (
        "store/sqlite/log.py",
        '"""Keys written as new. If one exists after all, SQLite rejects the rows."""',
        "self.bytes = 0",
        "self.bytes = 1",
    ): "the cache estimates by it how much memory its entries take; a byte more in each commit is nothing",
}
"""By path, the line above, the lines before and the lines after."""


def key_of(mutant: Mutant) -> tuple[str, str, str, str]:
    return mutant.path, mutant.above, mutant.before, mutant.after


def reason_of(mutant: Mutant) -> str:
    return EQUIVALENT.get(key_of(mutant), "")
