"""The socket of supervisors, with real processes at the other end: what is taken, and what is sent."""

from pathlib import Path

from nodeagent.core.model import Assertion, EventKind, Handling, JobStage, Signal
from nodeagent.job import lines
from nodeagent.job.model import RunEvent, RunReport
from tests.api.jobs.stage import staged
from tests.api.jobs.supervisor import connected, holder, rerun, stop


async def test_a_job_begins_and_may_run_at_once(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        welcome = await supervisor.greet()
        want = await supervisor.begin_again()
        assert (welcome.job, welcome.version) == (f"pid:{supervisor.pid}", "0.1.0")
        assert (want.wish.value, want.run) == ("run", 1)
        assert stage.jobs[welcome.job].stage is JobStage.RUNNING


async def test_who_may_use_the_socket_is_everybody(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        assert stage.socket.stat().st_mode & 0o777 == 0o666


async def test_what_is_wanted_is_told_at_each_change_and_what_is_said_moves_the_job(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        name = f"pid:{supervisor.pid}"
        await supervisor.say(RunEvent.STARTED)
        await stage.do(stop(name))
        asked = await supervisor.wanted("stop")
        assert (asked.run, asked.by_operator) == (1, True)
        await supervisor.say(RunEvent.STOPPED)
        hold = await supervisor.wanted("hold")
        await stage.do(rerun(name))
        again = await supervisor.wanted("run")
        assert (hold.run, again.run) == (2, 2)
        await supervisor.say(RunEvent.STARTED, run=2)
        assert [event.job.run for event in stage.events(EventKind.JOB_RERUN) if event.job] == [2]


async def test_a_supervisor_that_connects_anew_has_its_name_and_is_told_anew(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        await stage.do(stop(f"pid:{supervisor.pid}"))
        await supervisor.wanted("stop")
        await supervisor.connect_again()
        welcome = await supervisor.greet()
        want = await supervisor.begin_again(is_running=True)
        assert welcome.job == f"pid:{supervisor.pid}"
        assert (want.wish.value, want.by_operator) == ("stop", True)
        assert [event.device for event in stage.events(EventKind.JOB_BEGUN)] == ["node"]


async def test_what_was_taken_is_not_taken_twice(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        said = RunReport(number=1, run=1, what=RunEvent.SUSPECTED, why="no step for 12 min")
        for _ in range(3):
            supervisor.send(said)
            assert (await supervisor.hear(lines.ReportTaken)).number == 1
        assert [event.why for event in stage.events(EventKind.JOB_SUSPECTED)] == ["no step for 12 min"]


async def test_chips_are_those_that_its_processes_hold_and_they_only_grow(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        name = f"pid:{supervisor.pid}"
        await supervisor.say(RunEvent.STARTED)
        await stage.hold("npu0", holder(supervisor.pid))
        await stage.job(name, devices=(stage.device("npu0").id,))
        await stage.hold("npu0")
        await stage.hold("npu1", holder(supervisor.pid), holder(1))
        await stage.job(name, devices=(stage.device("npu0").id, stage.device("npu1").id))


async def test_a_process_of_nobody_s_tree_gives_no_chip(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await stage.hold("npu0", holder(1))
        await stage.hold("npu1", holder(supervisor.pid, job="slurm:9.0"))
        await supervisor.begin()
        assert stage.chips_of(f"pid:{supervisor.pid}") == set()


async def test_it_is_told_what_is_read_of_its_chips_and_who_holds_them(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        stage.readings = {
            "npu0": {
                "utilization_ratio.aicore": 0.875,
                "utilization_ratio.memory_bandwidth": 0.25,
                "power_watts": 312.5,
                "link_received_bytes_total.roce": 4096.0,
                "link_sent_bytes_total.roce": 1024.0,
                "memory_used_bytes": 3e9,
                "memory_total_bytes": 64e9,
                "link_up.hccs": 1.0,
                "link_up.ub0": 0.0,
            }
        }
        await stage.hold("npu0", holder(supervisor.pid))
        await supervisor.begin()
        answer = await supervisor.ask()
        assert answer == lines.ChipReadings(
            number=7,
            chips=(
                lines.ChipReading(
                    name="npu0",
                    known=True,
                    util=87.5,
                    mem_util=25.0,
                    power_w=312.5,
                    rx_bytes=4096,
                    tx_bytes=1024,
                    handling=Handling.NONE.value,
                    holders=(supervisor.pid,),
                    memory_used_bytes=3_000_000_000,
                    memory_total_bytes=64_000_000_000,
                    ports={"hccs": True, "ub0": False, "network": True},
                ),
            ),
        )


async def test_a_chip_that_is_profiled_is_told_as_such(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        stage.readings = {"npu0": {"profiled.aicore": 1.0, "profiled.vector": 0.0}}
        await stage.hold("npu0", holder(supervisor.pid))
        await supervisor.begin()
        (chip,) = (await supervisor.ask()).chips
        assert (chip.profiling, chip.util) == (True, None)


async def test_it_leaves_with_its_status(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        supervisor.send(lines.Bye(number=1, status=87, why="the same failure twice"))
        assert (await supervisor.hear(lines.ReportTaken)).number == 1
        assert await supervisor.next() is None
        job = stage.jobs[f"pid:{supervisor.pid}"]
        assert (job.stage, job.status, job.why) == (JobStage.ENDED, 87, "the same failure twice")


async def test_a_line_that_no_store_could_keep_is_cut_or_refused(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        why = b'"\\ud800 broken\\nline ' + b"x" * 2000 + b'"'
        supervisor.write(
            b'{"line":"said","number":1,"run":1,"what":"suspected","why":'
            + why
            + b',"evidence":{"\\udfff":"\\ud800"}}\n'
        )
        assert await supervisor.hear(lines.ReportTaken) == lines.ReportTaken(number=1)
        (suspected,) = stage.events(EventKind.JOB_SUSPECTED)
        assert suspected.why.startswith("\N{REPLACEMENT CHARACTER} broken\N{REPLACEMENT CHARACTER}line xxx")
        assert len(suspected.why) == 512
        supervisor.write(b'{"line":"said","number":1' + b"0" * 4000 + b',"run":1,"what":"started"}\n')
        assert (
            "number: a whole number from 1 to 9007199254740992"
            in (await supervisor.hear(lines.SupervisorRefused)).why
        )


async def test_a_chip_that_becomes_sub_healthy_is_named_and_the_job_may_run_on(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await stage.hold("npu0", holder(supervisor.pid))
        await supervisor.begin()
        await supervisor.say(RunEvent.STARTED)
        await stage.do(
            Signal(source="ascend", device="npu0", code="SubHealthFault", assertion=Assertion.OCCUR)
        )
        want = await supervisor.wanted("run")
        while not want.sub_health:
            want = await supervisor.wanted("run")
        assert (want.sub_health, want.handling) == ("npu0 has SubHealthFault", "JOB_STRATEGY")
        assert (want.handling_chip, want.handling_code) == ("npu0", "SubHealthFault")


async def test_it_takes_faults_of_chips_to_the_supervisor_before_its_next_word(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await stage.hold("npu0", holder(supervisor.pid))
        await supervisor.begin()
        await supervisor.say(RunEvent.STARTED)
        await stage.breaks("npu0")
        want = await supervisor.wanted("stop")
        assert (want.chip, want.code, want.run) == ("npu0", "RestartNPU", 1)


async def test_limits_that_a_supervisor_has_learnt_are_known_while_it_is_connected(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        supervisor.send(lines.AskChips(number=1, limits=lines.LearntLimits(step_s=72.0, start_s=1200.0)))
        await supervisor.hear(lines.ChipReadings)
        name = next(iter(stage.jobs))

        assert stage.listener.limits_of(name) == lines.LearntLimits(step_s=72.0, start_s=1200.0)
        assert stage.listener.limits_of("slurm:1.0") == lines.LearntLimits()
