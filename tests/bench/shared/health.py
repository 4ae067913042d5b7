"""Waiting for gRPC's health service, as a load balancer or a probe does."""

import contextlib
import socket
import time
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2

WATCH = "/grpc.health.v1.Health/Watch"
LOOK_EVERY_S = 0.002


def wait_for_serving(path: Path, limit_s: float) -> None:
    """Raises ``TimeoutError``."""
    deadline_s = time.monotonic() + limit_s
    while not _listens(path):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"nothing listens on {path}")
        time.sleep(LOOK_EVERY_S)
    with grpc.insecure_channel(f"unix:{path}") as channel:
        watch = channel.unary_stream(
            WATCH,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        for answer in watch(health_pb2.HealthCheckRequest(), timeout=limit_s):
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                return
    raise TimeoutError(f"{path} never came to serve")


def _listens(path: Path) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as attempt:
        attempt.connect(str(path))
        return True
    return False
