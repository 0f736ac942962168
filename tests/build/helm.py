"""The real helm, built once and cached outside the checkout."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def helm() -> Path:
    """The program; tests that need it are skipped where it is not built and cannot be."""
    built = subprocess.run([ROOT / "e2e" / "helm" / "build.sh"], capture_output=True, text=True, check=False)
    if built.returncode == 3:
        pytest.skip(f"no helm: {built.stderr.strip()}")
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip().splitlines()[-1])
