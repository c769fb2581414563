"""What a security context asks: given to real processes, or refused in the pod's status, and never ignored."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.world import FakePlane, container, pod, running, story, until
from situate.agent.agent import NodeAgent
from situate.agent.container_config import _work, _writable
from situate.agent.environment import ContainerConfigError
from situate.agent.host_security import NOBODY_ID, SecurityError, node_security, own_security, trust_statement
from situate.agent.ports import free_port
from situate.agent.process import ProcessRuntime, ProcessSettings
from situate.agent.runtime import ProcessSecurity
from situate.agent.security import (
    APPARMOR_ANNOTATION,
    CAPABILITIES,
    DEFAULT_CAPABILITIES,
    KNOWN_FIELDS,
    NodeSecurity,
    process_security,
)
from situate.agent.settings import NodeSettings
from situate.wire.schema.groups import core

AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
ALL = frozenset(range(len(CAPABILITIES))) - {CAPABILITIES.index("SYS_BOOT")}
ACCOUNTS = {0: 0, 33: 33, 999: 999, 1000: 1000, NOBODY_ID: NOBODY_ID}
ROOT_NODE = NodeSecurity(
    NOBODY_ID, NOBODY_ID, is_root=True, users="unprivileged", capabilities=ALL, has_landlock=True, has_seccomp=True,
    group_of=ACCOUNTS.get, is_group=lambda group: group in {0, 6, 42, 1000},
)  # fmt: skip
OWN_NODE = NodeSecurity(1000, 1000, groups=frozenset({1000, 27}), capabilities=ALL, has_landlock=True, has_seccomp=True)


def asked(node: NodeSecurity, own: dict[str, Any] | None = None, **pods: Any) -> Any:
    spec = pods.pop("spec", {})
    given = pod(container("c", "true", securityContext=own or {}), securityContext=pods, **spec)
    return process_security(given, given["spec"]["containers"][0], node)


# -- who a container is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pods, own, expected",
    [
        pytest.param({}, {}, (NOBODY_ID, NOBODY_ID, ()), id="nobody, without groups"),
        pytest.param({"runAsUser": 5000}, {}, (5000, 5000, ()), id="a user without an account has its own group"),
        pytest.param({"runAsUser": 1000}, {}, (1000, 1000, ()), id="a user with an account has that group"),
        pytest.param({"runAsUser": 5000}, {"runAsUser": 6000}, (6000, 6000, ()), id="the container's before the pod's"),
        pytest.param({"runAsUser": 5000, "runAsGroup": 7000}, {}, (5000, 7000, ()), id="the group that it names"),
        pytest.param({"runAsGroup": 7000}, {}, (NOBODY_ID, 7000, ()), id="a group alone"),
        pytest.param(
            {"supplementalGroups": [8, 9], "fsGroup": 10}, {}, (NOBODY_ID, NOBODY_ID, (8, 9, 10)), id="more groups"
        ),
        pytest.param({"runAsNonRoot": True}, {}, (NOBODY_ID, NOBODY_ID, ()), id="somebody else than root"),
    ],
)
def test_who_a_container_of_root_is(pods: dict[str, Any], own: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = asked(ROOT_NODE, own, **pods)
    assert (found.user, found.group, found.groups) == expected


def test_a_container_of_an_ordinary_user_is_that_user() -> None:
    found = asked(OWN_NODE, runAsUser=1000, runAsGroup=1000, supplementalGroups=[27], runAsNonRoot=True)
    assert (found.user, found.group, found.groups, found.no_new_privileges) == (None, None, None, True)


@pytest.mark.parametrize(
    "pods, own, words",
    [
        pytest.param({"runAsUser": 0}, {}, "runAsUser 0: it runs no container as root", id="root"),
        pytest.param({"runAsUser": 33}, {}, "runAsUser 33: it runs no", id="a system account"),
        pytest.param({"runAsUser": 999}, {}, "runAsUser 999: it runs no", id="the last system account"),
        pytest.param({"runAsGroup": 0}, {}, "runAsGroup 0: no container gets", id="root's group"),
        pytest.param({"runAsGroup": 42}, {}, "runAsGroup 42: no container gets", id="a group of the system"),
        pytest.param({"supplementalGroups": [6]}, {}, "supplementalGroups or fsGroup 6", id="one as a further group"),
        pytest.param({"fsGroup": 0}, {}, "supplementalGroups or fsGroup 0", id="root's group for volumes"),
        pytest.param({}, {"privileged": True}, "privileged: true: it needs --container-users any", id="privileged"),
        pytest.param(
            {}, {"capabilities": {"add": ["SYS_BOOT"]}}, "capabilities.add SYS_BOOT", id="what the agent lacks"
        ),
        pytest.param({}, {"capabilities": {"drop": ["NONE_SUCH"]}}, "the capability NONE_SUCH", id="an unknown one"),
        pytest.param(
            {"seccompProfile": {"type": "Localhost", "localhostProfile": "p"}}, {}, "Localhost", id="a profile"
        ),
        pytest.param({"appArmorProfile": {"type": "RuntimeDefault"}}, {}, "appArmorProfile", id="AppArmor"),
        pytest.param({}, {"seLinuxOptions": {"level": "s0"}}, "seLinuxOptions", id="SELinux"),
        pytest.param({"sysctls": [{"name": "a", "value": "1"}]}, {}, "sysctls", id="settings of the kernel"),
        pytest.param({}, {"procMount": "Unmasked"}, "procMount Unmasked", id="another /proc"),
        pytest.param({"spec": {"hostUsers": False}}, {}, "hostUsers: false", id="a user namespace"),
        pytest.param({"spec": {"runtimeClassName": "gvisor"}}, {}, "runtimeClassName gvisor", id="a sandbox"),
        pytest.param({}, {"ofTomorrow": True}, "securityContext.ofTomorrow", id="a field that nobody knows yet"),
    ],
)
def test_what_root_s_node_refuses(pods: dict[str, Any], own: dict[str, Any], words: str) -> None:
    with pytest.raises(ContainerConfigError, match="this node does not support ") as error:
        asked(ROOT_NODE, own, **pods)
    assert words in str(error.value)
    assert error.value.reason == "CreateContainerConfigError"


@pytest.mark.parametrize(
    "pods, own, words",
    [
        pytest.param({"runAsUser": 65534}, {}, "its containers run as user 1000", id="another user"),
        pytest.param({"runAsGroup": 27}, {}, "its containers have its own groups", id="another group"),
        pytest.param({"fsGroup": 2000}, {}, "its containers have its own groups", id="a group that it has not"),
        pytest.param(
            {}, {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": True}, "together", id="both at once"
        ),
        pytest.param(
            {},
            {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": True},
            "readOnlyRootFilesystem together",
            id="read-only and more",
        ),
        pytest.param(
            {"seccompProfile": {"type": "RuntimeDefault"}},
            {"allowPrivilegeEscalation": True},
            "seccompProfile together",
            id="a system call filter and more",
        ),
    ],
)
def test_what_an_ordinary_user_s_node_refuses(pods: dict[str, Any], own: dict[str, Any], words: str) -> None:
    with pytest.raises(ContainerConfigError, match="this node does not support ") as error:
        asked(OWN_NODE, own, **pods)
    assert words in str(error.value)


def test_an_ordinary_user_s_container_may_drop_capabilities_or_escalate() -> None:
    assert asked(OWN_NODE, {"capabilities": {"drop": ["ALL"]}}).no_new_privileges
    assert not asked(OWN_NODE, {"allowPrivilegeEscalation": True}).no_new_privileges


def test_system_calls_are_filtered_if_the_pod_or_the_container_says_so() -> None:
    default, none = {"type": "RuntimeDefault"}, {"type": "Unconfined"}
    assert not asked(ROOT_NODE).seccomp
    assert asked(ROOT_NODE, seccompProfile=default).seccomp
    assert asked(ROOT_NODE, {"seccompProfile": default}, seccompProfile=none).seccomp
    assert not asked(ROOT_NODE, {"seccompProfile": none}, seccompProfile=default).seccomp


def test_an_apparmor_profile_in_an_annotation_is_refused() -> None:
    given = pod(container("c", "true"), container("d", "true"))
    given["metadata"]["annotations"] = {
        f"{APPARMOR_ANNOTATION}c": "runtime/default",
        f"{APPARMOR_ANNOTATION}d": "unconfined",
    }
    first, second = given["spec"]["containers"]
    with pytest.raises(ContainerConfigError, match="the AppArmor profile runtime/default"):
        process_security(given, first, ROOT_NODE)
    assert process_security(given, second, ROOT_NODE).user == NOBODY_ID


def test_root_is_refused_in_the_kubelet_s_words() -> None:
    root = NodeSecurity(0, 0, is_root=True, capabilities=ALL)
    where = '(pod: "p_default(uid-p)", container: c)'
    with pytest.raises(ContainerConfigError) as error:
        asked(root, runAsNonRoot=True)
    assert str(error.value) == f"container has runAsNonRoot and image will run as root {where}"
    with pytest.raises(ContainerConfigError) as error:
        asked(ROOT_NODE, {"runAsUser": 0}, runAsNonRoot=True)
    assert str(error.value) == f"container's runAsUser breaks non-root policy {where}"


def test_every_published_field_is_given_or_refused() -> None:
    text = Path(core.__file__).read_text()
    found = re.findall(r"^(?:Pod)?SecurityContext: (.*?)(?=^\S)", text, re.DOTALL | re.MULTILINE)
    assert len(found) == 2
    assert {name for one in found for name in re.findall(r"(\w+)\s+\d+\s", one)} == KNOWN_FIELDS


def test_what_this_kernel_cannot_do_is_refused() -> None:
    old = NodeSecurity(NOBODY_ID, NOBODY_ID, is_root=True, capabilities=ALL)
    with pytest.raises(ContainerConfigError, match="Landlock"):
        asked(old, {"readOnlyRootFilesystem": True})
    with pytest.raises(ContainerConfigError, match="no seccomp here"):
        asked(old, {"seccompProfile": {"type": "RuntimeDefault"}})


@pytest.mark.parametrize(
    "said, expected",
    [
        pytest.param({}, DEFAULT_CAPABILITIES, id="the default ones"),
        pytest.param({"drop": ["ALL"]}, (), id="none"),
        pytest.param({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, ("NET_BIND_SERVICE",), id="one only"),
        pytest.param(
            {"add": ["SYS_PTRACE"]}, {*DEFAULT_CAPABILITIES, "SYS_PTRACE"}, id="one more, as kubectl debug adds"
        ),
        pytest.param({"drop": ["CAP_CHOWN"]}, set(DEFAULT_CAPABILITIES) - {"CHOWN"}, id="all but one"),
    ],
)
def test_capabilities(said: dict[str, Any], expected: Any) -> None:
    assert {CAPABILITIES[one] for one in asked(ROOT_NODE, {"capabilities": said}).capabilities} == set(expected)


def test_what_kubectl_debug_adds_is_no_obstacle_for_an_ordinary_user() -> None:
    assert asked(OWN_NODE, {"capabilities": {"add": ["SYS_PTRACE"]}}).capabilities is None


def test_a_privileged_container_has_all_where_anybody_is_allowed() -> None:
    root = NodeSecurity(0, 0, is_root=True, users="any", capabilities=ALL)
    found = asked(root, {"privileged": True})
    assert (found.user, frozenset(found.capabilities), found.no_new_privileges) == (0, ALL, False)


def test_with_default_users_only_the_node_s_own_is_given() -> None:
    node = NodeSecurity(NOBODY_ID, NOBODY_ID, is_root=True, users="default", capabilities=ALL)
    assert asked(node, runAsUser=NOBODY_ID).user == NOBODY_ID
    with pytest.raises(ContainerConfigError, match="--container-users default"):
        asked(node, runAsUser=5000)
    with pytest.raises(ContainerConfigError, match="--container-users default"):
        asked(node, fsGroup=5000)


# -- this machine ----------------------------------------------------------------------------------------------------


@AS_ROOT
def test_root_s_containers_run_as_nobody_unless_told_otherwise() -> None:
    found = node_security()
    assert (found.user, found.is_root, found.users) == (NOBODY_ID, True, "unprivileged")
    assert trust_statement(found).endswith(f"can run commands on this machine as user nobody ({NOBODY_ID})")
    assert node_security("12345").user == node_security("12345").group == 12345
    assert node_security("0").users == "any"
    assert trust_statement(node_security("0")).endswith("as user root (0), who can also read this node's keys")
    with pytest.raises(SecurityError, match="no such user"):
        node_security("no-such-user")


@pytest.mark.skipif(os.getuid() == 0, reason="an ordinary user is needed")
def test_an_ordinary_user_s_containers_run_as_that_user() -> None:
    assert node_security() == own_security() or node_security().user == os.getuid()
    assert trust_statement(node_security()).endswith("who can also read this node's keys")
    with pytest.raises(SecurityError, match="only root"):
        node_security("0")


# -- real processes --------------------------------------------------------------------------------------------------


@pytest.fixture
def homes() -> Iterator[Path]:
    """A directory that everybody may enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="situate-test-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


