"""Replaces secrets in texts that leave the node: keys, tokens, passwords, and what the caller names.

A secret is known by its form (a private key, a token of a known issuer), by the name of its key
(``password = ...``), or because another text gave it such a name (``secrets_in``). What has neither form nor
name is not found.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

MARK: Final = "[redacted]"

LEAST_LEARNT: Final = 6
"""Characters of a value that is also replaced where it has no name: a shorter one would replace common text,
and so would a path."""

_NAME: Final = (
    r"""(?:pass(?:word|wd|phrase)|(?<=[-_"'])pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|signing[-_]?key"""
    r"""|credentials?|(?<![A-Za-z0-9])pass(?=\\*["']?[ \t]*[=:]))"""
)
_NEEDLES: Final = ("pass", "pwd", "secret", "token", "key", "credential")
_SUFFIX: Final = r"(?P<suffix>[-_.\w]{0,40})"
_QUOTED: Final = r"""(?P<quote>\\*["'])(?P<quoted>(?:\\.|(?!(?P=quote)).){0,4000}?)(?P=quote)"""
_NESTED: Final = r"\[[^\]]{0,4000}\]|\{[^}]{0,4000}\}"
_BARE: Final = r"""[^\s,;&"'\\)}\]\[{]+"""
_LONG: Final = r"\"\"\".{0,20000}?\"\"\"|'''.{0,20000}?'''"

_NAMED: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE | re.DOTALL)
    for pattern in (
        # A line that is one assignment without quotes: its value may have blanks.
        (
            rf"(?P<lead>^[ \t]*(?:export[ \t]+)?[-_.\w]{{0,40}}?{_NAME}{_SUFFIX}[ \t]*[=:][ \t]*)"
            r"""(?P<value>[^\s"'\[{][^"'\n]*)"""
        ),
        # "NAME=value with blanks", as in Environment= of a unit.
        (
            rf"""(?P<lead>(?P<around>["'])[-_.\w]{{0,40}}?{_NAME}{_SUFFIX}=)"""
            r"(?P<value>(?:(?!(?P=around))[^\n]){1,4000})(?=(?P=around))"
        ),
        # name = value of TOML, JSON, YAML, environments and URLs, also in JSON within JSON.
        (
            rf"""(?P<lead>{_NAME}{_SUFFIX}\\*["']?[ \t]*[=:][ \t]*)"""
            rf"(?P<value>{_LONG}|{_QUOTED}|{_NESTED}|{_BARE})"
        ),
        # --password value of a command line.
        rf"""(?P<lead>--[-\w]{{0,40}}?{_NAME}{_SUFFIX}[ \t]+)(?P<value>{_QUOTED}|[^\s"'-][^\s"']*)""",
    )
)

_NO_SECRET: Final = re.compile(
    r"(?:[-_.]?(?:file|path|dir|folder|name|type|id|count|length|ttl|age))s?\Z", re.IGNORECASE
)
"""Ends of names whose values are no secrets: ``token_file`` is the path of one."""

_EMPTY: Final = frozenset({"", "null", "none", "true", "false", MARK})


@dataclass(frozen=True, slots=True)
class Form:
    """``needles``: one of them is in each text, in lower case, that holds such a secret."""

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str = MARK


_BEGIN: Final = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_END: Final = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_ARGUMENTS: Final = r"""[^\n]{0,400}?[\s"']"""
_NEXT: Final = r"""[\s"',\\]{1,8}"""
_REST: Final = rf"\g<1>{MARK}"

