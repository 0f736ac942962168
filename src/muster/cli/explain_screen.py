"""An explanation as text: one screen, the answer first, no line wider than the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from muster.cli.ages import age
from muster.scheduler.status.messages import domain_text, have_text, short_key

if TYPE_CHECKING:
    from muster.scheduler.explain.explanation import Domain, Explanation, Holder, Level, Rejection

MOST_LEVELS = 16


def screen(found: Explanation, width: int = 120) -> str:
    """The whole answer as text."""
    return "\n".join(_lines(found, max(width, 40)))


def _lines(found: Explanation, width: int) -> Iterator[str]:
    yield from _wrapped(_sentence(found.sentence), width)
    if found.remark:
        yield from _wrapped(_sentence(found.remark), width)
    if found.levels:
        yield ""
        yield from _tree(found, width)
    if found.rules:
        yield ""
        pending = found.levels[0].pending if found.levels else 1
        yield from _rules(found.rules, pending, width)
    if found.devices:
        yield ""
        yield "Devices:"
        for sentence in found.devices:
            yield from _wrapped(sentence, width, "  ", "    ")
    if found.holders:
        yield ""
        yield f"Who holds what it needs{f' in {found.held_in}' if found.held_in else ''}:"
        for holder in found.holders:
            yield from _wrapped(_holder(holder), width, "  ", "      ")
    yield from _waiting(found, width)
    if found.events:
        yield ""
        yield "Its events say:"
        for event in found.events:
            yield from _wrapped(event, width, "  ", "    ")
    if found.missing:
        yield ""
        text = f"This is what the objects say of themselves. To see why and what would help: {found.missing}."
        yield from _wrapped(text, width)
    if found.verdict in ("Infeasible", "Undecided"):
        yield ""
        yield "What would help (each was tried):"
    if found.verdict in ("Infeasible", "Undecided") and not found.suggestions:
        text = "no single change was found: not of labels, taints, topology, minimum, who runs, or more such nodes"
        yield from _wrapped(text, width, "  ", "  ")
    if found.suggestions:
        for number, suggestion in enumerate(found.suggestions, 1):
            yield from _wrapped(suggestion.text, width, f"  {number}. ", "     ")


def _wrapped(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=later, break_long_words=True, break_on_hyphens=False
    )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


# --- the tree --------------------------------------------------------------------------------------


def _tree(found: Explanation, width: int) -> Iterator[str]:
    """The groups, and under each the places that came nearest; of a very large tree the part that is open."""
    shown = found.levels
    if len(shown) > MOST_LEVELS:
        shown = tuple(level for level in shown if level.depth == 0 or not level.met)[:MOST_LEVELS]
    for level in shown:
        yield from _wrapped(_level(level), width, "  " * level.depth, "  " * level.depth + "    ")
        for domain in level.nearest:
            indent = "  " * level.depth + "    "
            yield from _wrapped(_domain(domain), width, indent, indent + "  ")
    hidden = len(found.levels) - len(shown)
    if hidden:
        yield f"  and {hidden} more groups (muster tree {found.name})"


def _level(level: Level) -> str:
    mark = "●" if level.met else "○"
    kind = level.kind.lower()
    if not level.exists:
        return f"{mark} {kind} {level.name}: does not exist"
    what = "members" if level.kind == "PodGroup" else "child groups"
    text = f"{mark} {kind} {level.name}: {have_text(level.bound, level.minimum, what)} bound"
    if level.pending:
        text += f", {level.pending} {'pod' if level.pending == 1 else 'pods'} pending"
    if level.domain and level.topology:
        return f"{text}, in {domain_text(level.topology, level.domain)}"
    return f"{text}, all in one {short_key(level.topology)}" if level.topology else text


def _domain(domain: Domain) -> str:
    if domain.when_empty is None or not domain.value:
        return domain.text
    return f"{domain.text} ({domain.when_empty} when empty)"


# --- the rest --------------------------------------------------------------------------------------


def _rules(rules: tuple[Rejection, ...], pending: int, width: int) -> Iterator[str]:
    yield f"Nodes that cannot take one more of its pods, of {rules[0].of}:"
    for rule in rules:
        whose = f" (for {rule.pods} of its pods, such as {rule.pod})" if rule.pods < pending else ""
        yield from _wrapped(f"{rule.text}{whose}", width, f"  {rule.nodes:>5}  ", "         ")


def _holder(holder: Holder) -> str:
    amounts = ", ".join(f"{amount} {name}" for name, amount in holder.amounts.items())
    pods = "" if holder.kind == "Pod" else f" in {holder.pods} {'pod' if holder.pods == 1 else 'pods'}"
    return f"{holder.kind.lower()} {holder.namespace}/{holder.name} (priority {holder.priority}): {amounts}{pods}"


def _waiting(found: Explanation, width: int) -> Iterator[str]:
    facts: list[tuple[str, str]] = []
    if found.preemption:
        facts.append(("Preemption", _sentence(found.preemption)))
    if found.reservation:
        facts.append(("Kept room", _sentence(found.reservation)))
    if found.position:
        since = f"for {age(found.since)}, " if found.since else ""
        facts.append(("Waiting", f"{since}place {found.position} of {found.waiting} in the queue."))
    elif found.missing and found.verdict != "Running" and found.since:
        facts.append(("Waiting", f"for {age(found.since)}."))
    if found.wakes:
        facts.append(("Next try", _sentence(found.wakes)))
    if facts:
        yield ""
    for name, text in facts:
        yield from _wrapped(text, width, f"{name + ':':<12}", " " * 12)
