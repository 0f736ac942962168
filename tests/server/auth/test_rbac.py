"""What rules allow, and who has which rules."""

import pytest
from policy_store import a_bootstrapped_store, a_rule, a_user, grant, put, remove

from muster.api.errors import ApiError
from muster.server.auth.rbac import Authorizer
from muster.server.auth.rules import Action, Rule, Ruleset, covers, uncovered
from muster.server.request import User
from muster.server.store.memory import MemoryStore

JANE = a_user("jane", "devs")


def acting(verb: str, resource: str, namespace: str = "", name: str = "", group: str = "") -> Action:
    plural, _, subresource = resource.partition("/")
    return Action(verb, group, plural, subresource, namespace, name)


# One rule


@pytest.mark.parametrize(
    ("rule", "action", "allowed"),
    [
        (Rule(("get",), ("",), ("pods",)), acting("get", "pods"), True),
        (Rule(("get",), ("",), ("pods",)), acting("list", "pods"), False),
        (Rule(("get",), ("",), ("pods",)), acting("get", "nodes"), False),
        (Rule(("get",), ("apps",), ("pods",)), acting("get", "pods"), False),
        (Rule(("get",), ("",), ("pods",)), acting("get", "pods/log"), False),
        (Rule(("get",), ("",), ("pods/log",)), acting("get", "pods/log"), True),
        (Rule(("get",), ("",), ("pods/*",)), acting("get", "pods/log"), False),
        (Rule(("get",), ("",), ("*/scale",)), acting("get", "replicationcontrollers/scale"), True),
        (Rule(("get",), ("",), ("*/scale",)), acting("get", "pods/log"), False),
        (Rule(("get",), ("",), ("*",)), acting("get", "pods/log"), True),
        (Rule(("*",), ("*",), ("*",)), acting("escalate", "roles", group="rbac.authorization.k8s.io"), True),
        (Rule(("get",), ("",), ("pods",), ("a",)), acting("get", "pods", name="a"), True),
        (Rule(("get",), ("",), ("pods",), ("a",)), acting("get", "pods", name="b"), False),
        (Rule(("list",), ("",), ("pods",), ("a",)), acting("list", "pods"), False),
        (Rule(("get",), non_resource_urls=("/healthz/*",)), Action("get", path="/healthz/ping"), True),
        (Rule(("get",), non_resource_urls=("/healthz/*",)), Action("get", path="/healthz"), False),
        (Rule(("get",), non_resource_urls=("*",)), Action("get", path="/anything"), True),
        (Rule(("get",), non_resource_urls=("/api",)), Action("get", path="/apis"), False),
        (Rule(("*",), ("*",), ("*",)), Action("get", path="/metrics"), False),
    ],
)
def test_a_rule_covers_exactly_what_it_says(rule: Rule, action: Action, allowed: bool) -> None:
    assert covers(rule, action) is allowed
    assert Ruleset([rule]).allows(action) is allowed


def test_a_ruleset_remembers_answers_by_name_where_names_matter() -> None:
    rules = Ruleset([Rule(("get",), ("",), ("secrets",), ("a",)), Rule(("get",), ("",), ("secrets",), ("b", "c"))])
    asked = {name: rules.allows(acting("get", "secrets", name=name)) for name in ("a", "b", "c", "d", "a")}
    assert asked == {"a": True, "b": True, "c": True, "d": False}


