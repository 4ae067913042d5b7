"""The live cells of acting: holds, resets, also past ones, and who claims a device. As in ``cells``."""

from dataclasses import dataclass

from nodeagent.core.model.enums import ActionState, AskAgain, HoldKind, ResetMode, ResetStage


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An isolation set by a person, a pending reset or a quiesce.

    ``owner`` is in whose name it was set, ``set_by`` the caller as the daemon knew him: "" where no person
    set it, and where a version set it that did not distinguish the two.
    """

    id: str
    device_id: str
    owner: str
    reason: str
    since_ns: int
    until_ns: int | None = None
    kind: HoldKind = HoldKind.ISOLATION
    set_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """One reset of a group of devices, from its proposal until the faults that asked for it are gone.

    ``members`` are device ids, ``asker_id`` the one whose ``conditions`` (ids) asked, with ``codes``;
    ``who`` is the person who asked instead, ``once`` though resets are switched off here. ``due_ns`` is when
    the stage ends by itself. ``confirmed``: a poll begun after the proposal, and in this life of the daemon,
    still showed the fault. ``hindered`` is what blocks it, as last seen, and ``told`` as last reported;
    ``unsettled_ns`` is since when it is not known who is on its members. Of an ended one ``hindered`` is
    what it waited for in vain. ``verified`` are the members that a poll begun after the result found well.
    An ended one has an ``outcome``, and stays until its conditions are closed: they do not ask twice, unless
    they ``may_ask_again``: at once, or where it was ``hindered`` once nothing blocks it. ``result`` says for
    people how it ended and why, ``report`` is how it was done, in the shell's words.
    """

    id: str
    asker_id: str
    members: tuple[str, ...]
    mode: ResetMode
    stage: ResetStage
    proposed_ns: int
    due_ns: int | None
    conditions: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    who: str = ""
    reason: str = ""
    attempt: int = 1
    approved: bool = False
    confirmed: bool = False
    hindered: tuple[str, ...] = ()
    started_ns: int | None = None
    ended_ns: int | None = None
    verified: tuple[str, ...] = ()
    result: str = ""
    report: str = ""
    outcome: ActionState | None = None
    may_ask_again: bool = False
    once: bool = False
    told: tuple[str, ...] = ()
    unsettled_ns: int | None = None

    @property
    def is_dry_run(self) -> bool:
        """Nothing is done, whatever its stage says."""
        return self.mode is ResetMode.DRY_RUN

    @property
    def is_pending(self) -> bool:
        """Nothing has been done yet."""
        return self.stage in (ResetStage.ANNOUNCED, ResetStage.ASKING, ResetStage.WAITING)

    @property
    def is_under_way(self) -> bool:
        return self.stage in (ResetStage.RUNNING, ResetStage.VERIFYING)

    @property
    def has_ended(self) -> bool:
        return self.stage is ResetStage.ENDED

    @property
    def ask_again(self) -> AskAgain:
        """Of one that has ended: when the faults that asked for it may ask for another."""
        if not self.may_ask_again:
            return AskAgain.NEVER
        return AskAgain.ONCE_UNBLOCKED if self.hindered else AskAgain.AT_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class PastResets:
    """When a device was reset of late, oldest first: what its limit counts. The node has one for all."""

    device_id: str
    resets_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The jobs that said they use a device, as pairs (job, kind); empty once they have all left."""

    device_id: str
    jobs: tuple[tuple[str, str], ...]
