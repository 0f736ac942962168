"""Webhooks: other people's servers that are asked about writes.

Mutating ones are asked one after the other and give patches; one that wants it is asked again where a later one changed
the object. Validating ones are asked all at once. The failure policy says what a call without an answer means.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from muster.api.errors import ApiError, bad_request, internal
from muster.cel.environment import Library
from muster.server.admission.dynamic import conditions
from muster.server.admission.dynamic.attributes import Attributes
from muster.server.admission.dynamic.conditions import ConditionError
from muster.server.admission.dynamic.matching import Matcher
from muster.server.admission.dynamic.values import request_values
from muster.server.admission.dynamic.webhook_client import WebhookClient, WebhookError
from muster.server.patch import json_patch
from muster.server.resources.kind import Obj
from muster.server.resources.rules.policy_expressions import environment

log = logging.getLogger(__name__)

_REVIEW_GROUP = "admission.k8s.io"
_KNOWN_VERSIONS = ("v1", "v1beta1")
_WITHOUT_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_MOST_WARNING = 256


class Webhook:
    """One webhook of one configuration."""

    def __init__(self, configuration: str, spec: Obj, library: Library) -> None:
        self.configuration = configuration
        self.name: str = spec["name"]
        self.again = spec.get("reinvocationPolicy") == "IfNeeded"
        self._client_config: Obj = spec.get("clientConfig") or {}
        self._fails = spec.get("failurePolicy", "Fail") != "Ignore"
        self._seconds: int = spec.get("timeoutSeconds") or 10
        self._side_effects: str = spec.get("sideEffects", "")
        accepted: Sequence[str] = spec.get("admissionReviewVersions") or ()
        self._review = next((each for each in accepted if each in _KNOWN_VERSIONS), "")
        self._matcher = Matcher(spec, spec.get("rules") or ())
        given: Sequence[Obj] = spec.get("matchConditions") or ()
        self._conditions = conditions.compiled(given, environment(library)) if given else []

    async def version(self, attributes: Attributes) -> str:
        """The version in which the webhook is to see the write; empty where it is not asked."""
        version = self._matcher.version(attributes)
        if not version or not self._conditions:
            return version
        try:
            return version if conditions.hold(self._conditions, request_values(attributes, version)) else ""
        except ConditionError as error:
            if self._fails:
                raise _forbidden(attributes, str(error)) from None
            log.warning('Failed evaluating match conditions of webhook "%s", failing open: %s', self.name, error)
            return ""

    async def ask(self, client: WebhookClient, attributes: Attributes, version: str) -> Obj:
        """The response to a review; empty where the webhook did not answer and need not."""
        if attributes.write.dry_run and self._side_effects not in _WITHOUT_SIDE_EFFECTS:
            raise bad_request(f'admission webhook "{self.name}" does not support dry run')
        request_id = str(uuid.uuid4())
        try:
            review = _review(f"{_REVIEW_GROUP}/{self._review}", attributes, version, request_id)
            answer = await client.post(self._client_config, review, self._seconds, attributes.write.reader)
            response = _response(answer, review["apiVersion"], request_id)
        except WebhookError as error:
            if not self._fails:
                log.warning('Failed calling webhook "%s", failing open: %s', self.name, error)
                return {}
            raise internal(
                f'Internal error occurred: failed calling webhook "{self.name}": failed to call webhook: {error}'
            ) from None
        attributes.write.warnings += [str(each)[:_MOST_WARNING] for each in response.get("warnings") or ()]
        if response.get("allowed") is not True:
            raise denied(self.name, response.get("status") or {})
        return response


def _review(api_version: str, attributes: Attributes, version: str, request_id: str) -> Obj:
    new, old = attributes.objects(version)
    request = {"uid": request_id, **attributes.request(version), "object": new, "oldObject": old}
    return {"kind": "AdmissionReview", "apiVersion": api_version, "request": request}


def _response(answer: Obj, api_version: str, request_id: str) -> Obj:
    """The checked response of a review. Webhooks of the first version need not repeat the id nor name the patch."""
    if answer.get("apiVersion") != api_version or answer.get("kind") != "AdmissionReview":
        given = f"{answer.get('apiVersion', '')}, Kind={answer.get('kind', '')}"
        raise WebhookError(f"expected webhook response of {api_version}, Kind=AdmissionReview, got {given}")
    response: Any = answer.get("response")
    if not isinstance(response, dict):
        raise WebhookError("webhook response was absent")
    if api_version.endswith("/v1beta1"):
        return {**response, "patchType": "JSONPatch"}
    if response.get("uid") != request_id:
        raise WebhookError(f'expected response.uid="{request_id}", got "{response.get("uid", "")}"')
    return response


def denied(name: str, status: Obj) -> ApiError:
    """The refusal of a webhook, as clients see it."""
    code = status.get("code")
    code = code if isinstance(code, int) and code >= 400 else 400
    by = f'admission webhook "{name}" denied the request'
    why = status.get("message") or status.get("reason") or ""
    message = f"{by}: {why}" if why else f"{by} without explanation"
    return ApiError(code, str(status.get("reason") or ""), message, status.get("details") or {})


def _forbidden(attributes: Attributes, why: str) -> ApiError:
    kind = attributes.kind
    name = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return ApiError(403, "Forbidden", f'{name} "{attributes.write.name}" is forbidden: {why}')


async def mutate(hooks: Sequence[Webhook], client: WebhookClient, attributes: Attributes) -> bool:
    """Ask the mutating webhooks in order; whether the object was changed."""
    changed_at = [await _mutate_once(hook, client, attributes) for hook in hooks]
    last = max((at for at, changed in enumerate(changed_at) if changed), default=-1)
    for hook in hooks[:last]:
        if hook.again:
            await _mutate_once(hook, client, attributes)
    return last >= 0


async def _mutate_once(hook: Webhook, client: WebhookClient, attributes: Attributes) -> bool:
    version = await hook.version(attributes)
    if not version:
        return False
    response = await hook.ask(client, attributes, version)
    patch = response.get("patch")
    if not patch:
        return False
    before, _ = attributes.objects(version)
    if before is None:
        return False
    if response.get("patchType") != "JSONPatch":
        raise internal(
            f'failed calling webhook "{hook.name}": webhook returned response.patch but not response.patchType'
        )
    patched = _patched(hook, before, patch)
    if patched == before:
        return False
    attributes.take(version, patched)
    return True


def _patched(hook: Webhook, before: Obj, patch: str) -> Obj:
    try:
        return json_patch.apply(before, msgspec.json.decode(base64.b64decode(patch)))
    except (binascii.Error, msgspec.DecodeError, TypeError) as error:
        raise internal(
            f'Internal error occurred: failed calling webhook "{hook.name}": the patch cannot be read: {error}'
        ) from None
    except ApiError as error:
        raise internal(f'Internal error occurred: failed calling webhook "{hook.name}": {error.message}') from None


async def validate(hooks: Sequence[Webhook], client: WebhookClient, attributes: Attributes) -> None:
    """Ask the validating webhooks at once; the first refusal in order counts."""
    wanted = [(hook, version) for hook in hooks if (version := await hook.version(attributes))]
    if not wanted:
        return
    answers = await asyncio.gather(
        *(hook.ask(client, attributes, version) for hook, version in wanted), return_exceptions=True
    )
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