@pytest.mark.parametrize(
    ("owned", "wanted", "missing"),
    [
        ([Rule(("*",), ("*",), ("*",))], [Rule(("get",), ("apps",), ("deployments/scale",))], 0),
        ([Rule(("get", "list"), ("",), ("pods",))], [Rule(("get",), ("",), ("pods",), ("a",))], 0),
        ([Rule(("get",), ("",), ("pods",), ("a",))], [Rule(("get",), ("",), ("pods",))], 1),
        ([Rule(("get",), ("",), ("pods",))], [Rule(("get", "list"), ("",), ("pods", "nodes"))], 3),
        ([Rule(("get",), ("",), ("pods",))], [Rule(("*",), ("",), ("pods",))], 1),
        ([Rule(("get",), ("",), ("pods",))], [Rule(("get",), ("",), ("*",))], 1),
        (
            [Rule(("get",), ("",), ("pods",)), Rule(("list",), ("",), ("pods",))],
            [Rule(("get", "list"), ("",), ("pods",))],
            0,
        ),
        ([Rule(("get",), non_resource_urls=("/a/*",))], [Rule(("get",), non_resource_urls=("/a/b",))], 0),
        ([Rule(("get",), non_resource_urls=("/a/b",))], [Rule(("get",), non_resource_urls=("/a/*",))], 1),
    ],
)
def test_what_is_missing_from_a_set_of_rules(owned: list[Rule], wanted: list[Rule], missing: int) -> None:
    assert len(uncovered(owned, wanted)) == missing


# Who has which rules


async def test_nothing_is_allowed_by_default() -> None:
    authorizer = Authorizer(MemoryStore())
    assert not authorizer.allows(JANE, acting("get", "pods", "n", "p"))
    assert not authorizer.allows(JANE, Action("get", path="/version"))


async def test_masters_may_do_everything_even_without_a_policy() -> None:
    assert Authorizer(MemoryStore()).allows(a_user("root", "system:masters"), acting("delete", "nodes"))


@pytest.mark.parametrize(
    "subject", [("User", "jane"), ("Group", "devs"), ("Group", "system:authenticated")], ids=lambda subject: subject[1]
)
async def test_a_cluster_binding_reaches_every_namespace(subject: tuple[str, str]) -> None:
    store = MemoryStore()
    await put(store, "ClusterRole", "reader", rules=[a_rule("get", "pods")])
    await grant(store, "reader", subject)
    authorizer = Authorizer(store)
    assert authorizer.allows(JANE, acting("get", "pods", "a"))
    assert authorizer.allows(JANE, acting("get", "pods"))
    assert not authorizer.allows(
        a_user("joe") if subject[1] != "system:authenticated" else User("x"), acting("get", "pods")
    )


async def test_a_namespace_binding_reaches_that_namespace_only() -> None:
    store = MemoryStore()
    await put(store, "ClusterRole", "reader", rules=[a_rule("get", "pods nodes")])
    await grant(store, "reader", ("User", "jane"), "a")
    authorizer = Authorizer(store)
    assert authorizer.allows(JANE, acting("get", "pods", "a"))
    assert not authorizer.allows(JANE, acting("get", "pods", "b"))
    assert not authorizer.allows(JANE, acting("get", "pods"))


async def test_a_role_is_found_in_the_namespace_of_its_binding() -> None:
    store = MemoryStore()
    await put(store, "Role", "reader", "a", rules=[a_rule("get", "pods")])
    await put(store, "Role", "reader", "b", rules=[])
    for namespace in ("a", "b"):
        await grant(store, "reader", ("User", "jane"), namespace, role_kind="Role")
    authorizer = Authorizer(store)
    assert authorizer.allows(JANE, acting("get", "pods", "a"))
    assert not authorizer.allows(JANE, acting("get", "pods", "b"))


async def test_a_service_account_is_the_user_that_its_token_names() -> None:
    store = MemoryStore()
    await put(store, "ClusterRole", "reader", rules=[a_rule("get", "pods")])
    subjects = [{"kind": "ServiceAccount", "name": "bot", "namespace": "ci"}]
    await put(store, "ClusterRoleBinding", "b", roleRef={"kind": "ClusterRole", "name": "reader"}, subjects=subjects)
    authorizer = Authorizer(store)
    assert authorizer.allows(User("system:serviceaccount:ci:bot"), acting("get", "pods"))
    assert not authorizer.allows(User("system:serviceaccount:other:bot"), acting("get", "pods"))


