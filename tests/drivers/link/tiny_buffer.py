"""The driver link with a socket that holds next to nothing: the kernel takes the least that it allows."""

from nodeagent.drivers.api import Driver, Emit
from nodeagent.drivers.link.driver import LinkDriver, settings_of
from nodeagent.wire import Configure


def create(configure: Configure, emit: Emit) -> Driver:
    return LinkDriver(settings_of(configure), emit, receive_buffer_bytes=1)