_FORMS: Final = (
    Form(("private key",), re.compile(rf"{_BEGIN}(?:.{{0,40000}}?{_END}|.{{0,8000}})", re.DOTALL)),
    # The end of one whose beginning was cut off.
    Form(("private key",), re.compile(rf"\A.{{0,40000}}?{_END}", re.DOTALL)),
    Form(
        ("authorization",),
        re.compile(
            r"(authorization\\*[\"']?[ \t]*[:=][ \t]*\\*[\"']?(?:[a-z][-\w]{0,20}[ \t]+)?)[^\s\"'\\,;]+",
            re.IGNORECASE,
        ),
        _REST,
    ),
    Form(("bearer", "basic"), re.compile(r"\b((?:bearer|basic)[ \t]+)[-\w.~+/]{8,}=*", re.IGNORECASE), _REST),
    Form(("cookie",), re.compile(r"(\bcookie[ \t]*[:=][ \t]*)[^\n\"']+", re.IGNORECASE), _REST),
    Form(("://",), re.compile(r"(://[^\s/:@\"']{0,100}:)[^\s/@\"']{1,200}(?=@)"), _REST),
    Form(("://hooks.",), re.compile(r"(://hooks\.[-\w.]{1,100}/)[^\s\"'\\]+", re.IGNORECASE), _REST),
    Form(
        ("sig", "key=", "auth="),
        re.compile(r"([?&](?:sig|signature|x-amz-signature|key|auth)=)[^\s&\"'\\]+", re.IGNORECASE),
        _REST,
    ),
    # JSON Web Tokens (RFC 7519): base64url of {" begins each.
    Form(("eyj",), re.compile(r"\beyJ[-\w]{8,}\.[-\w]{8,}\.[-\w]*")),
    # Prefixes that issuers give their tokens so that scanners find them.
    Form(
        ("akia", "asia", "gh", "glpat-", "xox", "hf_", "sk-", "whsec_", "npm_"),
        re.compile(
            r"\b(?:(?:AKIA|ASIA)[A-Z0-9]{16}\b|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[-\w]{16,}"
            r"|xox[a-z]-[-\w]{10,}|hf_[A-Za-z0-9]{20,}|sk-[-\w]{20,}|whsec_[\w+/=]{10,}|npm_\w{20,})"
        ),
    ),
    # Passwords of programs that take them by a short option, also in a list of arguments.
    Form(
        ("ipmi", "sshpass", "curl", "wget"),
        re.compile(
            rf"""(\b(?:ipmitool\b{_ARGUMENTS}-P{_NEXT}|ipmi-[a-z]{{1,20}}\b{_ARGUMENTS}-p{_NEXT}|sshpass{_NEXT}-p(?:{_NEXT})?"""
            rf"""|(?:curl|wget)\b{_ARGUMENTS}(?:-u|--user){_NEXT}[^\s:"']{{1,100}}:))[^\s"',\\]+"""
        ),
        _REST,
    ),
    # A credential in a unit file (systemd.exec(5)).
    Form(
        ("setcredential",),
        re.compile(
            r"^([ \t]*SetCredential(?:Encrypted)?=[^:\n]*:)(?:[^\n]*\\\n)*[^\n]*",
            re.MULTILINE | re.IGNORECASE,
        ),
        _REST,
    ),
)
"""Secrets that their form shows, replaced before names are looked at."""


def redacted(text: str, secrets: Collection[str] = ()) -> str:
    """The text without the secrets that can be known, and without ``secrets`` wherever they are."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MARK)
    lowered = text.lower()
    for form in _FORMS:
        if any(needle in lowered for needle in form.needles):
            text = form.pattern.sub(form.replacement, text)
    if any(needle in lowered for needle in _NEEDLES):
        for pattern in _NAMED:
            text = pattern.sub(_without_value, text)
    return text


def secrets_in(text: str) -> Iterator[str]:
    """The values that their names show to be secrets, to be found in other texts where they have no name."""
    for pattern in _NAMED:
        for found in pattern.finditer(text):
            value = _bare(found)
            if _is_secret(found) and len(value) >= LEAST_LEARNT and not value.startswith("/"):
                yield value


def _without_value(found: re.Match[str]) -> str:
    if not _is_secret(found):
        return found[0]
    quote = found.groupdict().get("quote") or ""
    return f"{found['lead']}{quote}{MARK}{quote}"


def _is_secret(found: re.Match[str]) -> bool:
    return not _NO_SECRET.search(found["suffix"]) and _bare(found).lower() not in _EMPTY


def _bare(found: re.Match[str]) -> str:
    quoted = found.groupdict().get("quoted")
    return (found["value"] if quoted is None else quoted).strip(" \t\r\n\"'")
