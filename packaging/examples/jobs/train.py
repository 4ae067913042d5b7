#!/usr/bin/env python3
"""A training job that needs no accelerator: it shows what a supervisor does, and fails where it is told to.

Its ranks are processes. In each step they add up one number over loopback sockets, as an all-reduce does.
Rank 0 may then write a checkpoint, and the next run goes on from the newest. The standard library is enough.

    nodeagent job run -- ./train.py --checkpoints /tmp/demo
    echo "3 hang" > /tmp/demo/orders           # or "3 hang at 50": from that step on
"""

import argparse
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

try:
    from nodeagent_job import beat
except ImportError:  # it also runs where there is no supervisor

    def beat(
        step: "int | None" = None,
        phase: "str | None" = None,
        checkpoint: "int | None" = None,
        *,
        compute_s: "float | None" = None,
        rank: "int | None" = None,
        group: "str | None" = None,
    ) -> None:
        pass


NUMBER = struct.Struct("!d")
CHECKPOINT = re.compile(r"checkpoint-(\d+)\.json")
KEPT = 3
WHAT = "hang, slow, spin, exit N, raise, escape (leave a process behind), ignore-term"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoints", type=Path, required=True, metavar="FOLDER", help="of this job alone")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=600, help="then the job is done")
    parser.add_argument("--step-time", type=float, default=0.1, metavar="SECONDS")
    parser.add_argument("--every", type=int, default=10, metavar="STEPS", help="so often a checkpoint")
    parser.add_argument(
        "--orders", type=Path, metavar="FILE", help=f'FOLDER/orders; lines "RANK WHAT [at STEP]": {WHAT}'
    )
    return parser.parse_args()


def launch(ranks: int) -> int:
    """Start the ranks. The first that fails ends all, with its status, as launchers do."""
    with socket.create_server(("127.0.0.1", 0), backlog=ranks) as server:
        port, descriptor = server.getsockname()[1], server.fileno()
        place = {"WORLD_SIZE": str(ranks), "MASTER_PORT": str(port), "MASTER_FD": str(descriptor)}
        running = {}
        for rank in range(ranks):
            environment = {**os.environ, **place, "RANK": str(rank)}
            command = [sys.executable, *sys.argv]
            child = subprocess.Popen(command, env=environment, pass_fds=() if rank else (descriptor,))
            running[child.pid] = child
    while running:
        pid, ended = os.wait()
        running.pop(pid)
        if status := os.waitstatus_to_exitcode(ended):
            for child in running.values():
                child.kill()
            return status if status > 0 else 128 - status
    return 0


def train(asked: argparse.Namespace, rank: int, world: int) -> int:
    step, weight = newest(asked.checkpoints)
    run = os.environ.get("NODEAGENT_RUN", "1")
    say(f"rank {rank} of {world}, pid {os.getpid()}, run {run}: from step {step}")
    beat(step=step, phase="load")
    peers = connect(rank, world)
    obeyed: set[str] = set()
    while step < asked.steps:
        obey(asked.orders or asked.checkpoints / "orders", rank, step, obeyed)
        began_s = time.monotonic()
        is_slow = any(line.split()[1] == "slow" for line in obeyed)
        time.sleep(asked.step_time * (2 if is_slow else 1))
        step += 1
        compute_s = time.monotonic() - began_s  # up to here it has waited for no other rank
        weight += 0.1 * (all_reduce(peers, float(step * rank), rank) / world - weight)
        if rank == 0 and (step % asked.every == 0 or step == asked.steps):
            save(asked.checkpoints, step, weight)
            say(f"step {step}: checkpoint, weight {weight:.6f}")
        if rank == 0:
            beat(step=step, phase="train", checkpoint=step - step % asked.every, compute_s=compute_s)
        else:
            beat(step=step, compute_s=compute_s)
    return 0


def say(text: str) -> None:
    """In one piece: all ranks write to one pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def connect(rank: int, world: int) -> "list[socket.socket]":
    if rank:
        return [socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])))]
    server = socket.socket(fileno=int(os.environ["MASTER_FD"]))
    return [server.accept()[0] for _ in range(world - 1)]


def all_reduce(peers: "list[socket.socket]", number: float, rank: int) -> float:
    """The sum over all ranks; rank 0 adds up."""
    if rank:
        peers[0].sendall(NUMBER.pack(number))
        return received(peers[0])
    total = number + sum([received(peer) for peer in peers])
    for peer in peers:
        peer.sendall(NUMBER.pack(total))
    return total


def received(peer: socket.socket) -> float:
    data = peer.recv(NUMBER.size, socket.MSG_WAITALL)
    if len(data) < NUMBER.size:
        raise ConnectionError("another rank has ended")
    (number,) = NUMBER.unpack(data)
    return float(number)


def checkpoints(folder: Path) -> "list[tuple[int, Path]]":
    found = ((CHECKPOINT.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


def newest(folder: Path) -> "tuple[int, float]":
    """(step, weight) of the newest checkpoint, or of the beginning."""
    found = checkpoints(folder)
    return (found[-1][0], float(found[-1][1].read_text())) if found else (0, 0.0)


def save(folder: Path, step: int, weight: float) -> None:
    """Under another name first: a run that is killed here leaves no half checkpoint."""
    fresh = folder / "unfinished"
    fresh.write_text(repr(weight))
    fresh.replace(folder / f"checkpoint-{step:06}.json")
    for _, path in checkpoints(folder)[:-KEPT]:
        path.unlink()


def obey(orders: Path, rank: int, step: int, obeyed: "set[str]") -> None:
    lines = orders.read_text().splitlines() if orders.exists() else []
    for line in lines:
        what, _, first = line.partition(" at ")
        words = what.split()
        if words[:1] != [str(rank)] or line in obeyed or step < int(first or 0):
            continue
        obeyed.add(line)
        if words[1:] == ["hang"]:
            time.sleep(1e6)
        elif words[1:] == ["slow"]:
            say(f"rank {rank}: at half the speed from step {step}")
        elif words[1:] == ["spin"]:
            while True:
                pass
        elif words[1:2] == ["exit"]:
            sys.exit(int(words[2]))
        elif words[1:] == ["raise"]:
            raise ValueError("hidden_size must be divisible by num_heads")
        elif words[1:] == ["escape"]:
            subprocess.Popen(["sleep", "1000"], start_new_session=True)
        elif words[1:] == ["ignore-term"]:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            sys.exit(f"{orders}: RANK and one of {WHAT} are right, not {line!r}")


def main() -> int:
    asked = options()
    asked.checkpoints.mkdir(parents=True, exist_ok=True)
    if "RANK" in os.environ:
        try:
            return train(asked, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
        except ConnectionError:
            time.sleep(5)  # the launcher has seen which rank failed first, and ends this one
            raise
    return launch(asked.ranks)


if __name__ == "__main__":
    sys.exit(main())
