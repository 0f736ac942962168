"""The checkers find what they are for: each known kind of bug is put into the server, and must be complained about."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from process import COMMAND
from test_kill import Siege
from test_linearizable import a_busy_while

from muster.server.core import ApiServer
from muster.server.object_lister import ObjectLister, Page
from muster.server.request import Response
from muster.server.store.records import Record
from muster.server.store.sqlite import SqliteStore
from muster.server.watch import BOOKMARK, Event, Watch

pytestmark = pytest.mark.slow
Bug = Callable[[pytest.MonkeyPatch], None]
_rng = random.Random(7)


def acknowledges_before_it_commits(patch: pytest.MonkeyPatch) -> None:
    commit = SqliteStore._commit

    async def early(self: SqliteStore, table: str, change: Any) -> None:
        running = commit(self, table, change)
        running.send(None)  # accepted, and not waited for
        running.close()

    patch.setattr(SqliteStore, "_commit", early)


def changing_batches(change: Callable[[list[Event]], list[Event]]) -> Bug:
    """A bug in what a watch sends: some batches are not what they should be."""

    def bug(patch: pytest.MonkeyPatch) -> None:
        take = Watch._take

        def taken(self: Watch) -> list[Event] | None:
            events = take(self)
            return change(events) if events else events

        patch.setattr(Watch, "_take", taken)

    return bug


def sometimes(change: Callable[[Event], Event], likely: float = 0.2) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [change(event) if _rng.random() < likely else event for event in events]


def forgets_what_leaves_the_selection(patch: pytest.MonkeyPatch) -> None:
    seen = Watch._seen

    def some(self: Watch, change: Any) -> Event | None:
        event = seen(self, change)
        return None if event is not None and event.type == "DELETED" and change.type == "MODIFIED" else event

    patch.setattr(Watch, "_seen", some)


def resumes_one_change_too_late(patch: pytest.MonkeyPatch) -> None:
    after = Watch._after
    patch.setattr(Watch, "_after", lambda self, revision: min(after(self, revision) + 1, self._table.end))


def resumes_one_change_too_early(patch: pytest.MonkeyPatch) -> None:
    after = Watch._after
    patch.setattr(Watch, "_after", lambda self, revision: max(after(self, revision) - 1, self._table.dropped))


def lists_with_a_wrong_revision(patch: pytest.MonkeyPatch) -> None:
    cut = ObjectLister._cut

    def older(self: ObjectLister, *arguments: Any) -> Page:
        page = cut(self, *arguments)
        return page._replace(revision=page.revision - 1)

    patch.setattr(ObjectLister, "_cut", older)


def serves_old_objects(patch: pytest.MonkeyPatch) -> None:
    get = ApiServer._get

    async def stale(self: ApiServer, call: Any) -> Response:
        past = [each.record for each in self.store.table(call.kind.table).changes if each.record.key == call.key]
        old = len(past) > 1 and _rng.random() < 0.5
        return Response(200, call.view.object(past[-2])) if old else await get(self, call)

    patch.setattr(ApiServer, "_get", stale)


def _with_other_body(event: Event) -> Event:
    if event.record is None:
        return event
    body = event.record.body.replace(b'"mark"', b'"Mark"')
    return event._replace(record=Record(event.record.key, event.revision, event.record.uid, body))


BUGS: dict[str, tuple[Bug, str]] = {
    "it acknowledges before it commits": (acknowledges_before_it_commits, "stale|acknowledged|found nothing"),
    "a watch drops an event": (
        changing_batches(lambda events: [event for event in events if _rng.random() > 0.1]),
        "not reliable",
    ),
    "a watch sends an event twice": (changing_batches(lambda events: [*events, events[-1]]), "not unique"),
    "a watch changes the order": (changing_batches(lambda events: events[::-1]), "not ordered"),
    "a change looks like a creation": (
        changing_batches(sometimes(lambda event: event._replace(type="ADDED"))),
        r"ADDED \S+ at \d+ is ",
    ),
    "an event has another object": (changing_batches(sometimes(_with_other_body)), "not what was stored"),
    "a watch forgets what leaves the selection": (forgets_what_leaves_the_selection, "not reliable"),
    "a bookmark comes too early": (
        changing_batches(lambda events: [Event(BOOKMARK, None, events[-1].revision), *events]),
        "bookmark",
    ),
    "a watch resumes one change too late": (resumes_one_change_too_late, "not reliable"),
    "a watch resumes one change too early": (resumes_one_change_too_early, "not unique|not of its selection|bookmark"),
    "a list names a wrong revision": (lists_with_a_wrong_revision, "list at"),
    "a get serves an old object": (serves_old_objects, "is stale|although it was there"),
}


@pytest.mark.parametrize("name", BUGS)
async def test_a_bug_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bug, words = BUGS[name]
    bug(monkeypatch)

    for seed in range(5):
        run = await a_busy_while(tmp_path / str(seed), 0.7, seed)
        if any(re.search(words, complaint) for complaint in run.complaints()):
            return
    pytest.fail(f"five runs did not show that {name}")


EARLY = """
import time
from muster.server.store import sqlite
append, commit = sqlite.Log.append, sqlite.SqliteStore._commit

def slowly(self, batch):
    time.sleep(0.1)
    append(self, batch)

async def early(self, table, change):
    running = commit(self, table, change)
    running.send(None)
    running.close()

sqlite.Log.append = slowly
sqlite.SqliteStore._commit = early
from muster.cli.main import main
main()
"""


async def test_a_kill_finds_a_server_that_acknowledges_before_it_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("process.COMMAND", [*COMMAND[:3], EARLY, "up"])
    siege = Siege(tmp_path, seed=5)

    with pytest.raises(AssertionError, match="is lost"):
        for _ in range(3):
            await siege.round()
