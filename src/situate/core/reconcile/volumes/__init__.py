"""Binds claims to volumes, provisions volumes on nodes, and protects both from deletion while they are in use.

Three controllers: `claim` looks at one claim, `volume` at one volume, and `provisioner` creates the volumes of classes
that name it. A binding is written in two places, and the volume's side decides: a volume that names a claim is taken,
whether or not the claim names the volume yet. So each controller may stop after any write, and the next call goes on.
"""
