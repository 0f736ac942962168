"""The `muster` command: one table of commands, each imported only when it is called.

No traceback ever reaches a user. An error that a user can act on is a `Failure` (or one of click's own); anything
else is written to a file with all its details, and the message says where.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from muster.cli import exits
from muster.cli.examples import epilog


class Entry(NamedTuple):
    """Where a command lives (`module:function`) and what it does, in one line."""

    where: str
    help: str


COMMANDS: dict[str, Entry] = {
    "up": Entry("muster.cli.up:command", "Start an API server, the scheduler and simulated nodes in one process."),
    "demo": Entry("muster.cli.demo:command", "Watch gangs being scheduled, in under a minute."),
    "scheduler": Entry("muster.cli.scheduler:command", "Run the scheduler against a cluster."),
    "node": Entry("muster.cli.node:command", "Fail and recover simulated nodes."),
    "explain": Entry("muster.cli.explain:command", "Say why a pod or group is pending, and what would help."),
    "simulate": Entry("muster.cli.simulate:command", "Say what would happen if manifests were submitted now."),
    "snapshot": Entry("muster.cli.snapshot:command", "Save the state of a cluster to a file."),
    "replay": Entry("muster.cli.replay:command", "Run recorded events through the scheduler again."),
    "queue": Entry("muster.cli.queue:command", "Show which groups wait, in order, and why."),
    "tree": Entry("muster.cli.tree:command", "Show a group with its children and pods."),
    "topology": Entry("muster.cli.topology:command", "Show racks, blocks and zones, and what fits where."),
    "dashboard": Entry("muster.cli.dashboard:command", "Open the cluster, the queue and your gangs in a browser."),
    "validate": Entry("muster.cli.validate:command", "Check manifests without a server."),
    "migrate": Entry("muster.cli.migrate:command", "Turn older manifests into current ones."),
    "install": Entry("muster.cli.install:command", "Print or apply the manifest that installs Muster in a cluster."),
    "completion": Entry("muster.cli.completion:command", "Print the shell's completion script."),
    "version": Entry("muster.cli.version:command", "Print the version."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, entry in COMMANDS.items() if _exists(entry)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None or not _exists(entry):
            return None
        module, _, function = entry.where.partition(":")
        command: click.Command = getattr(importlib.import_module(module), function)
        command.epilog = epilog(cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])


def _exists(entry: Entry) -> bool:
    return importlib.util.find_spec(entry.where.partition(":")[0]) is not None


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from muster import __version__

        click.echo(f"muster {__version__}")
        ctx.exit()


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def muster() -> None:
    """Muster: groups of pods start together or not at all.

    Try it with "muster up", then plain kubectl. The exit codes are listed in docs/cli.md.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: run a command and leave with its exit code."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run a command and give its exit code; whatever happens, the user sees a message and no traceback."""
    name = "kubectl muster" if os.path.basename(sys.argv[0]).startswith("kubectl-") else "muster"  # noqa: PTH119
    try:
        result = muster.main(args=arguments, prog_name=name, standalone_mode=False)
        return result if isinstance(result, int) else exits.OK
    except click.UsageError as error:
        error.show()
        return exits.USAGE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return exits.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it. Without this, Python complains once more while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except Exception as error:
        return _report(error, arguments)


def _report(error: Exception, arguments: list[str]) -> int:
    """Print what went wrong, without a traceback; gives the exit code."""
    from muster.api.errors import ApiError
    from muster.client.config import ConfigError, NoKubeconfig
    from muster.views.failures import ViewFailure

    if isinstance(error, ViewFailure):
        click.echo(f"Error: {error.message}", err=True)
        return exits.UNDECIDED if error.undecided else exits.BAD_INPUT
    if isinstance(error, ApiError):
        click.echo(f"Error: the server refused: {error.message}", err=True)
        return exits.UNAVAILABLE
    if isinstance(error, ConfigError):
        click.echo(f"Error: {error}", err=True)
        if isinstance(error, NoKubeconfig):
            click.echo("No cluster yet? This starts one: muster up --memory --kubeconfig kubeconfig", err=True)
        return exits.BAD_INPUT
    if isinstance(error, ConnectionError | TimeoutError):
        click.echo(f"Error: the server cannot be reached: {str(error) or type(error).__name__}", err=True)
        return exits.UNAVAILABLE
    where = _details(error, arguments)
    click.echo(f"Error: something unexpected happened: {type(error).__name__}: {_first_line(error)}", err=True)
    click.echo(f"The details are in {where}; please send them with a report of what you did.", err=True)
    return exits.UNEXPECTED


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else "no message"


def _details(error: Exception, arguments: list[str]) -> str:
    import platform
    import tempfile
    import traceback

    from muster import __version__

    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile("w", prefix="muster-error-", suffix=".txt", delete=False) as file:
            file.write(f"muster {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
            file.write(f"arguments: {arguments!r}\n\n{text}")
            return file.name
    except OSError as problem:
        return f"no file, because none could be written ({problem})"


if __name__ == "__main__":
    main()
