"""The Pod Security Standards `baseline` and `restricted`: what a pod spec violates, in the words of Kubernetes.

The checks are those of the newest version. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muster.server.resources.kind import Obj

Check = Callable[[Obj, Obj], str]  # (metadata, pod spec) -> "reason (detail)", or "" where nothing is wrong

_BASELINE_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_VOLUME_TYPES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)
_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")


def violations(level: str, metadata: Obj, spec: Obj) -> list[str]:
    """What a pod violates at a level; nothing at `privileged`."""
    return [text for check in _LEVELS[level] if (text := check(metadata, spec))]


def _containers(spec: Obj) -> list[Obj]:
    keys = ("initContainers", "containers", "ephemeralContainers")
    return [each for key in keys for each in spec.get(key) or ()]


def _context(part: Obj) -> Obj:
    return part.get("securityContext") or {}


def _quoted(names: Iterable[object]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _named(containers: list[Obj]) -> str:
    noun = "container" if len(containers) == 1 else "containers"
    return f"{noun} {_quoted(each.get('name') for each in containers)}"


def _contexts(spec: Obj, wrong: Callable[[Obj], bool]) -> str:
    """The security contexts, of the pod and of containers, that are wrong; empty where none is."""
    bad = [each for each in _containers(spec) if wrong(_context(each))]
    setters = (["pod"] if wrong(_context(spec)) else []) + ([_named(bad)] if bad else [])
    return " and ".join(setters)


# --- baseline --------------------------------------------------------------------------------------


def _app_armor(metadata: Obj, spec: Obj) -> str:
    def wrong(context: Obj) -> bool:
        kind = (context.get("appArmorProfile") or {}).get("type")
        return kind not in (None, "", "RuntimeDefault", "Localhost")

    found = _contexts(spec, wrong)
    return f'forbidden AppArmor profile ({found} must not set AppArmor profile type to "Unconfined")' if found else ""


def _baseline_capabilities(metadata: Obj, spec: Obj) -> str:
    bad = [each for each in _containers(spec) if set(_added(each)) - _BASELINE_CAPABILITIES]
    names = sorted({name for each in bad for name in _added(each)} - _BASELINE_CAPABILITIES)
    text = f"{_named(bad)} must not include {_quoted(names)} in securityContext.capabilities.add"
    return f"non-default capabilities ({text})" if bad else ""


def _added(container: Obj) -> list[str]:
    return (_context(container).get("capabilities") or {}).get("add") or []


def _host_namespaces(metadata: Obj, spec: Obj) -> str:
    used = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return f"host namespaces ({', '.join(used)})" if used else ""


def _host_paths(metadata: Obj, spec: Obj) -> str:
    names = [each.get("name") for each in spec.get("volumes") or () if each.get("hostPath") is not None]
    noun = "volume" if len(names) == 1 else "volumes"
    return f"hostPath volumes ({noun} {_quoted(names)})" if names else ""


def _host_ports(metadata: Obj, spec: Obj) -> str:
    bad = [each for each in _containers(spec) if any(port.get("hostPort") for port in each.get("ports") or ())]
    ports = sorted({port["hostPort"] for each in bad for port in each.get("ports") or () if port.get("hostPort")})
    noun = "hostPort" if len(ports) == 1 else "hostPorts"
    verb = "uses" if len(bad) == 1 else "use"
    return f"hostPort ({_named(bad)} {verb} {noun} {', '.join(map(str, ports))})" if bad else ""


def _privileged(metadata: Obj, spec: Obj) -> str:
    bad = [each for each in _containers(spec) if _context(each).get("privileged")]
    return f"privileged ({_named(bad)} must not set securityContext.privileged=true)" if bad else ""


def _proc_mount(metadata: Obj, spec: Obj) -> str:
    bad = [each for each in _containers(spec) if _context(each).get("procMount") not in (None, "", "Default")]
    if not bad:
        return ""
    values = _quoted(sorted({_context(each)["procMount"] for each in bad}))
    return f"procMount ({_named(bad)} must not set securityContext.procMount to {values})"


def _se_linux(metadata: Obj, spec: Obj) -> str:
    def wrong(context: Obj) -> bool:
        options: Obj = context.get("seLinuxOptions") or {}
        return (options.get("type") or "") not in _SELINUX_TYPES or bool(options.get("user") or options.get("role"))

    found = _contexts(spec, wrong)
    return f"seLinuxOptions ({found} set forbidden securityContext.seLinuxOptions)" if found else ""


def _seccomp_baseline(metadata: Obj, spec: Obj) -> str:
    found = _contexts(spec, lambda context: (context.get("seccompProfile") or {}).get("type") == "Unconfined")
    text = 'must not set securityContext.seccompProfile.type to "Unconfined"'
    return f"seccompProfile ({found} {text})" if found else ""


def _sysctls(metadata: Obj, spec: Obj) -> str:
    names = [each.get("name") for each in _context(spec).get("sysctls") or () if each.get("name") not in _SYSCTLS]
    return f"forbidden sysctls ({', '.join(map(str, names))})" if names else ""


def _windows_host_process(metadata: Obj, spec: Obj) -> str:
    found = _contexts(spec, lambda context: bool((context.get("windowsOptions") or {}).get("hostProcess")))
    return f"hostProcess ({found} must not set securityContext.windowsOptions.hostProcess=true)" if found else ""


# --- restricted ------------------------------------------------------------------------------------


def _privilege_escalation(metadata: Obj, spec: Obj) -> str:
    bad = [each for each in _containers(spec) if _context(each).get("allowPrivilegeEscalation") is not False]
    text = f"{_named(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return f"allowPrivilegeEscalation != false ({text})" if bad else ""


def _restricted_capabilities(metadata: Obj, spec: Obj) -> str:
    keeping = [
        each
        for each in _containers(spec)
        if "ALL" not in ((_context(each).get("capabilities") or {}).get("drop") or ())
    ]
    adding = [each for each in _containers(spec) if set(_added(each)) - {"NET_BIND_SERVICE"}]
    details: list[str] = []
    if keeping:
        details.append(f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        names = sorted({name for each in adding for name in _added(each)} - {"NET_BIND_SERVICE"})
        details.append(f"{_named(adding)} must not include {_quoted(names)} in securityContext.capabilities.add")
    return f"unrestricted capabilities ({'; '.join(details)})" if details else ""


def _restricted_volumes(metadata: Obj, spec: Obj) -> str:
    bad: dict[str, str] = {}
    for volume in spec.get("volumes") or ():
        kinds = [key for key in volume if key != "name"]
        if not _VOLUME_TYPES.intersection(kinds):
            bad[str(volume.get("name"))] = kinds[0] if kinds else "unknown"
    if not bad:
        return ""
    noun, verb = ("volume", "uses") if len(bad) == 1 else ("volumes", "use")
    types = sorted(set(bad.values()))
    kind = "restricted volume type" if len(types) == 1 else "restricted volume types"
    return f"restricted volume types ({noun} {_quoted(bad)} {verb} {kind} {_quoted(types)})"


def _run_as_non_root(metadata: Obj, spec: Obj) -> str:
    denying = _contexts(spec, lambda context: context.get("runAsNonRoot") is False)
    if denying:
        return f"runAsNonRoot != true ({denying} must not set securityContext.runAsNonRoot=false)"
    bad = [each for each in _containers(spec) if not _context(each).get("runAsNonRoot")]
    if _context(spec).get("runAsNonRoot") or not bad:
        return ""
    return f"runAsNonRoot != true (pod or {_named(bad)} must set securityContext.runAsNonRoot=true)"


def _run_as_user(metadata: Obj, spec: Obj) -> str:
    found = _contexts(spec, lambda context: context.get("runAsUser") == 0)
    return f"runAsUser=0 ({found} must not set runAsUser=0)" if found else ""


def _seccomp_restricted(metadata: Obj, spec: Obj) -> str:
    allowed = ("RuntimeDefault", "Localhost")
    refused = _seccomp_baseline(metadata, spec)
    if refused:
        return refused
    bad = [
        each for each in _containers(spec) if (_context(each).get("seccompProfile") or {}).get("type") not in allowed
    ]
    if (_context(spec).get("seccompProfile") or {}).get("type") in allowed or not bad:
        return ""
    text = f'pod or {_named(bad)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return f"seccompProfile ({text})"


_COMMON: tuple[Check, ...] = (
    _app_armor,
    _host_namespaces,
    _host_ports,
    _privileged,
    _proc_mount,
    _se_linux,
    _sysctls,
    _windows_host_process,
)
_LEVELS: dict[str, tuple[Check, ...]] = {
    "privileged": (),
    "baseline": (
        _app_armor,
        _baseline_capabilities,
        _host_namespaces,
        _host_paths,
        _host_ports,
        _privileged,
        _proc_mount,
        _se_linux,
        _seccomp_baseline,
        _sysctls,
        _windows_host_process,
    ),
    "restricted": (
        *_COMMON,
        _privilege_escalation,
        _restricted_capabilities,
        _restricted_volumes,
        _run_as_non_root,
        _run_as_user,
        _seccomp_restricted,
    ),
}
