"""Records what the schedulers of tests, benchmarks and conformance scenarios decide, as one hash each.

    python -m pytest -p tools.record_decisions --record-decisions FILE tests/scheduler tests/promises
    python -m tools.record_decisions bench FILE
    python -m tools.record_decisions scenarios FILE [FOLDER]
    python -m tools.record_decisions stable FIRST SECOND FILE

FILE maps each test, benchmark or scenario to counts and hashes (`Recording.result`); `tools.compare_decisions`
compares two of them, `stable` keeps what two runs of the same code agree on. As a pytest plugin it makes a run
repeatable: pytest-randomly is off, and Hypothesis draws the same examples whatever the source of the tests and of the
code looks like.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.decision_recorder import Entry, Recorder

SUITE = Path(__file__).parents[2] / "shared" / "conformance"
SEED = 11
EXAMPLES = 200  # for each property test, whatever its own settings say
STEPS = 30  # of each run of a state machine

_recorder = Recorder()
_results: dict[str, Entry] = {}


def write(results: dict[str, Entry], path: Path) -> None:
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


# --- the pytest plugin -----------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption("--record-decisions", metavar="FILE", help="write hashes of all schedulers' decisions to FILE")
    pluginmanager.set_blocked("randomly")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-decisions") is None:
        return
    if config.getoption("numprocesses", None):
        raise pytest.UsageError("--record-decisions records one process: leave -n out")
    _forget_source_constants()
    _results.clear()
    _recorder.install()


def pytest_unconfigure(config: pytest.Config) -> None:
    path = config.getoption("--record-decisions")
    if path is not None:
        _recorder.uninstall()
        write(_results, Path(path))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--record-decisions") is not None:
        for item in items:
            _fix_examples(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.config.getoption("--record-decisions") is None:
        return (yield)
    with _recorder.recording() as recording:
        done = yield
    if not recording.empty:
        _results[item.nodeid] = recording.result()
    return done


def _forget_source_constants() -> None:
    """Hypothesis likes to draw numbers and strings that it reads in the code under test; code that moved has others."""
    from hypothesis.internal.conjecture import providers

    nothing = providers.Constants()
    providers._get_local_constants = lambda: nothing


def _fix_examples(item: pytest.Item) -> None:
    """One seed and one number of examples; Hypothesis' own derandomization hashes the source of the test."""
    import hypothesis

    test = getattr(item, "obj", None)
    function = getattr(test, "__func__", test)
    if not getattr(function, "is_hypothesis_test", False):
        return
    machine = getattr(function, "_hypothesis_state_machine_class", None)
    if machine is None:
        hypothesis.seed(SEED)(function)
        function._hypothesis_internal_use_settings = _fixed(function._hypothesis_internal_use_settings)
    else:
        machine._hypothesis_internal_use_seed = SEED
        owner: Any = item.parent.obj  # type: ignore[union-attr]
        owner.settings = _fixed(owner.settings)


def _fixed(settings: Any) -> Any:
    import hypothesis

    return hypothesis.settings(
        settings,
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        derandomize=False,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


# --- the command -----------------------------------------------------------------------------------


def stable(first: Path, second: Path, path: Path) -> int:
    """Keep what two runs of the same code agree on, and name what is left out."""
    one, two = (json.loads(each.read_text()) for each in (first, second))
    kept = {name: entry for name, entry in one.items() if two.get(name) == entry}
    for name in sorted((one.keys() | two.keys()) - kept.keys()):
        print(f"not stable: {name}")
    write(kept, path)
    print(f"stable: {len(kept)}")
    return 0


def _scenarios(path: Path, suite: Path) -> int:
    from tools import scenario_decisions

    if not suite.is_dir():
        print(f"skipped: there is no conformance suite at {suite}")
        return 0
    write(scenario_decisions.record(suite), path)
    return 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["bench", path]:
            from tools import bench_decisions

            write(bench_decisions.record(), Path(path))
            return 0
        case ["scenarios", path, *rest] if len(rest) <= 1:
            return _scenarios(Path(path), Path(rest[0]) if rest else SUITE)
        case ["stable", first, second, path]:
            return stable(Path(first), Path(second), Path(path))
        case _:
            print(__doc__, file=sys.stderr)
            return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
