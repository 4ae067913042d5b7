"""The orders that are one call to the daemon: a row each, with options, request and how the answer is shown.

The options of an order are named as the fields of its request. Whether an order is possible the daemon
decides.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from nodeagent.cli.order.owner import owner_option
from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import (
    Output,
    control_socket,
    control_socket_option,
    length_option,
    output_option,
    until_option,
)
from nodeagent.cli.shared.output import note, write, write_field, write_json

if TYPE_CHECKING:
    from nodeagent.cli.shared.json_forms import Form
    from nodeagent.client import Client

_CLOCKS_DIFFER_NS: Final = 10**9

Decorate = Callable[[Callable[..., None]], Callable[..., None]]
"""Adds an argument or option to a command."""


class Exchange(NamedTuple):
    """A request that the daemon has answered. The connection is still open."""

    request: Any
    answer: Any
    daemon: "Client"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCommand:
    """``request`` is the name of its message. ``form`` makes the JSON form, to which ``durable`` is added;
    ``show`` writes the answer for people. ``remarks`` go to standard error in both cases.
    """

    help: str
    request: str
    parameters: Sequence[Decorate]
    form: Callable[[Exchange], "Form"]
    show: Callable[[Exchange], None]
    remarks: Callable[[Exchange], Iterable[str]] = lambda _exchange: ()
    check: Callable[[Mapping[str, Any]], None] = lambda _given: None
    """Raises ``UsageError`` where options do not go together."""


def _command(name: str, order: OrderCommand) -> click.Command:
    def run(socket: Path | None, config_path: Path | None, output: Output, **given: Any) -> None:
        from nodeagent.cli.shared.connection import opened, warn_not_durable
        from nodeagent.messages.pb import control_service_pb2 as pb

        order.check(given)
        request = getattr(pb, order.request)(**given)
        with opened(control_socket(socket, config_path)) as daemon:
            exchange = Exchange(request, daemon.call(request), daemon)
            remarks = order.remarks(exchange)
            if output == Output.JSON:
                write_json(_with_durable(order.form(exchange), exchange.answer))
            else:
                order.show(exchange)
                warn_not_durable(exchange.answer)
        for remark in remarks:
            note(remark)

    decorated: Callable[..., None] = output_option(run)
    decorators: Sequence[Decorate] = (control_socket_option, *reversed(order.parameters))
    for decorate in decorators:
        decorated = decorate(decorated)
    return click.command(name, help=inspect.cleandoc(order.help))(decorated)


def _with_durable(form: "Form", answer: Any) -> "Form":
    """Unless the form has the key already, or the answer does not have it."""
    return (
        form if "durable" in form or not hasattr(answer, "durable") else {**form, "durable": answer.durable}
    )


def _form(message: Any) -> "Form":
    from nodeagent.cli.shared import json_forms

    return json_forms.form(message)


def _end(hold: Any, otherwise: str) -> str:
    from nodeagent.cli.shared.texts import for_people

    return f"until {for_people(hold.until)}" if hold.HasField("until") else otherwise


# --- approve ---


def _approve_form(done: Exchange) -> "Form":
    reset = done.answer.reset
    return {
        "action_id": reset.id or done.request.action_id,
        "approved": done.request.approved,
        "action": _form(reset) if done.answer.HasField("reset") else None,
    }


def _show_approve(done: Exchange) -> None:
    decided = "approved" if done.request.approved else "refused"
    write(f"{decided} {done.answer.reset.id or done.request.action_id}")


# --- isolate, release ---


def _show_isolate(done: Exchange) -> None:
    hold = done.answer.hold
    write(f"isolated {hold.device} for {hold.owner}, {_end(hold, 'until it is released')}: {hold.reason}")
    if done.request.HasField("until") and _is_longer(hold, done.request):
        note(f"nodeagent: {hold.owner} already holds it for longer; to shorten the hold, release it first")


def _is_longer(hold: Any, request: Any) -> bool:
    """Whether it lasts longer than asked, by more than the clocks may differ."""
    ends_ns, asked_ns = hold.until.ToNanoseconds(), request.until.ToNanoseconds()
    return not hold.HasField("until") or ends_ns - asked_ns > _CLOCKS_DIFFER_NS


def _release_form(done: Exchange) -> "Form":
    return {
        "device": done.request.device,
        "released": list(done.answer.released),
        "others": [_form(each) for each in done.answer.others],
    }


def _show_release(done: Exchange) -> None:
    for each in done.answer.released:
        write(f"released {each}")
    for hold in done.answer.others:
        write(f"still isolated by {hold.owner}: {hold.reason} (id {hold.id})")


# --- reset ---


def _check_reset(given: Mapping[str, Any]) -> None:
    if not given["reason"] and not given["dry_run"]:
        raise click.UsageError("--reason is needed, except for a --dry-run")


def _reset_form(done: Exchange) -> "Form":
    request, answer = done.request, done.answer
    return {
        "device": request.device,
        "dry_run": request.dry_run,
        "action_id": answer.action_id,
        "action": _form(answer.reset) if answer.HasField("reset") else None,
        "plan": _form(answer.plan),
        "durable": None if request.dry_run else answer.durable,
    }


def _show_reset(done: Exchange) -> None:
    from nodeagent.cli.shared.texts import enum_text
    from nodeagent.messages import enums

    plan = done.answer.plan
    if done.answer.action_id:
        write(f"proposed {done.answer.action_id}")
    write(f"reset together: {', '.join(plan.devices)}")
    once = ", once, although resets are switched off" if plan.once else ""
    write(f"mode: {enum_text(enums.RESET_MODE_OF, plan.mode)}{once}")
    if plan.used:
        write(f"resets in {plan.window.ToNanoseconds() / 3.6e12:g} h:")
        write_field(" ", ", ".join(f"{each.device} {each.resets} of {each.limit}" for each in plan.used))
    if plan.refused:
        write("it would be refused:")
        write_field(" ", plan.refused)
        return
    write("blocked by:" if plan.blocked_by else "blocked by: nothing")
    for each in plan.blocked_by:
        write_field(" ", each)
    write("steps:")
    for step in plan.steps:
        after = f"after {step.after.seconds} s:" if step.HasField("after") else "then:"
        write_field(f"{after:<12}", step.what)


# --- quiesce, resume ---


def _resets_in_progress(done: Exchange) -> list[Any]:
    """Resets that have begun and are not dry runs."""
    from nodeagent.cli.shared.connection import take_snapshot
    from nodeagent.messages.pb import types_pb2

    begun = (types_pb2.RESET_STAGE_RUNNING, types_pb2.RESET_STAGE_VERIFYING)
    resets = take_snapshot(done.daemon).snapshot.resets
    return [each for each in resets if each.stage in begun and each.mode != types_pb2.RESET_MODE_DRY_RUN]


def _quiesce_form(done: Exchange) -> "Form":
    return {**_form(done.answer.hold), "under_way": [each.id for each in _resets_in_progress(done)]}


def _show_quiesce(done: Exchange) -> None:
    hold = done.answer.hold
    write(f"quiesced for {hold.owner}, {_end(hold, 'until resumed')}: {hold.reason}")
    for each in _resets_in_progress(done):
        write(f"reset {each.id} of {', '.join(each.devices)} is still in progress: wait for its end")


def _resume_form(done: Exchange) -> "Form":
    others = [_form(each) for each in done.answer.others]
    return {"resumed": True, "ids": list(done.answer.resumed), "others": others}


def _show_resume(done: Exchange) -> None:
    write("resumed")
    for hold in done.answer.others:
        write(f"still quiesced by {hold.owner}: {hold.reason} (id {hold.id})")


# --- forget, rebaseline ---


def _device_form(done: Exchange) -> "Form":
    return {"device": done.request.device, "device_id": done.answer.device_id}


def _show_device(text: str) -> Callable[[Exchange], None]:
    """``text`` with the device as it was named, and its id."""
    return lambda done: write(text.format(f"{done.request.device} ({done.answer.device_id})"))


# --- job stop, job rerun ---


def _show_job(text: str) -> Callable[[Exchange], None]:
    def show(done: Exchange) -> None:
        from nodeagent.cli.shared.texts import job_line

        write(text.format(done.request.job))
        write(job_line(done.answer.job))

    return show


# --- inject ---


def _inject_form(done: Exchange) -> "Form":
    request = done.request
    return {"device": request.device, "code": request.code, "condition_id": done.answer.condition_id}


def _show_inject(done: Exchange) -> None:
    opened = done.answer.condition_id or "it opened no condition"
    write(f"injected {done.request.code} on {done.request.device}: {opened}")


def _inject_remarks(done: Exchange) -> list[str]:
    from nodeagent.cli.shared.connection import unknown_codes

    unknown = unknown_codes(done.daemon, (done.request.code,))
    return [f"warning: {each}: it was handled as an unknown code" for each in unknown]


# --- the table ---

_DEVICE: Final = click.argument("device", shell_complete=completion.devices)
_JOB: Final = click.argument("job", shell_complete=completion.jobs)
_WHY: Final = "Why; for the audit log and the events."
_REASON: Final = click.option("--reason", required=True, help=_WHY)
_OPTIONAL_REASON: Final = click.option("--reason", default="", help=_WHY)


def _only(text: str) -> Decorate:
    return click.option("--id", "id", default="", shell_complete=completion.holds, help=text)


def _flag(name: str, text: str) -> Decorate:
    return click.option(name, is_flag=True, help=text)


ORDERS: Final[Mapping[str, OrderCommand]] = {
    "isolate": OrderCommand(
        help="""Isolate DEVICE ("node": the whole node) until you release it, or for a while.

        The hold is yours. Another person can end it only by its id or with --force. Another reason makes
        another hold. Isolating again for the same reason can only make it longer; to shorten it, release it
        first.
        """,
        request="IsolateDeviceRequest",
        parameters=(
            _DEVICE,
            click.option("--reason", required=True, help="Why. It is shown with the verdict."),
            until_option("How long, such as 2h. Default: until released."),
            owner_option,
        ),
        form=lambda done: _form(done.answer.hold),
        show=_show_isolate,
    ),
    "release": OrderCommand(
        help="""End your holds on DEVICE, its promotions, and the faults that only a person may clear.

        The hold of another owner stays, and is named. To end it, use --id or --force. To release a device
        that is still faulty or is not observed, use --force.
        """,
        request="ReleaseDeviceRequest",
        parameters=(
            _DEVICE,
            _REASON,
            _only("End only this hold, promotion or condition, also if it is not yours."),
            _flag("--force", "Also others' holds, and a device that is faulty or not observed."),
            owner_option,
        ),
        form=_release_form,
        show=_show_release,
    ),
    "reset": OrderCommand(
        help="""Reset DEVICE, with all that are reset together with it, once none of them is in use.

        The reset is announced first. It begins when no process uses and no job claims any of them. Follow it
        with "nodeagent status" and "nodeagent events --follow".

        Where resets are switched off, --once allows this one; all other checks still apply. The do-not-touch
        file forbids it too.
        """,
        request="ResetDeviceRequest",
        parameters=(
            _DEVICE,
            _flag("--dry-run", "Change nothing; show what would happen."),
            _flag("--once", "Also where resets are switched off (mode off or dry-run): this one alone."),
            click.option("--reason", default="", help=f"{_WHY} A dry run needs none."),
        ),
        check=_check_reset,
        form=_reset_form,
        show=_show_reset,
    ),
    "approve": OrderCommand(
        help="""Approve ACTION, which waits for an approval in mode ask.

        It is named by a device of it, or by its id, as "nodeagent status -o json" shows it.
        """,
        request="ApproveActionRequest",
        parameters=(
            click.argument("action_id", metavar="ACTION", shell_complete=completion.actions),
            click.option(
                "--refuse",
                "approved",
                is_flag=True,
                flag_value=False,
                default=True,
                help="Refuse the action. Possible in every mode until it begins.",
            ),
            _OPTIONAL_REASON,
        ),
        form=_approve_form,
        show=_show_approve,
    ),
    "quiesce": OrderCommand(
        help="""Let no action begin on this node until you resume, or for a while.

        The quiesce outlives the daemon and a reboot. Another person can end it only by its id or with
        --force. A reset that has begun is called off if the vendor's library has not been called yet.
        Otherwise it is named: wait for its end before you touch the driver.
        """,
        request="QuiesceRequest",
        parameters=(_REASON, length_option("How long, such as 2h. Default: until you resume."), owner_option),
        form=_quiesce_form,
        show=_show_quiesce,
    ),
    "resume": OrderCommand(
        help="""Allow actions again: end your quiesces. The quiesces of others stay and are listed.""",
        request="ResumeRequest",
        parameters=(
            _OPTIONAL_REASON,
            _only("End only this quiesce, also if it is not yours."),
            _flag("--force", "End others' quiesces too."),
            owner_option,
        ),
        form=_resume_form,
        show=_show_resume,
    ),
    "forget": OrderCommand(
        help="""Forget DEVICE, a part that was taken out for good.

        Until then it stays in the list, UNKNOWN, also after a reboot. All that is open on it ends. A part
        that its driver or PCI still lists is not forgotten. If it comes back, it is a new device.
        """,
        request="ForgetDeviceRequest",
        parameters=(
            _DEVICE,
            _REASON,
            _flag("--force", "Also one that a job claims or another owner holds."),
            owner_option,
        ),
        form=_device_form,
        show=_show_device("forgot {}"),
    ),
    "rebaseline": OrderCommand(
        help="""Accept the present state of DEVICE as healthy.

        Use it after a change on purpose: an NVLink bridge was taken out, or links were switched off. A link
        that is down now is no longer reported as missing, nor is a question that the driver no longer
        answers. It ends no other fault.
        """,
        request="RebaselineDeviceRequest",
        parameters=(_DEVICE, _REASON, owner_option),
        form=_device_form,
        show=_show_device("{} is accepted as healthy in its present state"),
    ),
    "stop": OrderCommand(
        help="""Have JOB stop its command, and not run it again until "nodeagent job rerun".

        A job that may not be run again in place is not stopped: end it by its scheduler.
        """,
        request="StopJobRequest",
        parameters=(_JOB, _REASON),
        form=lambda done: _form(done.answer.job),
        show=_show_job("{} is asked to stop"),
    ),
    "rerun": OrderCommand(
        help="""Have JOB run its command again: one that was stopped, or one that runs, which stops first.""",
        request="RerunJobRequest",
        parameters=(_JOB, _REASON),
        form=lambda done: _form(done.answer.job),
        show=_show_job("{} is to run again"),
    ),
    "inject": OrderCommand(
        help="""Make a fault for a rehearsal. It ends by itself and never causes an action.""",
        request="InjectRequest",
        parameters=(
            click.option(
                "--device", required=True, shell_complete=completion.devices, help="Name or id of the device."
            ),
            click.option("--code", required=True, shell_complete=completion.codes, help="The fault code."),
            _flag("--affect-verdict", "Let it change the verdict. Otherwise it is only shown."),
        ),
        form=_inject_form,
        show=_show_inject,
        remarks=_inject_remarks,
    ),
}

COMMANDS: Final[Mapping[str, click.Command]] = {name: _command(name, order) for name, order in ORDERS.items()}
