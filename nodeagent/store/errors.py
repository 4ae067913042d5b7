"""What the store raises. Disk trouble is not among it for writes: those continue in memory."""


class StoreInUseError(Exception):
    """Another process holds this state directory; two writers would give one number two meanings."""


class StoreUnreadableError(Exception):
    """A read could not be answered: the disk is in trouble and memory does not hold the answer."""


class StoreDamagedError(Exception):
    """The file is not a store of ours, or parts of it cannot be read back."""


class CutShortError(StoreDamagedError):
    """The log's end is not whole, as a power failure leaves it: what was being written was not answered."""


class FileGoneError(OSError):
    """The file that was just written has no name any more: it is lost when the last process closes it."""


class NewerSchemaError(Exception):
    """A later version wrote the file in a form that this one does not know: it is left as it is."""


class UnreadLifeError(Exception):
    """The disk answers again, but it holds a state the start could not read: only a restart can load it."""


class ConsumerError(Exception):
    """An acknowledgement that cannot be taken; the text has the reason and what would be right."""


class OtherStoreError(ConsumerError):
    """The acknowledged number belongs to another store id."""


class BeyondLastError(ConsumerError):
    """The number was never given, or, of one to go back to, never acknowledged."""


class OtherOwnerError(ConsumerError):
    """The consumer belongs to another identity."""


class TooManyConsumersError(ConsumerError):
    """The limit of named consumers is reached."""
