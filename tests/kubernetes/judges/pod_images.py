"""The images that the suite asks for, made here without a registry, of Kubernetes' module and Debian's packages.

The names are Kubernetes' own. What is behind one differs from what the registry has in its base (Debian instead of
Alpine), and where another version stands under two names, PROGRAMS_OF says so.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kubernetes import images
from kubernetes.judges.common import BUILD, KUBERNETES, module_directory
from tools.image import debian

REGISTRY = "registry.k8s.io/e2e-test-images"
AGNHOST = (f"{REGISTRY}/agnhost:2.63.0", f"{REGISTRY}/agnhost:2.55")
"""The older name is for specs that change a pod's image. Behind both is the newer program."""
NGINX = (f"{REGISTRY}/nginx:1.15-4", f"{REGISTRY}/nginx:1.27-0")
"""Behind both is Debian's."""
BUSYBOX = f"{REGISTRY}/busybox:1.37.0-1"
PAUSE = "registry.k8s.io/pause:3.10.2"
NONEWPRIVS = f"{REGISTRY}/nonewprivs:1.4"
DNS_TOOLS = f"{REGISTRY}/glibc-dns-testing:2.0.0"
PETS = {"kitten": f"{REGISTRY}/kitten:1.8", "nautilus": f"{REGISTRY}/nautilus:1.8"}
COREDNS = "localhost/coredns:1"

SHELL = ("base-files", "libc6")
TOOLS = ("dash", "bash", "curl", "bind9-dnsutils", "netcat-openbsd", "iproute2", "libc-bin")
"""What agnhost's Dockerfile installs, but for iperf and ipcs; the last has getent. The rest is busybox,
whose own shell would take its own nc before the one that the specs expect."""
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USERS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
    "user-defined-in-image:x:1000:1000::/:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\n"
    "group-defined-in-image:x:50000:user-defined-in-image\n",
}
SERVED = "usr/share/nginx/html"
NGINX_CONF = f"""
error_log /dev/stderr;
pid /tmp/nginx.pid;
events {{}}
http {{
  include mime.types;
  access_log /dev/stdout;
  server {{ listen 80; root /{SERVED}; }}
}}
"""


def archives(folder: Path, programs: Mapping[str, Path]) -> list[Path]:
    """All of them, in a folder in this one, which is made once; `programs`: what was built, by name."""
    content = [Path(__file__), Path(images.__file__), *sorted(programs.values())]
    version = hashlib.sha256(b"".join(hashlib.sha256(one.read_bytes()).digest() for one in content)).hexdigest()[:12]
    made = folder / f"images-{version}"
    if not made.exists():
        for old in folder.glob("images-*"):
            shutil.rmtree(old)
        print("  making images", flush=True)
        new = folder / "images-new"
        new.mkdir(parents=True)
        _make(new, programs)
        new.rename(made)
    return sorted(made.glob("*.tar"))


def _make(folder: Path, programs: Mapping[str, Path]) -> None:
    sources = module_directory("k8s.io/kubernetes", KUBERNETES) / "test" / "images"
    tools = images.layer(*_debian(folder, TOOLS))
    agnhost = images.layer(
        {
            "agnhost": _program(programs["agnhost"]),
            "localhost.crt": ((sources / "agnhost" / "porter" / "localhost.crt").read_bytes(), 0o644),
            "localhost.key": ((sources / "agnhost" / "porter" / "localhost.key").read_bytes(), 0o644),
            "uploads/.kept": (b"", 0o644),
        },
        {"agnhost-2": "agnhost"},
    )
    runs = {"Entrypoint": ["/agnhost"], "Cmd": ["pause"], "Env": [PATH]}
    images.archive(folder / "agnhost.tar", AGNHOST, [tools, agnhost], runs)
    images.archive(folder / "dns-tools.tar", [DNS_TOOLS], [tools], {"Cmd": ["/bin/bash"], "Env": [PATH]})
    images.archive(folder / "busybox.tar", [BUSYBOX], [images.layer(*_busybox())], {"Cmd": ["sh"], "Env": [PATH]})
    images.pause(folder / "pause.tar", PAUSE)
    images.archive(folder / "nginx.tar", NGINX, [_nginx(folder)], _NGINX_RUNS)
    for name, full in PETS.items():
        html = sources / name / "html"
        pet = images.layer({one.name: (one.read_bytes(), 0o644) for one in sorted(html.iterdir())})
        images.archive(folder / f"{name}.tar", [full], [tools, agnhost, pet], runs | {"Cmd": ["test-webserver"]})
    setuid = images.layer({"usr/local/bin/nnp": (programs["nonewprivs"].read_bytes(), 0o6755)})
    images.archive(folder / "nonewprivs.tar", [NONEWPRIVS], [tools, setuid], {"Cmd": ["nnp"], "Env": [PATH]})
    dns = images.layer({"coredns": _program(programs["coredns"])})
    images.archive(folder / "coredns.tar", [COREDNS], [tools, dns], {"Entrypoint": ["/coredns"]})


_NGINX_RUNS = {"Cmd": ["nginx", "-g", "daemon off;"], "Env": [PATH]}


def _nginx(folder: Path) -> bytes:
    files, links = _debian(folder, ("nginx", "nginx-common"))
    files = {name: one for name, one in files.items() if not name.startswith("etc/nginx/")} | {
        "etc/nginx/nginx.conf": (NGINX_CONF.encode(), 0o644),
        "etc/nginx/mime.types": files["etc/nginx/mime.types"],
        f"{SERVED}/index.html": (b"<html><body>It works.</body></html>\n", 0o644),
        "var/lib/nginx/.kept": (b"", 0o644),
        "var/log/nginx/.kept": (b"", 0o644),
    }
    return images.layer(files, links)


def _busybox() -> tuple[images.Files, dict[str, str]]:
    """Debian's, with all its commands; and users."""
    program = Path("/usr/bin/busybox")
    listed = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split()
    files = {"bin/busybox": (program.read_bytes(), 0o755)} | {
        name: (text.encode(), 0o644) for name, text in USERS.items()
    }
    return files, {f"bin/{name}": "busybox" for name in listed if name != "busybox"}


def _debian(folder: Path, wanted: Sequence[str]) -> tuple[images.Files, dict[str, str]]:
    """These packages and the libraries that they need; busybox is what else a shell looks for."""
    root = folder / f"root-{wanted[0]}"
    root.mkdir()
    found = debian.packages([*SHELL, *wanted])
    debian.unpack(debian.download(found, BUILD / "packages"), root)
    files: dict[str, tuple[bytes, int]] = {}
    links: dict[str, str] = {}
    for path in _below(root):
        name = str(path.relative_to(root))
        if path.is_symlink():
            links[name] = str(path.readlink())
        elif path.is_file():
            files[name] = (path.read_bytes(), path.stat().st_mode & 0o7777)
    more, applets = _busybox()
    there = {Path(name).name for name in (*files, *links) if "/bin/" in f"/{name}" or "/sbin/" in f"/{name}"}
    for name, one in more.items():
        files[name.replace("bin/", "usr/bin/", 1)] = one
    for name in applets:
        if Path(name).name not in there:
            links[f"usr/{name}"] = "busybox"
    shutil.rmtree(root)
    if "usr/bin/nc.openbsd" in files:  # one of those between which an installation chooses
        links["usr/bin/nc"] = "nc.openbsd"
    return files, links


def _below(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        for name in sorted((*folders, *names)):
            yield Path(folder) / name


def _program(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), 0o755
