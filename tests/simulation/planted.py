"""Planted bugs: each is one change of the product that the simulator must find. `make faults-selftest` plants them.

A bug is a file below `src/muster`, a text that is there once, and what stands there instead. Each is a mistake that
somebody could make: something left out, done too early, or counted wrong.
"""

from __future__ import annotations

from typing import NamedTuple


class Bug(NamedTuple):
    name: str
    file: str
    there: str
    instead: str


BUGS = (
    # --- the store and the server ------------------------------------------------------------------
    Bug(
        "a write is acknowledged before it is synced",
        "server/store/sqlite.py",
        "            self._log.append(batch)\n            self._call(self._landed, len(batch))\n",
        "            self._call(self._landed, len(batch))\n            self._log.append(batch)\n",
    ),
    Bug(
        "a write that the disk refused is acknowledged",
        "server/store/sqlite.py",
        "                done.set_exception(StoreFailedError(why))\n",
        "                done.set_result(None)\n",
    ),
    Bug(
        "writers do not see what was accepted before them",
        "server/store/sqlite.py",
        "        return self.get(table, key) if found is None else found[1]\n",
        "        return self.get(table, key)\n",
    ),
    Bug(
        "a restarted store gives out revisions again",
        "server/store/sqlite.py",
        "        self.revision = self._accepted = max(self.revision, database.revision)\n",
        "        self.revision = self._accepted = max(self.revision, database.revision - 1)\n",
    ),
    Bug(
        "an update does not look at the expected revision",
        "server/store/base.py",
        "        if current is None or current.revision != expected:\n",
        "        if current is None:\n",
    ),
    Bug(
        "a watch leaves out the last of several changes",
        "server/watch.py",
        "        return [event for change in changes if (event := self._seen(change)) is not None]\n",
        "        changes = changes[:-1] if len(changes) > 1 else changes\n"
        "        return [event for change in changes if (event := self._seen(change)) is not None]\n",
    ),
    Bug(
        "history is forgotten and watches do not notice",
        "server/store/table.py",
        "            self.floor = self.changes[drop - 1].revision\n",
        "",
    ),
    Bug(
        "a watch repeats the change that it was resumed from",
        "server/store/table.py",
        "        return self.dropped + bisect_right(self.changes, revision, key=_revision_of)\n",
        "        return self.dropped + bisect_left(self.changes, revision, key=_revision_of)\n",
    ),
    Bug(
        "a bookmark is ahead of the events",
        "server/watch.py",
        "        self._revision = self._store.revision\n        return Event(BOOKMARK, None, self._revision)\n",
        "        self._revision = self._store.revision + 1\n        return Event(BOOKMARK, None, self._revision)\n",
    ),
    Bug(
        "a bound pod can be bound again",
        "server/subresources.py",
        '        if spec.get("nodeName"):\n            why =',
        '        if spec.get("nodeName") == node:\n            why =',
    ),
    # --- the client --------------------------------------------------------------------------------
    Bug(
        "after 410 the watch goes on from now on",
        "client/reflector.py",
        "                return await self._list()\n",
        '                self._version, self.order = "", 0\n                return None\n',
    ),
    Bug(
        "an event right after the last one is taken for a repetition",
        "client/reflector.py",
        "        if order and order <= self.order:\n",
        "        if order and order <= self.order + 1:\n",
    ),
    # --- leader election ---------------------------------------------------------------------------
    Bug(
        "the fence is not asked",
        "engine/leader_election.py",
        "        if not self.may_write():\n            raise LeadershipLost(",
        "        if not self.leading.is_set():\n            raise LeadershipLost(",
    ),
    Bug(
        "a candidate does not wait until the lease has expired",
        "engine/leader_election.py",
        "        if self.holder and not mine and now < self._observed_at + lasts:\n",
        "        if self.holder and not mine and now < self._observed_at + lasts * 0.2:\n",
    ),
    Bug(
        "the deadline of a leader is the time of its last try",
        "engine/leader_election.py",
        "        if ours:\n            self.deadline = began + election.renew_deadline\n",
        "        self.deadline = began + election.renew_deadline\n",
    ),
    # --- calls -------------------------------------------------------------------------------------
    Bug(
        "the last member of a gang is not bound",
        "engine/api_dispatcher.py",
        "        self._barrier = None\n        volumes:",
        "        binds = [each for each in decisions if isinstance(each, Bind)]\n"
        "        if len(binds) > 2:\n"
        "            decisions = [each for each in decisions if each is not binds[-1]]\n"
        "        self._barrier = None\n        volumes:",
    ),
    Bug(
        "a bind without an answer is taken for done",
        "engine/api_calls/binding.py",
        "            except (ConnectionError, TimeoutError) as error:\n                unsure, reason = True, error\n"
        "            outcome",
        "            except (ConnectionError, TimeoutError):\n                return BOUND\n            outcome",
    ),
    Bug(
        "a bind that was refused is taken for done",
        "engine/api_calls/binding.py",
        "            if outcome is not None:\n                return outcome\n",
        "            return outcome or BOUND\n",
    ),
    Bug(
        "a bind that is put off is sent again without a look at its node",
        "engine/api_calls/binding.py",
        "        client = self._client.fenced(self._look_again)\n",
        "        client = self._client\n",
    ),
    Bug(
        "victims are deleted before they are marked",
        "engine/api_dispatcher.py",
        "        self._queue.submit(call, self._barrier)\n",
        "        self._queue.submit(call)\n",
    ),
    Bug(
        "calls behind a barrier are forgotten",
        "engine/call_queue.py",
        "                if self._queues[call.key][0] is call:\n                    self._offer(call)\n",
        "                if self._queues[call.key][0] is not call:\n                    self._offer(call)\n",
    ),
    Bug(
        "a pod that has another's name is not reported as gone",
        "engine/event_source.py",
        "            if before.metadata.uid != obj.metadata.uid:\n"
        "                self._remove(key, before)\n            elif",
        "            if",
    ),
    # --- the scheduler -----------------------------------------------------------------------------
    Bug(
        "a gang may start with one member less",
        "scheduler/groups/forest.py",
        "        group.minimum = minimum_of(obj)\n",
        "        group.minimum = max(1, minimum_of(obj) - 1)\n",
    ),
    Bug(
        "a refused bind goes on counting on its node",
        "scheduler/cycle/pod_events.py",
        "    if member.assumed:\n        state.version += 1\n        state.assumed.forget(member)\n"
        "    if member.group is not None:\n        state.checks",
        "    if member.group is not None:\n        state.checks",
    ),
    Bug(
        "nobody is woken when a pod leaves",
        "scheduler/cycle/pod_signals.py",
        "        signals.pod_gone(placed.slot, _highest_helped(state, member), awaited=placed.terminating)\n",
        "",
    ),
    Bug(
        "a nomination outlives its pod",
        "scheduler/cycle/pod_events.py",
        "    state.nominations.remove(member.uid)\n    state.preemptions.forget_pod(member.uid)\n",
        "    state.preemptions.forget_pod(member.uid)\n",
    ),
    Bug(
        "cordoned nodes are open",
        "scheduler/cache/node_columns.py",
        "        self._all_unschedulable[slot] = node.spec.unschedulable\n",
        "        self._all_unschedulable[slot] = False\n",
    ),
    Bug(
        "somebody of the same priority can be evicted",
        "scheduler/preemption/victims.py",
        "    low = (running.priority < below)",
        "    low = (running.priority <= below)",
    ),
    # --- controllers -------------------------------------------------------------------------------
    Bug(
        "a group goes while its pods are there",
        "controllers/podgroup_protection.py",
        "        elif held and not self._in_use(composite, (namespace, name)):\n"
        "            if await self._used_live(composite, group):\n",
        "        elif held:\n            if not held:\n",
    ),
    Bug(
        "pods are counted twice in a quota",
        "api/quota.py",
        "                sums[name] = _sum(sums[name], amount)\n    return sums\n\n\ndef _sum",
        "                sums[name] = _sum(_sum(sums[name], amount), amount)\n    return sums\n\n\ndef _sum",
    ),
    Bug(
        "decisions depend on chance",
        "scheduler/cycle/scheduler.py",
        "            decisions = preempt.unmark(state, state.preemptions.release_unclaimed())\n"
        "        return decisions\n",
        "            decisions = preempt.unmark(state, state.preemptions.release_unclaimed())\n"
        "        import random\n\n        random.shuffle(decisions)\n        return decisions\n",
    ),
)
