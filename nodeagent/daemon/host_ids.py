"""Which machine and which boot this is, as systemd's library reads them. Nothing is guessed or written."""

import logging

from systemd import id128

log = logging.getLogger(__name__)


def machine_id() -> str:
    """32 hexadecimal digits (machine-id(5)), "" where the machine has none: then nothing is bound to it."""
    try:
        return str(id128.get_machine().hex)
    except OSError as error:
        log.warning("this machine has no id (%s): a copied disk cannot be detected", error)
        return ""


def boot_id() -> str:
    """The kernel's id of this boot, with dashes (/proc/sys/kernel/random/boot_id)."""
    return str(id128.get_boot())
