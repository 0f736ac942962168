"""What holds for every test: the two profiles of the property tests.

`make test` runs `quick`, `make test-full` and `make e2e` run `full`; plain pytest tries as much as `full`. Tests that
need another number of examples than the profile's ask `tests.build.examples` for it.
"""

from hypothesis import settings

from tests.build.examples import FULL

settings.register_profile("quick", max_examples=FULL // 4, derandomize=True)
settings.register_profile("full", max_examples=FULL, print_blob=True)
