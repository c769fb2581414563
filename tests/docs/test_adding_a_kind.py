"""docs/internals/adding-a-kind.md: its steps, applied to a copy of the source, serve the kind."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "internals" / "adding-a-kind.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = dict(text.removeprefix("# ").split("\n", 1) for language, text in BLOCKS if language == "python")
MESSAGES, SECTION, ENTRY = (text for language, text in BLOCKS if not language)
SERVED = """
from situate.server.discovery import Discovery
from situate.server.openapi import OpenApi
from situate.wire.patching.schema import blank

assert b'"shortNames":["ctb"]' in Discovery().plain("/apis/certificates.k8s.io/v1beta1", "").body
assert b"certificates.v1beta1.ClusterTrustBundle" in OpenApi().document("apis/certificates.k8s.io/v1beta1").body
assert blank("certificates.k8s.io/v1beta1", "ClusterTrustBundle")["spec"]["trustBundle"] == ""
"""


def followed(folder: Path) -> None:
    """The source with the page's steps applied to it."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    schema = folder / "src/situate/wire/schema/groups/certificates.py"
    before, end, _ = schema.read_text().rpartition('"""')
    schema.write_text(before + MESSAGES + end + "\n")
    sections = folder / "src/situate/wire/schema/table.py"
    _insert(sections, SECTION, '    "certificates.v1": ("certificates", "certificates.k8s.io/v1"),\n')
    table = folder / "src/situate/server/kinds/__init__.py"
    imported = "from situate.server.kinds.certificates import clustertrustbundle\n"
    _insert(table, ENTRY, "    certificatesigningrequest.KIND,\n")
    text = table.read_text()
    table.write_text(
        text.replace("from situate.server.kinds.strategy", imported + "from situate.server.kinds.strategy", 1)
    )


def _insert(file: Path, line: str, after: str) -> None:
    text = file.read_text()
    assert after in text
    file.write_text(text.replace(after, after + line, 1))


def test_whoever_follows_the_page_serves_the_kind(tmp_path: Path) -> None:
    followed(tmp_path)
    env = os.environ | {"PYTHONPATH": f"{tmp_path / 'src'}:{ROOT / 'tests'}"}
    tests = str(tmp_path / "tests/server/kinds/test_clustertrustbundle.py")
    options = ("-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--import-mode", "importlib", "-q", "-n0")
    for command in (["-m", "pytest", *options, tests], ["-c", SERVED]):
        done = subprocess.run(
            [sys.executable, *command], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