async def test_a_change_of_policy_counts_from_the_next_request() -> None:
    store = MemoryStore()
    authorizer = Authorizer(store)
    asked = acting("get", "pods", "n")
    await put(store, "ClusterRole", "reader", rules=[a_rule("get", "pods")])
    assert not authorizer.allows(JANE, asked)
    await grant(store, "reader", ("User", "jane"))
    assert authorizer.allows(JANE, asked)
    await put(store, "ClusterRole", "reader", rules=[a_rule("list", "pods")])
    assert not authorizer.allows(JANE, asked)
    await put(store, "ClusterRole", "reader", rules=[a_rule("get", "pods")])
    await remove(store, "ClusterRoleBinding", "reader-jane")
    assert not authorizer.allows(JANE, asked)


async def test_an_aggregated_role_gathers_what_its_label_selects_at_any_depth() -> None:
    store = MemoryStore()
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to-outer": "true"}}]}
    inner = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "to-inner", "operator": "Exists"}]}]}
    await put(store, "ClusterRole", "outer", aggregationRule=selector)
    await put(store, "ClusterRole", "inner", aggregationRule=inner, labels={"to-outer": "true", "to-inner": "loop"})
    await put(store, "ClusterRole", "leaf", rules=[a_rule("get", "pods")], labels={"to-inner": "yes"})
    await grant(store, "outer", ("User", "jane"))
    authorizer = Authorizer(store)
    assert authorizer.allows(JANE, acting("get", "pods"))
    assert not authorizer.allows(JANE, acting("list", "pods"))


