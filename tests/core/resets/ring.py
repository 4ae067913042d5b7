"""A node whose chips are reset together, with what a shell does for the core: polls, claims, results."""

from collections.abc import Iterable
from dataclasses import replace

from nodeagent.core.catalog.catalog import Catalog, ClearOn
from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Action,
    ActionResult,
    ActionState,
    Answer,
    CatalogChanged,
    Claims,
    Event,
    EventKind,
    Input,
    Kind,
    Level,
    ResetMode,
    ResetStage,
    Started,
    Tick,
)
from tests.core.build import active, back, catalog, held, ns, row, seen, signal

BROKEN = Level.RESTART_NPU.value
ACTIONS = (EventKind.ACTION_PROPOSED, EventKind.ACTION_STARTED, EventKind.ACTION_FINISHED)
_AGENTS = ClearOn(operator=True)


def ring_catalog(mode: ResetMode = ResetMode.ON, **words: object) -> Catalog:
    """With the agent's own rows. Resets are limited and timed as shipped, unless said otherwise."""
    settings = replace(ResetSettings(), mode=mode, **words)  # type: ignore[arg-type] # the words of a test
    own = (
        row(code, Level.SEPARATE_NPU, vendor="nodeagent", clear_on=_AGENTS)
        for code in ("reset_failed", "reset_limit_reached")
    )
    return catalog(
        *own,
        row("store_degraded", Level.NOT_HANDLE, vendor="nodeagent", kind=Kind.HOST),
        reset=settings,
    )


class Ring:
    """``chips`` npu0.. in one group, all free, and a hook that has spoken once; ``later`` may be loaded."""

    def __init__(
        self,
        given: Catalog | None = None,
        chips: int = 2,
        free: bool = True,
        later: Catalog | None = None,
    ) -> None:
        self.catalog = given or ring_catalog()
        known = (self.catalog, later or self.catalog)
        self.engine = Engine({catalog.digest: catalog for catalog in known})
        self.names = [f"npu{index}" for index in range(chips)]
        self.events: list[Event] = []
        self.actions: list[Action] = []
        self.records: list[tuple[int, Input]] = []
        self.at_s = 0.0
        self.answer: Answer | None = None
        self.start()
        if free:
            self.nobody_holds()
            self.do(Claims(device="npu0", job="j", kind="training", claimed=True))
            self.do(Claims(device="npu0", job="j", kind="training", claimed=False))

    def start(self, boot: str = "boot-1") -> None:
        """A daemon begins: what its drivers list, and a first read of it all."""
        self.do(CatalogChanged(digest=self.catalog.digest))
        self.do(Started(boot_id=boot, version="1"))
        self.list_all()
        self.do(back())

    def restart(self) -> None:
        """The daemon begins again under the same tables."""
        self.do(Started(boot_id="boot-1", version="1"))
        self.list_all()
        self.do(back())

    def list_all(self) -> None:
        for index, name in enumerate(self.names):
            device = seen(name, f"die{index}", f"0000:0{index}:00.0")
            self.do(replace(device, attributes={**device.attributes, "group": "ring0"}))

    def nobody_holds(self) -> None:
        for name in self.names:
            self.do(held(name, None))

    def do(self, given: Input) -> list[Event]:
        outcome = self.engine.step(ns(self.at_s), given)
        self.answer = outcome.answer
        self.events += outcome.events
        self.actions += outcome.actions
        self.records += [(ns(self.at_s), record) for record in outcome.records]
        return list(outcome.events)

    def wait(self, seconds: float) -> None:
        self.at_s += seconds
        self.do(Tick())

    def pass_unheard(self, seconds: float) -> None:
        """There is no daemon meanwhile."""
        self.at_s += seconds

    def fault(self, code: str = BROKEN, device: str = "npu0") -> None:
        self.do(signal(code, "occur", device))

    def recover(self, code: str = BROKEN, device: str = "npu0") -> None:
        self.do(signal(code, "recover", device))

    def poll(self, *codes: str, device: str = "npu0") -> None:
        self.do(active(*codes, device=device, begun_s=self.at_s))

    def poll_all(self, *codes: str) -> None:
        """``codes`` are active on npu0."""
        for name in self.names:
            self.poll(*(codes if name == "npu0" else ()), device=name)

    def result(self, state: ActionState = ActionState.DONE, reason: str = "") -> None:
        self.do(ActionResult(action_id=self.actions[-1].id, state=state, reason=reason))

    def propose_and_start(self, code: str = BROKEN) -> None:
        """A fault, its announcement, and a poll that still shows it."""
        self.fault(code)
        self.wait(20)
        self.poll_all(code)
        self.wait(10.001)

    def help(self) -> None:
        """The reset was done, and every chip is read and well."""
        self.wait(5)
        self.result()
        self.wait(1)
        self.poll_all()

    def emitted(self, *kinds: EventKind) -> list[tuple[str, str]]:
        """Kind and words of the events about actions, or of these kinds."""
        return [(event.kind.value, event.why) for event in self.events if event.kind in (kinds or ACTIONS)]

    def stages(self) -> list[ResetStage]:
        return [reset.stage for reset in self.engine.view().resets]

    def open_on(self, device: str) -> list[str]:
        ids = {view.name: view.id for view in self.engine.view().devices}
        return [each.code for each in self.engine.view().conditions if each.device_id == ids[device]]

    def verdicts(self, names: Iterable[str] = ()) -> list[str]:
        wanted = list(names) or self.names
        by_name = {view.name: view.verdict.value for view in self.engine.view().devices}
        return [by_name[name] for name in wanted]
