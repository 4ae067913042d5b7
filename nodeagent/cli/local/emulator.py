"""``nodeagent emulator``: a node with accelerators where there are none, and all that can happen to it.

``start`` is the emulator. The other commands are requests to it, made from the list of its requests.
``front`` changes single answers of NVML, of an emulated library or of the real one.
"""

import contextlib
import grp
import inspect
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin

import click
import msgspec

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.errors import EXIT_UNAVAILABLE, CommandFailure
from nodeagent.cli.shared.options import Output, output_option
from nodeagent.cli.shared.output import write, write_json, write_lines
from nodeagent.emulator.build import BuildFailed
from nodeagent.emulator.control.call_requests import EmulatorRequest
from nodeagent.emulator.control.requests import REQUESTS
from nodeagent.emulator.control.server import RefusedByEmulator, Server, ask
from nodeagent.emulator.descriptions import PRODUCTS, DescriptionError
from nodeagent.emulator.layout import FieldError
from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.nvml import Front
from nodeagent.emulator.processes import has_ended
from nodeagent.emulator.state import FILE
from nodeagent.system.directories import NotOwnError, make_own
from nodeagent.vendors import DRIVERS, VendorConfig
from nodeagent.worker.hosted import USER

_SECTIONS: Final = {traits.library: name for name, traits in DRIVERS.items() if traits.library}
"""Library -> the section of the configuration that names it."""

REHEARSED_POLL_NS: Final = 1_000_000_000
"""A source with a longer interval is polled this often in a rehearsal."""

FOLDER: Final = "front"
LINES: Final = """\b
FUNCTION r CODE [GPU]          answers this nvmlReturn_t
FUNCTION v VALUE [GPU]         gives this value
FUNCTION d MILLISECONDS [GPU]  takes so much longer
field ID SCOPE GPU RETURN [TYPE VALUE]   one field; RETURN -1: left as it came
unpopulated CODE [GPU]         nvmlDeviceGetFieldValues where no field has a value
xid NUMBER GPU XID [GI CI [SET]]         sent once for each NUMBER; SET: to that GPU's set

GPU is an index, -1 or nothing: each. FUNCTION may end in *. The first line about an answer is in force.
"""


def _usual_directory() -> Path:
    """The unit's folder where there is one: others its daemon does not see, or may not write to."""
    folder = Path("/var/lib/nodeagent")
    return (
        folder / "emulator" if os.access(folder, os.W_OK) else Path(f"/tmp/nodeagent-emulator-{os.getuid()}")
    )


def _directory_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--directory",
        type=click.Path(path_type=Path),
        envvar="NODEAGENT_EMULATOR",
        show_envvar=True,
        default=_usual_directory,
        help="Where the emulated node lies; else /var/lib/nodeagent/emulator, else in /tmp.",
    )(command)


@click.group("emulator")
def command() -> None:
    """Play a node with accelerators: libraries with the vendors' interface, changed while they are used."""


def configuration_of(node: EmulatedNode) -> str:
    """The lines of a configuration whose drivers use the libraries of this node."""
    lines: list[str] = []
    libraries = {_SECTIONS[library.name]: library for library in node.directory.glob("lib*.so*")}
    # Those of chips last: a key that a person adds to the end is usually meant for them.
    for name, library in sorted(
        libraries.items(), key=lambda each: (DRIVERS[each[0]].lists is not None, each[0])
    ):
        lines += [f"[drivers.{name}]", f'library = "{library}"']
        section = DRIVERS[name].section
        if issubclass(section, VendorConfig):
            lines.append(f'sysfs = "{node.sysfs}"')
        if section().poll_interval_ns > REHEARSED_POLL_NS:
            lines.append('poll_interval = "1s"')
    return "\n".join(lines)


@command.command("start")
@click.argument("description", default="8x910B")
@_directory_option
@click.option("--while", "process", type=int, metavar="PID", help="End when this process does.")
@output_option
def start(description: str, directory: Path, process: int | None, output: Output) -> None:
    """Be the emulator of a node such as 8x910B or 16xA3+8xH100, until interrupted."""
    try:
        # Programs load libraries from there, so the directory must not belong to another user.
        make_own(directory, 0o755)
        node = EmulatedNode.create(directory.absolute(), description)
        _let_worker_in(directory / FILE)
    except (DescriptionError, BuildFailed, NotOwnError) as refused:
        raise CommandFailure(str(refused)) from refused
    except OSError as failed:
        raise CommandFailure(f"{directory}: {failed.strerror}") from failed
    server = Server(node)
    try:
        _announce(node, description, output)
        _wait(process)
    finally:
        server.close()


start.help = f"{start.help}\n\nProducts: {', '.join(PRODUCTS)}."


def _let_worker_in(state: Path) -> None:
    """The packaged worker for NPUs runs as another user, and its calls change the shared state."""
    if os.geteuid() == 0:
        with contextlib.suppress(KeyError):
            os.chown(state, -1, grp.getgrnam(USER).gr_gid)
            state.chmod(0o660)


def _announce(node: EmulatedNode, description: str, output: Output) -> None:
    lines = configuration_of(node)
    if output == Output.JSON:
        write_json({"description": description, "directory": str(node.directory), "configuration": lines})
        return
    write(f"emulating {description} in {node.directory}; the daemon uses it with this configuration:")
    write_lines(lines)


