"""The driver of UnifiedBus switches, which asks for another process as soon as it has reported all faults."""

from nodeagent.drivers.api import Driver, Emit
from nodeagent.drivers.ascend.unifiedbus import SwitchDriver
from nodeagent.wire import Configure


def create(configure: Configure, emit: Emit) -> Driver:
    return SwitchDriver(library=str(configure.config["library"]), emit=emit, renew_each_ns=0)
