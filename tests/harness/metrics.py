"""Whether and what a daemon answers to Prometheus."""

import asyncio
import urllib.request

from tests.waiting import WAIT_LIMIT_S


async def is_scraped(address: str) -> bool:
    host, port = address.split(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
    except ConnectionRefusedError:
        return False
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    answered = await reader.read()
    writer.close()
    return b"nodeagent_build_info" in answered


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=WAIT_LIMIT_S) as answer:
        text: str = answer.read().decode()
    return text
