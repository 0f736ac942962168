"""The Grafana dashboard of the scheduler's metrics: a table of panels, and the JSON that Grafana imports."""

from __future__ import annotations

from typing import Any, NamedTuple

Obj = dict[str, Any]

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3


class Panel(NamedTuple):
    """One graph: its title, what it says, its unit, and queries with the legend of each."""

    title: str
    description: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _quantile(share: float, metric: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket[$__rate_interval])))"


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}[$__rate_interval]))"


PANELS = (
    Panel(
        "Waiting pods and groups",
        "By the queue they are in; unschedulable ones wait for a change that could help.",
        "short",
        (("sum by (queue) (scheduler_pending_pods)", "{{queue}}"),),
    ),
    Panel(
        "Groups by queue",
        "Trees of groups count once.",
        "short",
        (('sum by (queue) (scheduler_queued_entities{type="podgroup"})', "{{queue}}"),),
    ),
    Panel(
        "Attempts of groups",
        "By their result.",
        "ops",
        ((_rate("scheduler_podgroup_schedule_attempts_total", "result"), "{{result}}"),),
    ),
    Panel(
        "Duration of attempts of groups",
        "Half, and 99 in a hundred, take no longer.",
        "s",
        tuple(
            (_quantile(share, "scheduler_podgroup_scheduling_attempt_duration_seconds"), name)
            for share, name in ((0.5, "p50"), (0.99, "p99"))
        ),
    ),
    Panel(
        "From created to bound",
        "Of single pods and members, without the time in which they could not be scheduled.",
        "s",
        tuple(
            (_quantile(share, "scheduler_pod_scheduling_sli_duration_seconds"), name)
            for share, name in ((0.5, "p50"), (0.99, "p99"))
        ),
    ),
    Panel(
        "Bindings and other writes",
        "Calls to the API server by kind and result.",
        "ops",
        ((_rate("scheduler_async_api_call_execution_total", "call_type, result"), "{{call_type}} {{result}}"),),
    ),
    Panel("Writes that wait", "Calls not sent yet.", "short", (("sum(scheduler_pending_async_api_calls)", "waiting"),)),
    Panel(
        "Refused bindings",
        "By cause; a lost race is planned again at once.",
        "ops",
        ((_rate("scheduler_bind_failures_total", "cause"), "{{cause}}"),),
    ),
    Panel(
        "Evictions",
        "Preemptions a second, for single pods and for groups.",
        "ops",
        (
            ("sum(rate(scheduler_preemption_attempts_total[$__rate_interval]))", "pods"),
            (_rate("scheduler_workload_preemption_attempts_total", "result"), "groups {{result}}"),
        ),
    ),
    Panel(
        "Kept room",
        "Groups that room is kept for, and their seats.",
        "short",
        (("sum(scheduler_reservations)", "groups"), ("sum(scheduler_reserved_seats)", "seats")),
    ),
    Panel(
        "Why pods wait",
        "Unschedulable pods by the plugin that rejected them.",
        "short",
        (("sum by (plugin) (scheduler_unschedulable_pods)", "{{plugin}}"),),
    ),
    Panel(
        "Faults",
        "Missed wake-ups and rejected proofs: both stay 0.",
        "short",
        (
            ("sum(increase(scheduler_missed_wakeups_total[1h]))", "missed wake-ups"),
            ('sum(increase(scheduler_infeasibility_proofs_total{result="rejected"}[1h]))', "rejected proofs"),
        ),
    ),
)


def dashboard() -> Obj:
    return {
        "title": "Muster",
        "uid": "muster",
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "tags": ["kubernetes", "scheduler"],
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}]
        },
        "panels": [_panel(index, panel) for index, panel in enumerate(PANELS)],
    }


def _panel(index: int, panel: Panel) -> Obj:
    row, column = divmod(index, _COLUMNS)
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
            for at, (query, legend) in enumerate(panel.queries)
        ],
    }
