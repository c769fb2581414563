"""Input that cannot be used is one line on stderr and exit code 2, at once, with nothing on stdout and no traceback.

Every case is run as a user would run it, in a process of its own. It may take a second of processor time more than the
same command takes to say that a file is missing: what the clock on the wall says, and what the start of the interpreter
costs, depends on who else is using the machine.
"""

import gzip
import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 1.0
HUNG_S = 60

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "pods": "10"}},
}


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "web:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers} | spec}


def asking(amounts: dict[str, Any]) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "resources": {"requests": amounts}}])


def documents(*objects: Any) -> bytes:
    """JSON is YAML, and several documents of it are a file of several documents."""
    return b"\n---\n".join(json.dumps(one).encode() for one in objects)


def config(**plugins: Any) -> bytes:
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
        }
    ).encode()


def enabled(name: str) -> bytes:
    return config(multiPoint={"enabled": [{"name": name}]})


def bomb(levels: int = 12) -> bytes:
    """Ten aliases of ten aliases of ten aliases..."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines).encode()


@dataclass(frozen=True)
class Said:
    code: int
    stdout: str
    stderr: str
    cpu_s: float


def situate(folder: Path, *arguments: str, stdin: bytes = b"") -> Said:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "situate", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        timeout=HUNG_S,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode(), cpu_s)


@cache
def start_s() -> float:
    """The processor time of a command that reads nothing."""
    return situate(Path(), "place", "-f", "nope.yaml").cpu_s


def written(folder: Path, **files: bytes) -> Path:
    """Files by name, `__` standing for the dot."""
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data)
    return folder


def is_one_line(said: Said, line: str) -> None:
    assert (said.code, said.stdout, said.stderr) == (2, "", f"error: {line}\n")
    assert said.cpu_s < start_s() + LIMIT_S


# ── situate place -f a.yaml ─────────────────────────────────────────────────────────────────────────────────────────

WEB = "a.yaml: Pod default/web: "
CPU = WEB + "spec.containers[0].resources.requests.cpu: "
NOT_A_QUANTITY = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def requiring(terms: object) -> dict[str, Any]:
    required = {"nodeSelectorTerms": terms}
    return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


def unquoted(pod: dict[str, Any], number: bytes) -> bytes:
    """The object, with a number that no JSON writer writes in place of a 0."""
    return json.dumps(pod).encode().replace(b": 0}", b": " + number + b"}")


@pytest.mark.parametrize(
    "data, line",
    [
        pytest.param(
            b"a: b: c\n",
            "a.yaml: line 1, column 5: not YAML: mapping values are not allowed in this context",
            id="something that is not YAML",
        ),
        pytest.param(b"Dear all,\nplease see below.\n", "a.yaml: expected an object", id="a letter"),
        pytest.param(b"[1, 2]", "a.yaml: expected an object", id="a list of numbers"),
        pytest.param(b'{"kind": ', "a.yaml: not JSON: Input data was truncated", id="half a JSON file"),
        pytest.param(b"", "a.yaml: is empty", id="an empty file"),
        pytest.param(b"# later\n---\n", "a.yaml: no objects found", id="a file of remarks"),
        pytest.param(b"null", "a.yaml: no objects found", id="a JSON null"),
        pytest.param(
            bytes(range(256)) * 400,
            "a.yaml: not YAML: unacceptable character #x0000: control characters are not allowed",
            id="binary junk",
        ),
        pytest.param(
            b"a: \xff\n",
            "a.yaml: not YAML: unacceptable character #x00ff: invalid leading UTF-8 octet",
            id="YAML that is not UTF-8",
        ),
        pytest.param(
            b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\xff"}}',
            "a.yaml: not UTF-8",
            id="JSON that is not UTF-8",
        ),
        pytest.param(
            bomb(), "a.yaml: line 5, column 45: aliases stand for more than 100000 nodes", id="a bomb of aliases"
        ),
        pytest.param(
            b"[" * 100_000, "a.yaml: line 1, column 101: nested deeper than 100 levels", id="a bomb of brackets"
        ),
        pytest.param(
            b'{"a":' * 100_000, "a.yaml: line 1, column 501: nested deeper than 100 levels", id="a bomb of braces"
        ),
        pytest.param(b"--- 1\n" * 1_000_000, "a.yaml: more than 100000 documents", id="a million documents"),
        pytest.param(
            b"!!python/object/apply:os.system ['true']",
            "a.yaml: line 1, column 1: tag tag:yaml.org,2002:python/object/apply:os.system is not supported",
            id="a tag that would run a program",
        ),
        pytest.param(
            documents(NODE, asking({"cpu": "1e100000000"})),
            CPU + 'Invalid value: "1e100000000": quantity\'s exponent must be between -30 and 30',
            id="a quantity beyond all reason",
        ),
        pytest.param(
            unquoted(asking({"cpu": 0}), b"1e100000000"),
            WEB + "spec.containers[0].resources.requests: Number out of range",
            id="a number beyond all reason",
        ),
        pytest.param(
            documents(NODE, asking({"cpu": "lots"})),
            CPU + f'Invalid value: "lots": {NOT_A_QUANTITY}',
            id="a quantity that is none",
        ),
        pytest.param(
            documents(NODE, asking({"cpu": "-1"})),
            CPU + 'Invalid value: "-1": must be greater than or equal to 0',
            id="a negative request",
        ),
        pytest.param(
            unquoted(asking({"cpu": 0}), b"NaN"), CPU + f'Invalid value: "NaN": {NOT_A_QUANTITY}', id="NaN in JSON"
        ),
        pytest.param(
            b"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {priority: .nan}}",
            "a.yaml: line 1, column 69: .nan is not a number that JSON has",
            id="NaN in YAML",
        ),
        pytest.param(
            documents(NODE, pod(priority=10**30)),
            WEB + "spec.priority: expected an integer, got a number",
            id="a huge integer",
        ),
        pytest.param(documents(pod(containers=[])), WEB + "spec.containers: Required value", id="no container"),
        pytest.param(
            documents(NODE, pod(), NODE),
            'a.yaml: Node n1: metadata.name: Duplicate value: "n1": already in a.yaml, document 1',
            id="two nodes of one name",
        ),
        pytest.param(
            documents(NODE, requiring([{"matchExpressions": "zone"}])),
            WEB + TERMS + "[0].matchExpressions: expected a list, got a string",
            id="a wrong type deep down",
        ),
        pytest.param(
            documents(NODE, pod(priorityClassName="urgent")),
            WEB + "spec.priorityClassName: no PriorityClass with name urgent was found",
            id="a priority class that is not there",
        ),
        pytest.param(
            documents({"apiVersion": "v1", "kind": "List", "items": [NODE, pod(nodeName=5)]}),
            WEB + "spec.nodeName: expected a string, got an integer",
            id="an item of a list",
        ),
        pytest.param(
            documents(NODE, pod() | {"metadata": {"name": "web", "creationTimestamp": "yesterday"}}),
            WEB + 'metadata.creationTimestamp: Invalid value: "yesterday": '
            'cannot parse "yesterday" as an RFC 3339 time',
            id="a time that is none",
        ),
    ],
)
def test_a_file_of_objects_that_cannot_be_used(tmp_path: Path, data: bytes, line: str) -> None:
    is_one_line(situate(written(tmp_path, a__yaml=data), "place", "-f", "a.yaml"), line)


@pytest.mark.parametrize(
    "arguments, line",
    [
        pytest.param(("-f", "nope.yaml"), "nope.yaml: No such file or directory", id="a file that is not there"),
        pytest.param(("-f", "a.yaml", "-f", "nope"), "nope: No such file or directory", id="the second of two"),
        pytest.param(
            ("-f", "sub"), "sub: no .yaml, .yml or .json files in this folder", id="a folder without manifests"
        ),
        pytest.param(("-f", "-"), "standard input: is empty", id="nothing on standard input"),
        pytest.param(
            ("-f", "a.yaml", "-f", "a.yaml"),
            'a.yaml: Node n1: metadata.name: Duplicate value: "n1": already in a.yaml',
            id="one file twice",
        ),
        pytest.param(
            ("-f", "a.yaml", "--config", "nope.yaml"),
            "nope.yaml: No such file or directory",
            id="a configuration that is not there",
        ),
        pytest.param(("-f", "a.yaml", "--config", "sub"), "sub: Is a directory", id="a folder for a configuration"),
        pytest.param(
            ("-f", "a.yaml", "--every-node"), "--every-node needs -o json, yaml or jsonpath", id="a table of every node"
        ),
        pytest.param(("-f", "/dev/zero"), "/dev/zero: larger than 268435456 bytes", id="a file without end"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    written(tmp_path, a__yaml=documents(NODE))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "notes.txt").write_text("no manifest")
    is_one_line(situate(tmp_path, "place", *arguments), line)


# ── --config c.yaml ─────────────────────────────────────────────────────────────────────────────────────────────────

KIND = "c.yaml: KubeSchedulerConfiguration: "
BAD_CONFIGS = [
    pytest.param(
        enabled("Frobnicate"),
        KIND + 'profiles[0].plugins.multiPoint: PreFilterPlugin "Frobnicate" does not exist',
        id="an unknown plugin",
    ),
    pytest.param(b"", KIND + "Object 'Kind' is missing", id="an empty file"),
    pytest.param(bomb(), "c.yaml: line 5, column 45: aliases stand for more than 100000 nodes", id="a bomb"),
    pytest.param(
        config(score={"enabled": {"name": "ImageLocality"}}),
        KIND + "profiles[0].plugins.score.enabled: Invalid value: object: must be of type array",
        id="a wrong type",
    ),
]


@pytest.mark.parametrize("data, line", BAD_CONFIGS)
def test_a_configuration_that_cannot_be_used(tmp_path: Path, data: bytes, line: str) -> None:
    written(tmp_path, a__yaml=documents(NODE, pod()), c__yaml=data)
    is_one_line(situate(tmp_path, "place", "-f", "a.yaml", "--config", "c.yaml"), line)


@pytest.mark.parametrize("data, line", BAD_CONFIGS)
def test_a_configuration_that_is_not_valid(tmp_path: Path, data: bytes, line: str) -> None:
    said = situate(written(tmp_path, c__yaml=data), "config", "validate", "c.yaml")
    shown = line.replace(KIND, "c.yaml: ") if line.startswith(KIND) else f"error: {line}"
    assert (said.code, said.stdout, said.stderr) == (2, "", f"{shown}\n")
    assert said.cpu_s < start_s() + LIMIT_S


@pytest.mark.parametrize(
    "name, line",
    [
        pytest.param("nope.py:Mine", "no such file: nope.py", id="a file that is not there"),
        pytest.param("no.such:Mine", "ModuleNotFoundError: No module named 'no'", id="a module that is not there"),
        pytest.param(
            "broken.py:Mine", "SyntaxError: invalid syntax (broken.py, line 1)", id="a file that is not Python"
        ),
        pytest.param("leaves.py:Mine", "SystemExit: 0 (leaves.py, line 2)", id="a file that leaves"),
        pytest.param("mine.py:Yours", "there is no class of that name", id="a class that is not there"),
        pytest.param("mine.py:Idle", "has none of check, check_one, score, score_one", id="a class that does nothing"),
        pytest.param(
            "mine.py:Picky",
            "Picky(...) raised TypeError: Picky.__init__() missing 1 required positional argument: 'of'",
            id="an argument that is missing",
        ),
    ],
)
def test_a_plugin_that_cannot_be_loaded(tmp_path: Path, name: str, line: str) -> None:
    written(
        tmp_path,
        a__yaml=documents(NODE, pod()),
        c__yaml=enabled(name),
        broken__py=b"def (:\n",
        leaves__py=b"import sys\nsys.exit(0)\n",
        mine__py=b"class Idle: ...\nclass Picky:\n  def __init__(self, of): ...\n  def check(self, pod, view): ...\n",
    )
    said = situate(tmp_path, "place", "-f", "a.yaml", "--config", "c.yaml")
    is_one_line(said, f'c.yaml: plugin "{name}": {line}')


PLUGINS = b"""
import numpy as np
from situate.core.contract import Reason

