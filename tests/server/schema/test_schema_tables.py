"""The generated tables say what Kubernetes 1.37 says."""

from muster.server import schema


def test_every_kind_that_is_served_is_known():
    for group, version, kind in [
        ("", "v1", "Pod"),
        ("", "v1", "Binding"),
        ("apps", "v1", "Deployment"),
        ("batch", "v1", "CronJob"),
        ("policy", "v1", "Eviction"),
        ("scheduling.k8s.io", "v1", "PriorityClass"),
        ("scheduling.k8s.io", "v1alpha2", "PodGroup"),
        ("scheduling.k8s.io", "v1alpha3", "CompositePodGroup"),
        ("scheduling.k8s.io", "v1beta1", "Workload"),
        ("coordination.k8s.io", "v1", "Lease"),
        ("events.k8s.io", "v1", "Event"),
        ("discovery.k8s.io", "v1", "EndpointSlice"),
        ("storage.k8s.io", "v1", "CSIStorageCapacity"),
        ("resource.k8s.io", "v1", "ResourceSlice"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
        ("authentication.k8s.io", "v1", "TokenReview"),
        ("authorization.k8s.io", "v1", "SelfSubjectAccessReview"),
        ("autoscaling", "v1", "Scale"),
    ]:
        found = schema.kind(group, version, kind)
        assert found is not None, (group, version, kind)
        assert found.is_kind


def test_a_part_of_a_kind_is_not_a_kind():
    assert schema.kind("", "v1", "PodSpec") is None
    assert schema.kind("example.com", "v1", "Pod") is None


def test_delete_options_belong_to_every_group():
    assert schema.kind("apps", "v1", "DeleteOptions") is schema.kind("", "v1", "DeleteOptions")


def test_lists_carry_their_keys_and_merge_rules():
    ports = schema.message("core.v1.Container").fields["ports"]

    assert (ports.shape, ports.list_type) == ("list", "map")
    assert ports.list_keys == ("containerPort", "protocol")
    assert (ports.patch_strategy, ports.merge_key) == (("merge",), "containerPort")
    assert schema.message("core.v1.ContainerPort").fields["protocol"].default == "TCP"


def test_embedded_structs_are_flat_in_json_and_nested_on_the_wire():
    volume = schema.message("core.v1.Volume")

    assert {"name", "emptyDir", "persistentVolumeClaim"} <= volume.fields.keys()
    assert volume.wire[2] is schema.message("core.v1.VolumeSource")


def test_a_selector_is_owned_as_one_value():
    assert schema.message("meta.v1.LabelSelector").atomic
    assert schema.message("core.v1.PodSpec").fields["nodeSelector"].atomic


def test_presence_follows_the_go_tags():
    meta = schema.message("meta.v1.ObjectMeta").fields
    assert meta["creationTimestamp"].presence == 2
    assert meta["name"].presence == 1
    assert schema.message("core.v1.Container").fields["name"].presence == 0


def test_a_field_that_is_always_written_may_still_be_optional_to_clients():
    templates = schema.message("scheduling.v1beta1.WorkloadSpec").fields["podGroupTemplates"]

    assert templates.presence == 0
    assert not templates.required


def test_every_reference_in_the_tables_leads_somewhere():
    seen: set[str] = set()
    pending = [m for m in (schema.kind("", "v1", "Pod"), schema.kind("apps", "v1", "Deployment")) if m]
    while pending:
        message = pending.pop()
        if message.name in seen:
            continue
        seen.add(message.name)
        pending += [field.message for field in message.fields.values() if field.message]
    assert len(seen) > 100
