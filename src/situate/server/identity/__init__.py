"""Who sends a request and whether they may: authentication, authorization, admission of rights, audit.

`setup` builds everything; `identity` is what a request passes: `authentication` by the certificates of `pki` or by
`tokens`, then `authorization`, and the log of `audit`. `create_handlers` answers access reviews and token requests,
`joining` gives nodes their certificates, `users` those of people. `bootstrap` has the objects of a new cluster.
Nothing here speaks HTTP.
"""
