"""NodeJoin: a node requests its certificate. identity/joining answers it; nothing is stored."""

from typing import Final

from situate.server.kinds.kind import Kind

KIND: Final = Kind(
    "situate.dev/v1alpha1 nodejoins NodeJoin C - - ! create",
    rights={"situate:node-bootstrapper": "create"},
    description="NodeJoin asks for the client certificate of a node.",
    words={
        "NodeJoinSpec.nodeName": "The name of the node.",
        "NodeJoinSpec.request": "A certificate signing request in PEM with the node's key. Its subject is ignored.",
        "NodeJoinStatus.certificate": "The certificate in PEM, for system:node:<nodeName> in system:nodes.",
        "NodeJoinStatus.certificateAuthority": "The certificates of the cluster's authorities in PEM.",
    },
)
