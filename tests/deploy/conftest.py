"""What the tests of what is deployed share."""

from tests.build.helm import helm

__all__ = ["helm"]
