"""The libraries of Kubernetes' environment for stored expressions, in the order of their declaration."""

from situate.core.cel.functions import Library
from situate.core.cel.libraries import (
    arithmetic,
    authorization,
    cidr,
    conversions,
    ip,
    lists,
    named_formats,
    optionals,
    quantity,
    regexes,
    semver,
    sets,
    strings,
    times,
    two_variables,
    urls,
)
from situate.core.cel.macros import STANDARD_MACROS

LIBRARIES = (
    Library(macros=STANDARD_MACROS),
    arithmetic.LIBRARY,
    conversions.LIBRARY,
    times.LIBRARY,
    urls.LIBRARY,
    regexes.LIBRARY,
    lists.KUBERNETES,
    authorization.LIBRARY,
    optionals.LIBRARY,
    quantity.LIBRARY,
    strings.LIBRARY,
    sets.LIBRARY,
    ip.LIBRARY,
    cidr.LIBRARY,
    named_formats.LIBRARY,
    two_variables.LIBRARY,
    semver.LIBRARY,
    lists.EXTENSION,
)
