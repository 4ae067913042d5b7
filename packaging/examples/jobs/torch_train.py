#!/usr/bin/env python3
"""A job of torchrun that recovers in place: checkpoints by rename, a run that goes on from them, beats.

    nodeagent job run -- torchrun --standalone --nproc-per-node 2 torch_train.py --checkpoints /tmp/demo
    echo "1 hang" > /tmp/demo/orders           # or "1 slow": at half the speed

It trains a small model on processors, over gloo, so that it can be tried on any machine with torch.
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

import torch
from torch import distributed, nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

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


CHECKPOINT = re.compile(r"checkpoint-(\d+)\.pt")
WIDTH = 32


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoints", type=Path, required=True, metavar="FOLDER", help="of this job alone")
    parser.add_argument("--steps", type=int, default=600, help="then the job is done")
    parser.add_argument("--step-time", type=float, default=0.1, metavar="SECONDS")
    parser.add_argument("--every", type=int, default=10, metavar="STEPS", help="so often a checkpoint")
    return parser.parse_args()


def newest(folder: Path) -> "tuple[int, Path | None]":
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := CHECKPOINT.fullmatch(path.name))]
    return max(found, default=(0, None))


def save(folder: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Under another name first: a run that is killed here leaves no half checkpoint."""
    fresh = folder / "unfinished"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, fresh)
    fresh.replace(folder / f"checkpoint-{step:06}.pt")


def say(text: str) -> None:
    """In one piece: all ranks write to one pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def obey(orders: Path, rank: int) -> bool:
    """Whether this rank is to be slow."""
    lines = orders.read_text().splitlines() if orders.exists() else []
    if f"{rank} hang" in lines:
        time.sleep(1e6)
    return f"{rank} slow" in lines


# What fails is also written where the supervisor reads the kind of the error.
@record
def main() -> None:
    asked = options()
    asked.checkpoints.mkdir(parents=True, exist_ok=True)
    beat(phase="load")
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    step, checkpoint = newest(asked.checkpoints)
    if checkpoint is not None:
        kept = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
    run = os.environ.get("NODEAGENT_RUN", "1")
    say(f"rank {rank}, pid {os.getpid()}, run {run}: from step {step}")
    while step < asked.steps:
        is_slow = obey(asked.checkpoints / "orders", rank)
        began_s = time.monotonic()
        time.sleep(asked.step_time * (2 if is_slow else 1))
        step += 1
        batch = torch.randn(16, WIDTH, generator=torch.Generator().manual_seed(1000 * step + rank))
        loss = (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        compute_s = time.monotonic() - began_s  # up to here it has waited for no other rank
        loss.backward()  # the ranks add up their gradients here: one that sleeps holds up all
        optimizer.step()
        if rank == 0 and (step % asked.every == 0 or step == asked.steps):
            save(asked.checkpoints, step, model, optimizer)
            say(f"step {step}: checkpoint, loss {loss.item():.4f}")
        if rank == 0:
            beat(step=step, phase="train", checkpoint=step - step % asked.every, compute_s=compute_s)
        else:
            beat(step=step, compute_s=compute_s)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