class Raises:
    def check(self, pod, view):
        return {}["rack"]

class Leaves:
    def score(self, pod, view):
        raise SystemExit(0)

class Short:
    def check(self, pod, view):
        return np.zeros(view.size - 1, np.uint8)

class Floats:
    def score(self, pod, view):
        return np.zeros(view.size)

class High:
    def score(self, pod, view):
        return np.full(view.size, 101)

class Coded:
    reasons = (Reason("node(s) were too old", eviction_helps=False),)
    def check(self, pod, view):
        return np.full(view.size, 2, np.uint8)

class Scribbles:
    def check(self, pod, view):
        view.present[0] = False

class OneRaises:
    def check_one(self, pod, node):
        return node.labels["rack"]

class OneSays:
    def check_one(self, pod, node):
        return "too old"

class OneHalf:
    def score_one(self, pod, node):
        return 0.5

class OneLow:
    def score_one(self, pod, node):
        return -1
"""


@pytest.mark.parametrize(
    "name, line",
    [
        pytest.param("Raises", "check raised KeyError: 'rack' (mine.py, line 7)", id="check raises"),
        pytest.param("Leaves", "score raised SystemExit: 0 (mine.py, line 11)", id="score leaves"),
        pytest.param("Short", "check gave 1 values of uint8, not 2 of uint8", id="check forgets a node"),
        pytest.param("Floats", "score gave 2 values of float64, not 2 of int64", id="score gives fractions"),
        pytest.param("High", "score gave 101 for node n1, which is not within 0..100", id="score is too high"),
        pytest.param("Coded", "check gave code 2 for node n1, and it has 1 reasons", id="check has no such reason"),
        pytest.param(
            "Scribbles",
            "check raised ValueError: assignment destination is read-only (mine.py, line 32)",
            id="check writes into the cluster",
        ),
        pytest.param("OneRaises", "check_one raised KeyError: 'rack' (mine.py, line 36)", id="check_one raises"),
        pytest.param(
            "OneSays",
            "check_one gave 'too old' for node n1, which is none of its reasons",
            id="check_one has no such reason",
        ),
        pytest.param(
            "OneHalf",
            "score_one gave 0.5 for node n1, which is not an integer within 0..100",
            id="score_one gives a fraction",
        ),
        pytest.param(
            "OneLow", "score_one gave -1 for node n1, which is not an integer within 0..100", id="score_one is too low"
        ),
    ],
)
def test_a_plugin_that_breaks_the_contract(tmp_path: Path, name: str, line: str) -> None:
    nodes = [NODE, NODE | {"metadata": {"name": "n2"}}]
    written(tmp_path, a__yaml=documents(*nodes, pod()), c__yaml=enabled(f"mine.py:{name}"), mine__py=PLUGINS)
    said = situate(tmp_path, "place", "-f", "a.yaml", "--config", "c.yaml")
    is_one_line(said, f'plugin "mine.py:{name}": {line}')


# ── situate bench w.json ────────────────────────────────────────────────────────────────────────────────────────────


def workload(**parts: Any) -> bytes:
    return json.dumps({"nodes": [NODE], "bound": [], "pending": [pod()]} | parts).encode()


@pytest.mark.parametrize(
    "data, line",
    [
        pytest.param(b"", "is empty", id="an empty file"),
        pytest.param(b"null", "expected an object, got null", id="a JSON null"),
        pytest.param(bytes(range(256)), "not JSON: JSON is malformed: invalid character (byte 0)", id="binary junk"),
        pytest.param(
            b'{"nodes":' * 100_000,
            "nodes: expected a list, got an object",
            id="a bomb of braces",
        ),
        pytest.param(
            workload(nodes=[NODE, NODE | {"status": {}}]),
            "Node n1: two nodes have this name",
            id="two nodes of one name",
        ),
        pytest.param(
            workload(pending=[pod(), pod()]), "Pod default/web: two pods have this name", id="two pods of one name"
        ),
        pytest.param(
            workload(pending=[asking({"cpu": "1e100000000"})]),
            "Pod default/web: spec.containers[0].resources.requests.cpu: "
            'Invalid value: "1e100000000": quantity\'s exponent must be between -30 and 30',
            id="a quantity beyond all reason",
        ),
        pytest.param(workload(bound=[pod()]), "Pod default/web: spec.nodeName: is not bound", id="bound to nothing"),
        pytest.param(
            workload(pending=["web"]), "Pod (pending[0]): expected an object, got a string", id="a name for a pod"
        ),
        pytest.param(
            workload(pending=[pod(priorityClassName="urgent")]),
            "Pod default/web: spec.priorityClassName: no PriorityClass with name urgent was found",
            id="a priority class that is not there",
        ),
    ],
)
def test_a_workload_that_cannot_be_used(tmp_path: Path, data: bytes, line: str) -> None:
    is_one_line(situate(written(tmp_path, w__json=data), "bench", "w.json"), f"w.json: {line}")


@pytest.mark.parametrize(
    "name, line",
    [
        pytest.param("nope.json", "nope.json: No such file or directory", id="a file that is not there"),
        pytest.param(".", ".: Is a directory", id="a folder"),
        pytest.param("/dev/zero", "/dev/zero: cannot be mapped: Invalid argument", id="a device"),
    ],
)
def test_a_workload_that_cannot_be_read(tmp_path: Path, name: str, line: str) -> None:
    is_one_line(situate(tmp_path, "bench", name), line)


# ── situate conformance . ───────────────────────────────────────────────────────────────────────────────────────────


def scenario(**parts: Any) -> bytes:
    return json.dumps({"id": "s1", "objects": [NODE], "pending": [pod()]} | parts).encode() + b"\n"


def verdict(**parts: Any) -> bytes:
    return json.dumps({"id": "s1", "pods": [{"pod": "default/web", "feasible": []}]} | parts).encode() + b"\n"


@pytest.mark.parametrize(
    "scenarios, verdicts, line",
    [
        pytest.param(
            bytes(range(256)),
            verdict(),
            "f.scenarios.jsonl:1: not JSON: JSON is malformed: invalid character (byte 0)",
            id="binary junk",
        ),
        pytest.param(
            scenario(), b"[" * 100_000, "f.verdicts.jsonl:1: not JSON: nested too deep", id="a bomb of brackets"
        ),
        pytest.param(
            scenario(objects=[NODE, NODE]),
            verdict(),
            "f.scenarios.jsonl:1: Node n1: metadata.name: "
            'Duplicate value: "n1": already in f.scenarios.jsonl:1, item 1',
            id="two nodes of one name",
        ),
        pytest.param(
            scenario(config=json.loads(enabled("Frobnicate"))),
            verdict(),
            "f.scenarios.jsonl:1: KubeSchedulerConfiguration: "
            'profiles[0].plugins.multiPoint: PreFilterPlugin "Frobnicate" does not exist',
            id="an unknown plugin",
        ),
        pytest.param(
            scenario(pending=[pod(schedulerName="other")]),
            verdict(),
            'f.scenarios.jsonl:1: Pod default/web: spec.schedulerName: no profile has this name: "other"',
            id="a pod of another scheduler",
        ),
        pytest.param(
            scenario(),
            verdict(id="s2"),
            "f.verdicts.jsonl:1: is not a verdict on the 1 pods of s1",
            id="a verdict on something else",
        ),
        pytest.param(
            scenario(),
            verdict(pods=["yes"]),
            "f.verdicts.jsonl:1: is not a verdict on the 1 pods of s1",
            id="a verdict that is none",
        ),
        pytest.param(
            scenario() + scenario(),
            verdict(),
            "f.verdicts.jsonl: has 1 lines, fewer than f.scenarios.jsonl",
            id="a verdict that is missing",
        ),
    ],
)
def test_recorded_clusters_that_cannot_be_used(tmp_path: Path, scenarios: bytes, verdicts: bytes, line: str) -> None:
    written(tmp_path, f__scenarios__jsonl=scenarios, f__verdicts__jsonl=verdicts)
    is_one_line(situate(tmp_path, "conformance", "."), line)


@pytest.mark.parametrize(
    "zipped, line",
    [
        pytest.param(b"junk", "cannot be unzipped: Not a gzipped file (b'ju')", id="not gzip"),
        pytest.param(
            gzip.compress(scenario() * 1000)[:60],
            "cannot be unzipped: Compressed file ended before the end-of-stream marker was reached",
            id="half of one",
        ),
        pytest.param(gzip.compress(b"[" * 80_000_000, 1), "has a line of more than 67108864 bytes", id="a bomb"),
    ],
)
def test_recorded_clusters_that_cannot_be_unzipped(tmp_path: Path, zipped: bytes, line: str) -> None:
    written(tmp_path, f__scenarios__jsonl__gz=zipped, f__verdicts__jsonl__gz=gzip.compress(verdict()))
    is_one_line(situate(tmp_path, "conformance", "."), f"f.scenarios.jsonl.gz: {line}")


@pytest.mark.parametrize(
    "name, line",
    [
        pytest.param("nope", "nope: No such file or directory", id="a folder that is not there"),
        pytest.param(".", ".: no FAMILY.scenarios.jsonl[.gz] here", id="a folder without any"),
    ],
)
def test_recorded_clusters_that_cannot_be_found(tmp_path: Path, name: str, line: str) -> None:
    is_one_line(situate(tmp_path, "conformance", name), line)