def ran(given: dict[str, Any], tmp_path: Path, homes: Path | None, security: NodeSecurity) -> tuple[FakePlane, str]:
    """Run a pod to its end: what the plane knows then, and its log."""
    plane, log = FakePlane(), ""

    def agent() -> NodeAgent:
        settings = NodeSettings("this", tmp_path, security=security, ends_pods=True)
        limits = ProcessSettings(processes=200)
        return NodeAgent(
            plane, settings, lambda changed: ProcessRuntime(tmp_path / "pods", changed, settings=limits, homes=homes)
        )

    async def told() -> None:
        nonlocal log
        plane.put(given)
        async with running(agent()) as made:
            await until(lambda: plane.phase() in ("Succeeded", "Failed"))
            log = made.runtime.log("uid-p", "c", 0).read_text()

    story(told)
    return plane, "".join(line.split(" ", 3)[3] + "\n" for line in log.splitlines())


def script(text: str, own: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Its programs by their paths: our own PATH may lead through folders that nobody may enter."""
    said = container(
        "c", "/bin/sh", "-c", text, securityContext=own or {}, env=[{"name": "PATH", "value": "/usr/bin:/bin"}],
        volumeMounts=[{"name": one["name"], "mountPath": "/none"} for one in spec.get("volumes", ())],
    )  # fmt: skip
    return pod(said, restartPolicy="Never", **spec)


STATUS = "grep -E '^(Uid|Gid|Groups|NoNewPrivs|CapBnd|CapEff|Seccomp):' /proc/self/status | tr -s ' \\t' ' '"


@AS_ROOT
def test_a_container_of_root_s_agent_is_nobody_and_can_gain_nothing(tmp_path: Path, homes: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("key")
    secret.chmod(0o600)
    text = f"{STATUS}; cat {secret}; cat /proc/{os.getpid()}/environ; cd $HOME && echo here > file && cat file"
    plane, log = ran(script(text), tmp_path, homes, node_security())
    lines = log.splitlines()
    nobody = f"{NOBODY_ID} {NOBODY_ID} {NOBODY_ID} {NOBODY_ID}"
    assert {f"Uid: {nobody}", f"Gid: {nobody}", "Groups: ", "NoNewPrivs: 1", "CapEff: 0000000000000000"} <= {*lines}
    assert log.count("Permission denied") == 2
    assert lines[-1] == "here"
    assert plane.phase() == "Succeeded"


@AS_ROOT
def test_run_as_user_sets_the_groups_too(tmp_path: Path, homes: Path) -> None:
    before = os.getgroups()
    os.setgroups([0, 6])
    try:
        given = script(STATUS, securityContext={"runAsUser": 54321, "supplementalGroups": [777_777]})
        _, log = ran(given, tmp_path, homes, node_security())
    finally:
        os.setgroups(before)
    ids = "54321 54321 54321 54321"
    assert {f"Uid: {ids}", f"Gid: {ids}", "Groups: 777777 "} <= {*log.splitlines()}


@AS_ROOT
def test_dropped_capabilities_and_a_system_call_filter_are_real(tmp_path: Path, homes: Path) -> None:
    own = {"capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}
    _, log = ran(script(f"{STATUS}; unshare -U true", own), tmp_path, homes, node_security())
    assert {"CapBnd: 0000000000000000", "Seccomp: 2"} <= {*log.splitlines()}
    assert "unshare failed: Operation not permitted" in log


@AS_ROOT
def test_root_in_a_container_has_the_default_capabilities_only(tmp_path: Path) -> None:
    node = own_security()
    default = sum(1 << CAPABILITIES.index(one) for one in DEFAULT_CAPABILITIES)
    _, log = ran(script(STATUS), tmp_path, None, node)
    held = sum(1 << one for one in node.capabilities)
    assert f"CapEff: {default & held:016x}" in log.splitlines()


@AS_ROOT
def test_the_working_directory_of_several_users_is_open_to_all_of_them(tmp_path: Path) -> None:
    work = tmp_path / "work"
    assert _work(work, ProcessSecurity(user=5000, group=5000)).stat().st_uid == 5000
    assert _work(work, ProcessSecurity(user=5000, group=5000)).stat().st_mode & 0o777 == 0o755
    assert _work(work, ProcessSecurity(user=6000, group=6000)).stat().st_mode & 0o777 == 0o777


def test_a_read_only_root_leaves_only_what_is_mounted_for_writing() -> None:
    kinds: list[dict[str, Any]] = [{"emptyDir": {}}, {"emptyDir": {}}, {"hostPath": {"path": "/h"}}, {"secret": {}}]
    volumes = [{"name": f"v{number}", **kind} for number, kind in enumerate(kinds)]
    mounts = [{"name": "v0"}, {"name": "v1", "readOnly": True}, {"name": "v2"}, {"name": "v3"}]
    paths = {f"SITUATE_VOLUME_V{number}": f"/p{number}" for number in range(4)}
    found = _writable({"spec": {"volumes": volumes}}, {"volumeMounts": mounts}, paths)
    assert found == ["/p0", "/p2"]


def test_a_port_that_the_user_may_not_have_is_replaced() -> None:
    assert free_port(1, 1_024) >= 1_024


@AS_ROOT
def test_the_group_of_volumes_may_use_them(tmp_path: Path, homes: Path) -> None:
    text = "stat -c '%g %a' $SITUATE_VOLUME_V; touch $SITUATE_VOLUME_V/new && stat -c %g $SITUATE_VOLUME_V/new"
    given = script(text, securityContext={"fsGroup": 424_242}, volumes=[{"name": "v", "emptyDir": {}}])
    _, log = ran(given, tmp_path, homes, node_security())
    assert log.splitlines() == ["424242 2777", "424242"]


@AS_ROOT
def test_the_agent_creates_no_path_that_the_container_could_not(tmp_path: Path, homes: Path) -> None:
    below = tmp_path / "below"
    given = script("true", volumes=[{"name": "v", "hostPath": {"path": str(below), "type": "DirectoryOrCreate"}}])
    plane = waiting(given, tmp_path / "node", homes, node_security())
    assert plane.state()["state"]["waiting"]["reason"] == "FailedMount"
    assert "Permission denied" in plane.state()["state"]["waiting"]["message"]
    assert not below.exists()


@AS_ROOT
def test_volumes_that_a_container_could_not_reach_are_refused(tmp_path: Path) -> None:
    """Without volumes it runs all the same: it is in its directory before it changes its user."""
    tmp_path.chmod(0o700)
    homes = tmp_path / "homes"
    homes.mkdir()
    given = script("true", volumes=[{"name": "v", "emptyDir": {}}])
    message = waiting(given, tmp_path / "a", homes, node_security()).state()["state"]["waiting"]["message"]
    assert message.startswith(f"volume v: user {NOBODY_ID} may not enter ")
    assert message.endswith(": choose a --dir that every user can reach")
    plane, log = ran(script("echo x > y; cat y"), tmp_path / "b", homes, node_security())
    assert (plane.phase(), log) == ("Succeeded", "x\n")


@AS_ROOT
def test_a_working_directory_is_entered_as_the_container_s_user(tmp_path: Path, homes: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "open").mkdir(parents=True)
    closed.chmod(0o700)
    given = script("pwd")
    given["spec"]["containers"][0]["workingDir"] = str(closed / "open")
    plane, _ = ran(given, tmp_path / "node", homes, node_security())
    ended = plane.state()["state"]["terminated"]
    assert (ended["reason"], ended["message"].rpartition(": ")[2]) == ("StartError", "permission denied")


@pytest.mark.skipif(not own_security().has_landlock, reason="this kernel has no Landlock")
def test_a_read_only_root_can_be_read_and_not_written(tmp_path: Path) -> None:
    text = (
        f"echo x > {tmp_path}/no; mkdir {tmp_path}/no; rm {tmp_path}/kept; true > {tmp_path}/kept;"
        "echo 1 > $SITUATE_VOLUME_V/yes && echo 2 > $HOME/yes && echo 3 > /dev/null && cat $SITUATE_VOLUME_V/yes"
    )
    (tmp_path / "kept").write_text("kept")
    given = script(text, {"readOnlyRootFilesystem": True}, volumes=[{"name": "v", "emptyDir": {}}])
    _, log = ran(given, tmp_path / "node", None, own_security())
    assert log.splitlines()[-1] == "1"
    assert not (tmp_path / "no").exists()
    assert (tmp_path / "kept").read_text() == "kept"


def waiting(given: dict[str, Any], tmp_path: Path, homes: Path | None, security: NodeSecurity) -> FakePlane:
    plane = FakePlane()

    async def told() -> None:
        plane.put(given)
        settings = NodeSettings("this", tmp_path, security=security)
        agent = NodeAgent(plane, settings, lambda changed: ProcessRuntime(tmp_path / "pods", changed, homes=homes))
        async with running(agent):
            await until(lambda: plane.state()["state"]["waiting"].get("message"))

    story(told)
    return plane


def test_what_cannot_be_given_is_reported_in_the_status_and_an_event(tmp_path: Path) -> None:
    given = script("true", {"seLinuxOptions": {"level": "s0"}})
    plane = waiting(given, tmp_path, None, own_security())
    message = "this node does not support seLinuxOptions: it sets no SELinux labels"
    assert plane.state()["state"]["waiting"] == {"reason": "CreateContainerConfigError", "message": message}
    assert plane.phase() == "Pending"
    assert not list(tmp_path.glob("pods/*/containers/*/*"))


@AS_ROOT
def test_a_container_that_must_not_be_root_does_not_start_as_root(tmp_path: Path) -> None:
    plane = waiting(script("true", {"runAsNonRoot": True}), tmp_path, None, own_security())
    found = plane.state()["state"]["waiting"]
    assert found["reason"] == "CreateContainerConfigError"
    assert found["message"].startswith("container has runAsNonRoot and image will run as root (pod: ")
