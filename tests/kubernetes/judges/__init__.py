"""Kubernetes' own suites, built from Go modules and run against this API server: `make judges`.

Nothing of theirs is committed. Sources, programs and reports are in JUDGES_CACHE, which the Makefile names.
"""