# Words


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (
            acting("list", "pods", "y"),
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "y"',
        ),
        (
            acting("get", "nodes", "", "n1"),
            'nodes "n1" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope',
        ),
        (
            acting("update", "podgroups/status", "y", "g", "scheduling.k8s.io"),
            'podgroups.scheduling.k8s.io "g" is forbidden: User "jane" cannot update resource "podgroups/status" '
            'in API group "scheduling.k8s.io" in the namespace "y"',
        ),
        (Action("get", path="/metrics"), 'forbidden: User "jane" cannot get path "/metrics"'),
    ],
)
async def test_a_refusal_is_worded_as_kubernetes_words_it(action: Action, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        Authorizer(MemoryStore()).check(JANE, action)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (403, "Forbidden", words)


async def test_a_binding_to_a_missing_role_says_so_in_the_refusal() -> None:
    store = MemoryStore()
    await grant(store, "gone", ("User", "jane"))
    with pytest.raises(ApiError, match=r'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found$'):
        Authorizer(store).check(JANE, acting("get", "pods", "n"))


async def test_the_reason_names_the_binding_that_allows() -> None:
    store = MemoryStore()
    await put(store, "ClusterRole", "reader", rules=[a_rule("get", "pods")])
    await grant(store, "reader", ("Group", "devs"), "n")
    assert Authorizer(store).reason(JANE, acting("get", "pods", "n")) == (
        'RBAC: allowed by RoleBinding "reader-devs/n" of ClusterRole "reader" to Group "devs"'
    )


# The bootstrap roles: who may do what, in one table

CASES = [
    # role, verb, resource, group, allowed
    ("view", "list", "pods", "", True),
    ("view", "watch", "podgroups", "scheduling.k8s.io", True),
    ("view", "get", "compositepodgroups/status", "scheduling.k8s.io", True),
    ("view", "get", "pods/log", "", True),
    ("view", "get", "secrets", "", False),
    ("view", "create", "pods", "", False),
    ("view", "get", "nodes", "", False),
    ("view", "list", "roles", "rbac.authorization.k8s.io", False),
    ("edit", "create", "pods", "", True),
    ("edit", "get", "secrets", "", True),
    ("edit", "create", "workloads", "scheduling.k8s.io", True),
    ("edit", "delete", "compositepodgroups", "scheduling.k8s.io", True),
    ("edit", "update", "podgroups/status", "scheduling.k8s.io", False),
    ("edit", "create", "pods/binding", "", False),
    ("edit", "create", "pods/eviction", "", True),
    ("edit", "patch", "deployments/scale", "apps", True),
    ("edit", "create", "rolebindings", "rbac.authorization.k8s.io", False),
    ("edit", "create", "serviceaccounts/token", "", True),
    ("edit", "update", "namespaces", "", False),
    ("edit", "create", "resourcequotas", "", False),
    ("admin", "create", "rolebindings", "rbac.authorization.k8s.io", True),
    ("admin", "create", "pods", "", True),
    ("admin", "get", "pods", "", True),
    ("admin", "escalate", "roles", "rbac.authorization.k8s.io", False),
    ("admin", "create", "nodes", "", False),
    ("admin", "create", "clusterroles", "rbac.authorization.k8s.io", False),
    ("cluster-admin", "delete", "nodes", "", True),
    ("cluster-admin", "impersonate", "users", "", True),
    ("system:kube-scheduler", "create", "pods/binding", "", True),
    ("system:kube-scheduler", "patch", "pods/status", "", True),
    ("system:kube-scheduler", "patch", "podgroups/status", "scheduling.k8s.io", True),
    ("system:kube-scheduler", "update", "compositepodgroups/status", "scheduling.k8s.io", True),
    ("system:kube-scheduler", "update", "podgroups", "scheduling.k8s.io", False),
    ("system:kube-scheduler", "delete", "pods", "", True),
    ("system:kube-scheduler", "create", "pods", "", False),
    ("system:kube-scheduler", "get", "secrets", "", False),
    ("system:kube-controller-manager", "list", "anything", "any.group", True),
    ("system:kube-controller-manager", "delete", "pods", "", False),
    ("system:controller:podgroup-protection-controller", "update", "podgroups", "scheduling.k8s.io", True),
    ("system:controller:podgroup-protection-controller", "delete", "podgroups", "scheduling.k8s.io", False),
    ("system:controller:job-controller", "create", "workloads", "scheduling.k8s.io", True),
    ("system:controller:resource-claim-controller", "patch", "podgroups/status", "scheduling.k8s.io", True),
    ("system:controller:generic-garbage-collector", "delete", "pods", "", True),
    ("system:controller:generic-garbage-collector", "create", "pods", "", False),
]


@pytest.mark.parametrize(("role", "verb", "resource", "group", "allowed"), CASES)
async def test_the_bootstrap_roles_allow_what_they_should(
    role: str, verb: str, resource: str, group: str, allowed: bool
) -> None:
    store = await a_bootstrapped_store()
    await grant(store, role, ("User", "somebody"))
    assert Authorizer(store).allows(User("somebody"), acting(verb, resource, "n", group=group)) is allowed


@pytest.mark.parametrize("resource", ["pods", "secrets", "nodes", "podgroups", "configmaps", "clusterroles"])
@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"])
async def test_somebody_who_is_merely_known_may_touch_no_resource(verb: str, resource: str) -> None:
    store = await a_bootstrapped_store()
    assert not Authorizer(store).allows(JANE, acting(verb, resource, "n"))


async def test_somebody_who_is_known_may_discover_and_ask_about_themselves() -> None:
    authorizer = Authorizer(await a_bootstrapped_store())
    for path in ("/api", "/apis/apps/v1", "/openapi/v3", "/version"):
        assert authorizer.allows(JANE, Action("get", path=path))
    assert authorizer.allows(JANE, acting("create", "selfsubjectaccessreviews", group="authorization.k8s.io"))
    assert not authorizer.allows(JANE, Action("get", path="/metrics"))


async def test_nobody_sees_only_health_and_version() -> None:
    authorizer = Authorizer(await a_bootstrapped_store())
    nobody = User("system:anonymous", ("system:unauthenticated",))
    assert authorizer.allows(nobody, Action("get", path="/livez"))
    assert not authorizer.allows(nobody, Action("get", path="/api"))


async def test_a_controller_has_the_role_of_its_name() -> None:
    authorizer = Authorizer(await a_bootstrapped_store())
    account = User("system:serviceaccount:kube-system:namespace-controller")
    assert authorizer.allows(account, acting("update", "namespaces/finalize", "n"))
