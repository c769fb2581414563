"""`situate envtest`: programs that stand in for kube-apiserver and etcd in tests of Go projects."""

import click

from situate.cli import CommandGroup
from situate.cli.commands.envtest.assets import assets
from situate.cli.commands.envtest.etcd import etcd
from situate.cli.commands.envtest.kube_apiserver import kube_apiserver


@click.group(cls=CommandGroup)
def envtest() -> None:
    """Test controllers that are written in Go, with controller-runtime's envtest, on this API server.

    `situate envtest assets DIR` writes the programs that envtest starts; tests find them by KUBEBUILDER_ASSETS=DIR.
    """


for command in (assets, kube_apiserver, etcd):
    envtest.add_command(command)
