"""APIServices as objects: those of the server itself are listed and available, others are checked first."""

from __future__ import annotations

import pytest

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.plane.api import Api

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)


async def test_every_group_that_is_served_is_listed_as_local_and_available() -> None:
    api = await Api.open()
    try:
        listed = {each["metadata"]["name"]: each for each in (await api.client.list(API_SERVICES)).items}
        assert {"v1.", "v1.apps", "v1.apiregistration.k8s.io", "v1beta1.scheduling.k8s.io"} <= listed.keys()
        (condition,) = listed["v1.apps"]["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")
    finally:
        await api.close()


async def test_an_api_of_another_server_is_not_available_before_it_was_checked() -> None:
    api = await Api.open()
    try:
        service = {"namespace": "default", "name": "metrics"}
        spec = {"group": "metrics.k8s.io", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
        body = {"metadata": {"name": "v1.metrics.k8s.io"}, "spec": {**spec, "service": service}}
        made = await api.client.create(API_SERVICES, body)
        assert made["spec"]["service"]["port"] == 443
        assert "conditions" not in made.get("status", {})
    finally:
        await api.close()


async def test_a_name_that_is_not_version_and_group_is_refused() -> None:
    api = await Api.open()
    try:
        spec = {"group": "a.io", "version": "v1", "groupPriorityMinimum": 0, "versionPriority": 100}
        with pytest.raises(ApiError) as refused:
            await api.client.create(API_SERVICES, {"metadata": {"name": "v1.b.io"}, "spec": spec})
        assert 'must be `spec.version+"."+spec.group`: "v1.a.io"' in refused.value.message
        assert "spec.groupPriorityMinimum: Invalid value: 0: must be positive" in refused.value.message
    finally:
        await api.close()
