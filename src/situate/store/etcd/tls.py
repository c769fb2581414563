"""The TLS of a client of etcd."""

from __future__ import annotations

import ssl
from tempfile import NamedTemporaryFile

from situate.store.etcd.settings import EtcdSettings


def client_context(settings: EtcdSettings) -> ssl.SSLContext:
    """With our certificate, if there is one; trusting the given authority, or the system's."""
    authority = None if settings.ca is None else settings.ca.decode()
    context = ssl.create_default_context(cadata=authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    if settings.certificate is not None:
        with NamedTemporaryFile() as pair:  # Python reads them from a file only; this one is ours alone
            pair.write(settings.certificate + b"\n" + (settings.key or b""))
            pair.flush()
            context.load_cert_chain(pair.name)
    return context
