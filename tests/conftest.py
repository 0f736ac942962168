"""What holds for every test: the two profiles of the property tests.

`make test` runs `quick`, `make test-full` and `make e2e` run `full`; plain pytest tries as much as `full`. Tests that
need another number of examples than the profile's ask `tests.build.examples` for it. In CI the examples of `full`
are the same each time, so that what lands does not depend on luck; elsewhere they are new ones in every run.
"""

import os

from hypothesis import settings

from tests.build.examples import FULL

settings.register_profile("quick", max_examples=FULL // 4, derandomize=True)
settings.register_profile("full", max_examples=FULL, derandomize="CI" in os.environ, print_blob=True)
