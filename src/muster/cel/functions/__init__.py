"""The functions that Kubernetes adds to the language, one module a library.

A library is a tuple of `Function`. The declared parameters serve the check; at run time the evaluator only knows plain
kinds of values, so that values of Kubernetes' own types travel as tagged bytes (`muster.cel.functions.function`).
"""

from __future__ import annotations

from muster.cel.functions import addresses, formats, lists, maps, numbers, quantity, regex, semver, url
from muster.cel.functions.function import Codec, Function

KUBERNETES: tuple[Function, ...] = (
    *addresses.FUNCTIONS,
    *formats.FUNCTIONS,
    *lists.FUNCTIONS,
    *maps.FUNCTIONS,
    *numbers.FUNCTIONS,
    *quantity.FUNCTIONS,
    *regex.FUNCTIONS,
    *semver.FUNCTIONS,
    *url.FUNCTIONS,
)

CODECS: tuple[Codec, ...] = (
    addresses.IP_CODEC,
    addresses.CIDR_CODEC,
    formats.CODEC,
    quantity.CODEC,
    semver.CODEC,
    url.CODEC,
)
