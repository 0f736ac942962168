"""Two examples for every command, printed at the end of its help."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """What to type after `muster`, and what it does."""

    arguments: str
    meaning: str


EXAMPLES: dict[str, tuple[Example, ...]] = {
    "up": (
        Example("up --memory --nodes 16 --node-gpu 8 --kubeconfig kubeconfig", "16 nodes of 8 GPUs, nothing kept"),
        Example("up --data ./cluster --port 6443", "a cluster that is there again after a restart"),
    ),
    "demo": (
        Example("demo", "gangs placed, refused, explained and preempted"),
        Example("demo --stay", "the same, with the dashboard open at the end"),
    ),
    "scheduler": (
        Example("scheduler --kubeconfig ~/.kube/config", "beside kube-scheduler, for pods that name muster"),
        Example("scheduler --config scheduler.yaml --leader-elect=false", "one process with profiles of your own"),
    ),
    "node": (
        Example("node fail node-3 node-4", "cut the power of two simulated nodes"),
        Example("node recover node-3", "give one its power back"),
    ),
    "explain": (
        Example("explain podgroup/training", "why it waits, and what would help"),
        Example("explain pod/worker-0 -n ml -o json", "the same for a pod, for programs"),
    ),
    "simulate": (
        Example("simulate -f job.yaml", "would it fit into the current cluster?"),
        Example("simulate -f job.yaml --nodes 32 --node-gpu 8", "would it fit into an empty one of 32 nodes?"),
    ),
    "snapshot": (
        Example("snapshot > cluster.json.gz", "what decisions depend on, without secrets"),
        Example("snapshot -f cluster.json.gz --context production", "of another context, into a file"),
    ),
    "replay": (
        Example("replay decisions.jsonl", "are the recorded decisions made again?"),
        Example("replay decisions.jsonl -o json", "the same, for programs"),
    ),
    "queue": (
        Example("queue -A", "what waits in all namespaces, in order"),
        Example("queue --watch", "keep it on the screen"),
    ),
    "tree": (
        Example("tree", "all groups of the namespace"),
        Example("tree training --watch", "the tree that holds one group, as it changes"),
    ),
    "topology": (
        Example("topology --gpu 8", "where pods of eight GPUs still fit, and how many together"),
        Example("topology --key example.com/rack --nodes", "by a label of your own, every node listed"),
    ),
    "dashboard": (
        Example("dashboard", "the current cluster in the browser"),
        Example("dashboard --snapshot cluster.json.gz", "the same pages on a file"),
    ),
    "validate": (
        Example("validate -f examples/", "every manifest of a directory, without a server"),
        Example("validate -R -f manifests -o json", "its subdirectories as well, for programs"),
    ),
    "migrate": (
        Example("migrate -f volcano-job.yaml > job.yaml", "a job of Volcano as ours"),
        Example("migrate -f old.yaml --to crd", "for clusters without the group API"),
    ),
    "install": (
        Example("install --dry-run", "what would be applied"),
        Example("install --crds --scheduler-name gangs", "with custom resources, under another name"),
    ),
    "completion": (
        Example("completion bash", "source it in ~/.bashrc"),
        Example("completion fish", "write it to ~/.config/fish/completions/muster.fish"),
    ),
    "version": (
        Example("version", "the version of the program"),
        Example("version -o json", "the same, for programs"),
    ),
}


def epilog(command: str) -> str:
    """The examples of a command as the end of its help; click leaves the lines as they are."""
    lines = [f"  muster {each.arguments}\n      {each.meaning}" for each in EXAMPLES.get(command, ())]
    return "\n".join(["\b", "Examples:", *lines]) if lines else ""
