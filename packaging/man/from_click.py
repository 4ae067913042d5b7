"""Makes the manual pages of the commands from what ``nodeagent COMMAND --help`` says."""

import argparse
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import click

from man.roff import Page, bold, italic, plain, prose
from nodeagent.cli.main import SECTIONS, main
from nodeagent.job.policy.options import run_parser
from nodeagent.job.step.arguments import step_parser

New = Callable[[str, str], Page]
"""Makes an empty page of a name and a summary."""

SUPERVISORS: Final[Mapping[str, Callable[[], argparse.ArgumentParser]]] = {
    "nodeagent-job-run": run_parser,
    "nodeagent-job-step": step_parser,
}
"""Commands that read their own command lines."""


def pages(new: New) -> Iterator[Page]:
    """One for each command, the whole one first; without SEE ALSO for that."""
    context = context_of(main, "nodeagent")
    yield from _pages(new, context, "Find out which part of a node is faulty, and report it.")


def context_of(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """As where the command is called."""
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def _pages(new: New, context: click.Context, summary: str) -> Iterator[Page]:
    command = context.command
    name = context.command_path.replace(" ", "-")
    page = new(name, summary.rstrip("."))
    page.heading("SYNOPSIS")
    if name in SUPERVISORS:
        _put_supervisor(page, context, SUPERVISORS[name]())
    else:
        pieces = " ".join(command.collect_usage_pieces(context))
        page.paragraph(f"{bold(context.command_path)} {italic(pieces)}")
        page.heading("DESCRIPTION")
        _put_text(page, command.help or summary)
        _put_options(page, context)
        if command.epilog:
            page.heading("NOTES")
            _put_text(page, command.epilog)
    if isinstance(command, click.Group):
        _put_commands(page, context, command)
    if context.parent is not None:
        page.see_also(*_related(context))
    yield page
    if isinstance(command, click.Group):
        for each, text in _commands(context, command):
            yield from _pages(new, each, text)


def _related(context: click.Context) -> Iterator[tuple[str, int]]:
    above = context.parent
    while above is not None:
        yield above.command_path.replace(" ", "-"), 1
        above = above.parent
    yield "nodeagent.toml", 5


def _commands(context: click.Context, group: click.Group) -> Iterator[tuple[click.Context, str]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            part = getattr(group, "parts", {}).get(name)
            text = part.text if part is not None else command.get_short_help_str(limit=200)
            yield context_of(command, name, context), text


def _put_commands(page: Page, context: click.Context, group: click.Group) -> None:
    """Under the headings that the help has."""
    page.heading("COMMANDS")
    found = {str(each.info_name): (each, text) for each, text in _commands(context, group)}
    headings = {title: list(commands) for title, commands in SECTIONS}
    for title, names in headings.items() if context.parent is None else [("", list(found))]:
        if title:
            page.subheading(title)
        for each, text in (found[name] for name in names):
            words = rf"{plain(text)} See \fB{each.command_path.replace(' ', chr(92) + '-')}\fR(1)."
            page.tagged(bold(str(each.info_name)), words)


def _put_options(page: Page, context: click.Context) -> None:
    options = [each for each in context.command.get_params(context) if isinstance(each, click.Option)]
    records = [record for each in options if (record := each.get_help_record(context)) is not None]
    if records:
        page.heading("OPTIONS")
    for names, text in records:
        page.tagged(bold(names), prose(text))


def _put_text(page: Page, text: str) -> None:
    r"""Paragraphs of a help; one that begins with ``\b`` is shown as it is, as click does."""
    for paragraph in inspect.cleandoc(text).replace("\f", "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            page.example(paragraph.removeprefix("\b\n"))
        else:
            page.paragraph(prose(paragraph))


def _put_supervisor(page: Page, context: click.Context, parser: argparse.ArgumentParser) -> None:
    page.paragraph(f"{bold(context.command_path)} {italic('[OPTIONS] -- COMMAND...')}")
    page.heading("DESCRIPTION")
    page.paragraph(plain(parser.description or ""))
    for group in parser._action_groups:  # argparse gives no other way to them
        options = [
            each for each in group._group_actions if each.option_strings and each.help != argparse.SUPPRESS
        ]
        if not options:
            continue
        page.heading("OPTIONS" if group.title == "options" else f"OPTIONS: {group.title}".upper())
        if group.description:
            page.paragraph(plain(f"{group.description.capitalize()}."))
        for each in options:
            value = f" {each.metavar}" if each.metavar else ""
            page.tagged(bold(", ".join(each.option_strings) + value), plain(each.help or ""))