def _wait(process: int | None) -> None:
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    if process is not None:
        threading.Thread(target=_end_with, args=(process, over), daemon=True).start()
    over.wait()


def _end_with(process: int, over: threading.Event) -> None:
    has_ended(process, within_ms=None)
    over.set()


# --- the requests ---


_COMPLETERS: Final = {"device": completion.devices}
"""Of fields whose values the running daemon knows."""


def _parameter(field: msgspec.structs.FieldInfo) -> click.Parameter:
    """A field that must be given is an argument, any other an option of its name."""
    kind, help_text = _described(field.type)
    if get_origin(kind) is Literal:
        kind = click.Choice(get_args(kind))
    if field.required:
        return click.Argument([field.name], type=kind, shell_complete=_COMPLETERS.get(field.name))
    name = field.name.replace("_", "-")
    if kind is bool:
        return click.Option(
            [f"--{name}/--no-{name}"], default=field.default, show_default=True, help=help_text
        )
    return click.Option(
        [f"--{name}"],
        type=kind,
        shell_complete=_COMPLETERS.get(field.name),
        default=field.default,
        show_default=field.default not in ("", -1),
        help=help_text,
    )


def _described(kind: Any) -> tuple[Any, str]:
    """The type of a field, and the description of its annotation."""
    if get_origin(kind) is not Annotated:
        return kind, ""
    return kind.__origin__, next(meta.description or "" for meta in kind.__metadata__)


def _command_of(request: type[EmulatorRequest]) -> click.Command:
    tag = cast("str", request.__struct_config__.tag)
    fields = msgspec.structs.fields(request)

    def do(directory: Path, output: Output, **given: Any) -> None:
        try:
            answer = ask(directory.absolute(), {"do": tag, **given})
        except RefusedByEmulator as refused:
            raise CommandFailure(str(refused)) from refused
        except OSError as failed:
            raise CommandFailure(
                f"no emulator answers in {directory} ({failed.strerror or failed}): nodeagent emulator start",
                EXIT_UNAVAILABLE,
            ) from failed
        _write_answer(answer, output)

    parameters = [_parameter(field) for field in fields]
    made = click.Command(tag, callback=do, params=parameters, help=inspect.getdoc(request))
    made.context_settings["ignore_unknown_options"] = (
        True  # numbers below zero, such as answers, are no options
    )
    return cast("click.Command", _directory_option(output_option(made)))


def _write_answer(answer: dict[str, Any], output: Output) -> None:
    if output == Output.JSON:
        write_json(answer)
        return
    for key, value in answer.items():
        if isinstance(value, list):
            for item in value:
                write(_line_of(item) if isinstance(item, dict) else str(item))
        elif isinstance(value, dict):
            for name, each in value.items():
                write(f"{name} {each}")
        else:
            write(f"{key} {value}")


def _line_of(item: dict[str, Any]) -> str:
    return " ".join(f"{name}={_plain(value)}" for name, value in item.items())


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "-"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


for _request in REQUESTS:
    command.add_command(_command_of(_request))


# --- the front ---


@command.group("front")
def front() -> None:
    """Change single answers of a libnvidia-ml.so.1, also of a real one, while it is used."""


@front.command("start")
@click.argument("library", type=click.Path(path_type=Path), required=False)
@_directory_option
def start_front(library: Path | None, directory: Path) -> None:
    """Put a front before LIBRARY; else before the one of the emulated node. It prints the
    configuration.
    """
    made = _or_fail(lambda: Front.create(_folder(directory), library or directory / "libnvidia-ml.so.1"))
    write("the daemon uses it with this configuration:")
    write(f'[drivers.nvidia]\nlibrary = "{made.path}"')


@front.command("set", help=f"Change the answers that these LINEs name, and no others.\n\n{LINES}")
@click.argument("lines", metavar="LINE...", nargs=-1, required=True)
@_directory_option
def set_lines(lines: tuple[str, ...], directory: Path) -> None:
    _or_fail(lambda: Front(_folder(directory)).change(lines))


@front.command("add", help=f"Change the answers that these LINEs name too.\n\n{LINES}")
@click.argument("lines", metavar="LINE...", nargs=-1, required=True)
@_directory_option
def add_lines(lines: tuple[str, ...], directory: Path) -> None:
    _or_fail(lambda: Front(_folder(directory)).add(lines))


@front.command("load")
@click.argument("file", type=click.Path(path_type=Path))
@_directory_option
def load_file(file: Path, directory: Path) -> None:
    """Change the answers that the lines of FILE name, and no others."""
    _or_fail(lambda: Front(_folder(directory)).change(file.read_text(errors="replace").splitlines()))


@front.command("clear")
@_directory_option
def clear_lines(directory: Path) -> None:
    """Stop changing answers."""
    _or_fail(lambda: Front(_folder(directory)).clear())


@front.command("show")
@_directory_option
def show_lines(directory: Path) -> None:
    """Show the lines in force."""
    for line in _or_fail(lambda: Front(_folder(directory)).lines):
        write(line)


def _folder(directory: Path) -> Path:
    return directory.absolute() / FOLDER


def _or_fail(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except (FieldError, BuildFailed) as refused:
        raise CommandFailure(str(refused)) from refused
    except OSError as failed:
        raise CommandFailure(f"{failed.filename}: {failed.strerror}") from failed
