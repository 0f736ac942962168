"""Arguments of the plugins that score resources."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit


def fit(**strategy):
    return NodeResourcesFit({"scoringStrategy": strategy} if strategy else None)


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ({"type": "Sideways"}, "unknown scoring strategy"),
        ({"resources": [{"name": "cpu", "weight": 101}]}, "from 1 to 100"),
        ({"type": "RequestedToCapacityRatio"}, "at least one point"),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": 5, "score": 1}, {"utilization": 5, "score": 2}]},
            },
            "must rise",
        ),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": 5, "score": 11}]},
            },
            "from 0 to 10",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(args, fault):
    with pytest.raises(ValueError, match=fault):
        fit(**args)
