"""A real node: containerd and a kubelet, in a folder of their own, on this machine.

    with Containerd(folder) as runtime, Kubelet(folder, runtime, server, ...) as kubelet: ...

Root is needed, and `make kubelet` (containerd, runc and busybox from the system's packages; the kubelet is built).
All traffic stays on this machine.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kubernetes import images, parts
from kubernetes.parts import Part, free_ports

PROGRAMS = ("containerd", "runc", "ctr", "busybox")
PAUSE = "localhost/pause:1"
BUSYBOX = "localhost/busybox:1"
CNI = Path("/usr/lib/cni")
IMPORT_S = 300.0

CONTAINERD = """version = 2
root = "{home}/root"
state = "{home}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
oom_score = 0
[grpc]
  address = "{home}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{home}/cni"
[plugins."io.containerd.internal.v1.opt"]
  path = "{home}/opt"
"""


def missing() -> str | None:
    """Why no real node can be started here, or None."""
    if os.geteuid():
        return "a kubelet needs root"
    absent = [one for one in PROGRAMS if shutil.which(one) is None]
    absent += [] if os.access(program(), os.X_OK) else ["kubelet"]
    return f"not here: {', '.join(absent)} (make kubelet)" if absent else None


def program() -> Path:
    given = parts.folder() / "kubelet"
    return given if given.exists() else Path(__file__).resolve().parent / "bin" / "kubelet"


class Containerd:
    """`network`: the plugins of pods' network. "native" copies an image for each container, on any file system."""

    def __init__(self, home: Path, *, network: object = None, snapshotter: str = "native") -> None:
        self.home = home
        self._network = network or _network(home)
        self._snapshotter = snapshotter
        self._namespaces = _namespaces()
        self.part = Part(
            "containerd",
            [shutil.which("containerd") or "", "--config", str(home / "config.toml")],
            home / "containerd.log",
        )

    @property
    def socket(self) -> Path:
        return self.home / "containerd.sock"

    def __enter__(self) -> "Containerd":
        (self.home / "cni").mkdir(parents=True)
        (self.home / "cni" / "10-test.conflist").write_text(json.dumps(self._network))
        config = CONTAINERD.format(home=self.home, pause=PAUSE, snapshotter=self._snapshotter)
        (self.home / "config.toml").write_text(config)
        self.part.start(lambda: self.ctr("version", check=False).returncode == 0, 30.0)
        self.load(images.pause(self.home / "pause.tar", PAUSE))
        self.load(images.busybox(self.home / "busybox.tar", BUSYBOX))
        return self

    def load(self, archive: Path) -> None:
        self.ctr("images", "import", "--snapshotter", self._snapshotter, str(archive), within_s=IMPORT_S)

    def ctr(self, *words: str, check: bool = True, within_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        command = ["ctr", "--address", str(self.socket), "--namespace", "k8s.io", *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=within_s)
        if check and done.returncode:
            raise AssertionError(f"ctr {' '.join(words)}: {done.stderr}")
        return done

    def tasks(self) -> list[str]:
        return self.ctr("tasks", "list", "--quiet", check=False).stdout.split()

    def __exit__(self, *_: object) -> None:
        for one in self.tasks():
            self.ctr("tasks", "delete", "--force", one, check=False)
        self.part.stop()
        _unmount(self.home)
        for space in _namespaces() - self._namespaces:  # with them go their links and routes
            subprocess.run(["umount", str(space)], check=False, capture_output=True, timeout=10)
            space.unlink(missing_ok=True)


def _namespaces() -> set[Path]:
    """The network namespaces of sandboxes on this machine."""
    return set(Path("/run/netns").glob("cni-*")) if Path("/run/netns").is_dir() else set()


class Kubelet:
    """A kubelet of this name. Its kubeconfig is given, or made by TLS bootstrap from `bootstrap`."""

    def __init__(
        self,
        home: Path,
        runtime: Containerd,
        authority: Path,
        *,
        name: str = "real",
        kubeconfig: Path | None = None,
        bootstrap: Path | None = None,
        serving: bool = True,
        config: Mapping[str, object] | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """`config`: what is to differ from our KubeletConfiguration."""
        self.home, self.name, self.port = home, name, free_ports(1)[0]
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.json").write_text(
            json.dumps(self._config(runtime, authority, serving=serving) | dict(config or {}))
        )
        command = [str(program()), "--config", str(home / "config.json"), "--root-dir", str(home / "root")]
        command += ["--cert-dir", str(home / "pki"), "--hostname-override", name, "--v", "2", *flags]
        command += ["--kubeconfig", str(kubeconfig or home / "kubeconfig")]
        if bootstrap is not None:
            command += ["--bootstrap-kubeconfig", str(bootstrap)]
        self.part = Part(f"kubelet {name}", command, home / "kubelet.log")

    def _config(self, runtime: Containerd, authority: Path, *, serving: bool) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "port": self.port,
            "readOnlyPort": 0,
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "Webhook"},
            "serverTLSBootstrap": serving,
            "rotateCertificates": True,
            "containerRuntimeEndpoint": f"unix://{runtime.socket}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "5s",
            "podLogsDir": str(self.home / "logs"),
            "staticPodPath": "",
            "resolvConf": "/etc/resolv.conf",
            "makeIPTablesUtilChains": False,
            "registerNode": True,
        }

    def __enter__(self) -> "Kubelet":
        self.part.start(lambda: True, 30.0)
        return self

    def __exit__(self, *_: object) -> None:
        self.part.stop()
        _unmount(self.home)


def _network(home: Path) -> dict[str, object]:
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.88.77.0/24"}]], "dataDir": str(home / "ipam")}
    point = {"type": "ptp", "ipMasq": False, "ipam": ipam | {"routes": [{"dst": "0.0.0.0/0"}]}}
    return {"cniVersion": "0.4.0", "name": "test", "plugins": [point]}


def _unmount(home: Path) -> None:
    """What containers and volumes left mounted below this folder, the innermost first."""
    for _ in range(3):  # one may hide another
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for one in sorted((one for one in mounts if one.startswith(f"{home}/")), reverse=True):
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(["umount", "--lazy", one], check=False, capture_output=True, timeout=10)
