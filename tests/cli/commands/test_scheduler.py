"""`situate scheduler`: kube-scheduler's flags, each of which works or says that it does not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from situate.cli import main
from situate.cli.commands.scheduler import NO_EFFECT, scheduler
from situate.kube import scheduler as process
from situate.kube.settings import Settings
from situate.wire.config import load_config

# `kube-scheduler --help`, v1.36.4, without --help itself.
KUBE_SCHEDULER = """
allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig authentication-skip-lookup
authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure authorization-always-allow-paths
authorization-kubeconfig authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
bind-address cert-dir client-ca-file config contention-profiling disable-http2-serving disabled-metrics
emulated-version feature-gates http2-max-streams-per-connection kube-api-burst kube-api-content-type kube-api-qps
kubeconfig leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-resource-lock
leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period log-flush-frequency
log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format master
min-compatibility-version permit-address-sharing permit-port-sharing pod-max-in-unschedulable-pods-duration profiling
requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix
requestheader-group-headers requestheader-uid-headers requestheader-username-headers secure-port
show-hidden-metrics-for-version tls-cert-file tls-cipher-suites tls-curve-preferences tls-min-version
tls-private-key-file tls-sni-cert-key v version vmodule write-config-to
""".split()
OURS = ["context", "fleet", "journal", "pool-label", "server", "shadow", "shadow-json"]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """What would be run, with no cluster in sight."""
    seen: list[Settings] = []

    def run(settings: Settings, _find: object) -> int:
        seen.append(settings)
        return 0

    monkeypatch.setattr(process, "run", run)
    return seen


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["scheduler", *arguments])


def settings(ran: list[Settings], *arguments: str) -> Settings:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return ran[-1]


def test_the_flags_are_kube_schedulers_and_some_of_ours() -> None:
    named = {
        option.removeprefix("--") for param in scheduler.params for option in param.opts if option.startswith("--")
    }
    assert sorted(named) == sorted([*KUBE_SCHEDULER, *OURS])


def test_without_flags_everything_is_as_kube_scheduler_has_it(ran: list[Settings]) -> None:
    found = settings(ran)
    assert found.said == ()
    assert found.serving is not None
    assert (found.serving.address, found.serving.port) == ("0.0.0.0", 10259)
    config = found.load().config
    assert config.leader_election.leader_elect
    assert (config.client_connection.qps, config.client_connection.burst) == (50, 100)


def test_how_long_an_unschedulable_pod_waits_can_be_said(ran: list[Settings]) -> None:
    assert settings(ran).unschedulable_limit_ms == 300_000
    assert settings(ran, "--pod-max-in-unschedulable-pods-duration=1m30s").unschedulable_limit_ms == 90_000


@pytest.mark.parametrize("name", sorted(NO_EFFECT))
def test_a_flag_without_effect_is_taken_and_said_to_be_one(name: str, ran: list[Settings]) -> None:
    found = settings(ran, f"--{name}=true")
    assert found.said == (f"--{name} has no effect here: {NO_EFFECT[name]}",)


def test_a_flag_that_there_is_not_is_an_error() -> None:
    result = call("--algorithm-provider=x")
    assert result.exit_code == 2
    assert "No such option '--algorithm-provider'" in result.output


@pytest.mark.parametrize(
    "arguments, leads",
    [
        (["--leader-elect"], True),
        (["--leader-elect=true"], True),
        (["--leader-elect=false"], False),
        (["--leader_elect=F"], False),
        (["--leader-elect", "-v=2"], True),
    ],
)
def test_a_switch_is_written_as_go_reads_it(arguments: list[str], leads: bool, ran: list[Settings]) -> None:
    assert settings(ran, *arguments).load().config.leader_election.leader_elect is leads


@pytest.mark.parametrize("arguments", [["-v=4"], ["-v", "4"], ["-v4"], ["--v=4"], ["--v", "4"]])
def test_verbosity_is_written_in_every_usual_way(arguments: list[str], ran: list[Settings]) -> None:
    assert settings(ran, *arguments).logging.verbosity == 4


def test_flags_of_the_election_win_over_the_file(ran: list[Settings], tmp_path: Path) -> None:
    path = write(tmp_path, leaderElection={"leaderElect": True, "resourceName": "mine", "leaseDuration": "30s"})
    election = settings(ran, f"--config={path}", "--leader-elect-lease-duration=1m").load().config.leader_election
    assert (election.resource_name, election.lease_duration) == ("mine", 60_000_000_000)


def test_rates_hold_without_a_file_and_are_said_to_be_the_files_with_one(ran: list[Settings], tmp_path: Path) -> None:
    connection = settings(ran, "--kube-api-qps=-1", "--kube-api-burst=7").load().config.client_connection
    assert (connection.qps, connection.burst) == (-1, 7)
    found = settings(ran, f"--config={write(tmp_path)}", "--kube-api-qps=5")
    assert found.said == ("--kube-api-qps has no effect with --config: the file's clientConnection holds",)
    assert found.load().config.client_connection.qps == 50


def test_the_port_can_be_left_out(ran: list[Settings]) -> None:
    assert settings(ran, "--secure-port=0").serving is None


def test_flags_of_the_port_reach_it(ran: list[Settings]) -> None:
    where = settings(
        ran,
        "--bind-address=::1",
        "--secure-port=1234",
        "--tls-min-version=VersionTLS13",
        "--tls-cipher-suites=TLS_A,TLS_B",
        "--permit-port-sharing",
        "--client-ca-file=ca.crt",
    ).serving
    assert where is not None
    assert (where.address, where.port, where.min_version) == ("::1", 1234, "VersionTLS13")
    assert (where.ciphers, where.share_port, where.client_ca_file) == (("TLS_A", "TLS_B"), True, "ca.crt")


def test_flags_of_logs_reach_them(ran: list[Settings]) -> None:
    logging = settings(ran, "--logging-format=json", "--log-json-split-stream", "--vmodule=drive=4,lea*=2").logging
    assert (logging.format, logging.split_stream) == ("json", True)
    assert logging.vmodule == (("drive", 4), ("lea*", 2))


def test_flags_of_reviews_reach_them(ran: list[Settings]) -> None:
    found = settings(
        ran, "--authorization-always-allow-paths=/healthz,/metrics", "--authentication-token-webhook-cache-ttl=1m"
    )
    assert (tuple(found.always_allowed), found.token_ttl_s) == (("/healthz", "/metrics"), 60)


@pytest.mark.parametrize(
    "argument, said",
    [
        ("--leader-elect=maybe", "neither true nor false"),
        ("--secure-port=70000", "not a port"),
        ("--secure-port=x", "not a number"),
        ("--bind-address=here", "does not appear to be an IPv4 or IPv6 address"),
        ("--leader-elect-lease-duration=15", "missing unit in duration"),
        ("--logging-format=xml", 'use "text" or "json"'),
        ("--tls-min-version=VersionTLS10", "no longer safe"),
        ("--tls-min-version=3", "unknown version"),
        ("--vmodule=x", "not a list of pattern=N"),
        ("--kube-api-qps=fast", "could not convert"),
    ],
)
def test_a_value_that_makes_no_sense_is_one_clear_line(argument: str, said: str) -> None:
    result = call(argument)
    assert result.exit_code == 2
    assert said in result.output


def test_the_exit_code_is_the_schedulers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", lambda _: 1)
    assert call().exit_code == 1


def test_the_version_is_ours_and_names_the_release_that_we_follow() -> None:
    assert call("--version").output.endswith("(as kube-scheduler v1.36)\n")


def test_the_configuration_can_be_written_with_what_the_flags_say(tmp_path: Path) -> None:
    result = call(f"--write-config-to={tmp_path / 'out.yaml'}", "--leader-elect=false")
    assert result.exit_code == 0
    assert not load_config((tmp_path / "out.yaml").read_bytes()).leader_election.leader_elect


# -- bad input, as a person meets it -----------------------------------------------------------------------------------


def write(folder: Path, **fields: Any) -> Path:
    path = folder / "config.yaml"
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(json.dumps({**header, **fields}))
    return path


def said(*arguments: str, **environ: str) -> tuple[int, str]:
    """The exit code, and the last line on stderr; there must be no traceback in any."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environ}
    command = [sys.executable, "-m", "situate", "scheduler", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()[-1]


def test_no_cluster_at_all_is_one_clear_line() -> None:
    code, line = said()
    assert code == 2
    assert line.startswith("error: no cluster found: ")
    assert "--kubeconfig" in line


def test_a_wrong_kubeconfig_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("clusters: 7")
    code, line = said(f"--kubeconfig={tmp_path / 'kubeconfig'}")
    assert code == 2
    assert line.startswith(f"error: {tmp_path / 'kubeconfig'}")


def test_an_invalid_configuration_is_one_clear_line(tmp_path: Path) -> None:
    code, line = said(f"--config={write(tmp_path, parallelism=-1)}")
    assert code == 2
    assert "parallelism: Invalid value: -1" in line


def test_a_configuration_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    assert said(f"--config={tmp_path / 'none.yaml'}") == (
        2,
        f"error: {tmp_path / 'none.yaml'}: No such file or directory",
    )


# ── situate's own control plane ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The directory of a control plane."""
    (tmp_path / "kubeconfig").write_text("{}")
    return tmp_path


def test_a_server_is_a_directory_with_its_kubeconfig(ran: list[Settings], own: Path) -> None:
    got = settings(ran, "--server", str(own))
    assert (got.kubeconfig, got.master, got.guarded) == (str(own / "kubeconfig"), None, True)


def test_a_server_is_a_url_and_the_kubeconfig_says_who_we_are(ran: list[Settings]) -> None:
    got = settings(ran, "--server", "https://127.0.0.1:7443", "--kubeconfig", "who")
    assert (got.kubeconfig, got.master, got.guarded) == ("who", "https://127.0.0.1:7443", True)


def test_with_a_server_of_our_own_the_lease_is_that_of_its_scheduler_and_nothing_limits_requests(
    ran: list[Settings], own: Path
) -> None:
    config = settings(ran, "--server", str(own)).load().config
    lease = config.leader_election
    assert (lease.resource_namespace, lease.resource_name) == ("kube-system", "situate-scheduler")
    assert config.client_connection.qps < 0


def test_flags_that_are_given_win_over_what_a_server_of_our_own_stands_for(ran: list[Settings], own: Path) -> None:
    flags = ("--leader-elect-resource-name", "mine", "--kube-api-qps", "7")
    config = settings(ran, "--server", str(own), *flags).load().config
    assert (config.leader_election.resource_name, config.client_connection.qps) == ("mine", 7)


@pytest.mark.parametrize(
    "arguments, said",
    [
        pytest.param(["--server", "nowhere"], "no control plane was ever started in nowhere", id="an empty directory"),
        pytest.param(["--server", "https://a", "--master", "b"], "give one of them", id="with --master"),
        pytest.param(["--server", ".", "--kubeconfig", "k"], "a directory has its own", id="a directory's is its own"),
    ],
)
def test_a_server_that_makes_no_sense_is_one_clear_line(arguments: list[str], said: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.count("\n") == 1


def test_a_fleet_has_a_name_and_a_member_and_elects_nobody(ran: list[Settings], own: Path) -> None:
    got = settings(ran, "--server", str(own), "--fleet", "prod/one", "--pool-label", "pool")
    assert got.fleet is not None
    assert (got.fleet.fleet, got.fleet.member, got.fleet.pool_label) == ("prod", "one", "pool")
    assert (got.fleet.lease_s, got.fleet.renew_s) == (5.0, 1.0)
    assert not got.load().config.leader_election.leader_elect
    assert settings(ran, "--server", str(own)).fleet is None


def test_the_flags_of_an_election_are_those_of_a_place_in_the_fleet(ran: list[Settings], own: Path) -> None:
    flags = ("--leader-elect-lease-duration", "2s", "--leader-elect-retry-period", "500ms")
    got = settings(ran, "--server", str(own), "--fleet", "prod/one", *flags)
    assert got.fleet is not None
    assert (got.fleet.lease_s, got.fleet.renew_s) == (2.0, 0.5)


def test_a_member_without_a_name_is_given_one(ran: list[Settings], own: Path) -> None:
    first, second = (settings(ran, "--server", str(own), "--fleet", "prod").fleet for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.member != second.member


@pytest.mark.parametrize(
    "arguments, said",
    [
        pytest.param(["--fleet", "prod/one"], "--fleet goes with --server", id="on a cluster that guards no binds"),
        pytest.param(["--pool-label", "pool"], "--pool-label goes with --fleet", id="pools without a fleet"),
        pytest.param(["--server", "DIR", "--fleet", "Prod/one"], "is not a name", id="a name that a Lease cannot have"),
        pytest.param(["--server", "DIR", "--fleet", "prod/"], "is not a name", id="an empty member"),
        pytest.param(["--server", "DIR", "--fleet", "a", "--shadow"], "do not go together", id="a shadow"),
        pytest.param(
            ["--server", "DIR", "--fleet", "a", "--leader-elect-lease-duration", "500ms"],
            "at least 1s",
            id="a lease that is too short",
        ),
    ],
)
def test_a_fleet_that_makes_no_sense_is_one_clear_line(own: Path, arguments: list[str], said: str) -> None:
    result = call(*(str(own) if word == "DIR" else word for word in arguments))
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.count("\n") == 1
