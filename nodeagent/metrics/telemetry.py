"""Readings of devices as metrics: a reading ``NAME.PART`` is ``nodeagent_NAME{device, part}``.

A source's reading of itself is ``nodeagent_source_NAME{source, part}``. Only what is observed now is shown:
a device that does not answer has no series, rather than its last value for ever. Nothing is judged.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Final

from prometheus_client.core import Metric

from nodeagent.api.base_units import in_base_units
from nodeagent.metrics.daemon import SourceHealth

PREFIX: Final = "nodeagent_"
SOURCE_PREFIX: Final = "nodeagent_source_"
SOURCE: Final = "*"
"""The name under which a worker reports readings of its source as a whole."""

COUNTER_SUFFIX: Final = "_total"

_UNKNOWN: Final = "Reading of a device or a source, as its driver names it."
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")


def telemetry(sources: Sequence[SourceHealth], taken: Collection[str]) -> Iterator[Metric]:
    """A family for each name, in their order. ``taken`` are families that no reading may join: what a
    driver calls so is left out. Of two sources that measure the same the first is shown.
    """
    families: dict[str, Metric] = {}
    shown: set[tuple[str, str, str, str]] = set()
    for source in sources:
        for device, readings in source.readings.items():
            of_source = device == SOURCE
            prefix = SOURCE_PREFIX if of_source else PREFIX
            at = ("source", source.source) if of_source else ("device", device)
            for reading, value in starmap(in_base_units, readings.items()):
                name, _, part = reading.partition(".")
                metric = prefix + _NOT_IN_A_NAME.sub("_", name)
                if (metric, *at, part) in shown or metric.removesuffix(COUNTER_SUFFIX) in taken:
                    continue
                shown.add((metric, *at, part))
                family = families.get(metric)
                if family is None:
                    family = families[metric] = _family(metric, name)
                labels = dict([at, ("part", part)]) if part else dict([at])
                family.add_sample(metric, labels, value)
    for metric in sorted(families):
        yield families[metric]


def _family(metric: str, name: str) -> Metric:
    is_counter = metric.endswith(COUNTER_SUFFIX)
    kind = "counter" if is_counter else "gauge"
    return Metric(
        metric.removesuffix(COUNTER_SUFFIX) if is_counter else metric, HELP.get(name, _UNKNOWN), kind
    )


HELP: Final[Mapping[str, str]] = {
    # Power and heat
    "temperature_celsius": "Temperature; without a part the chip's.",
    "temperature_excess_celsius": "Degrees above the temperature from which the part is slowed.",
    "temperature_limit_celsius": "Degrees left to the limit that the part names.",
    "power_watts": "Power drawn now, or by the part's name its average.",
    "power_limit_watts": "Power at which the device is held back.",
    "energy_joules_total": "Energy used since the driver was loaded.",
    "voltage_volts": "Supply voltage.",
    "frequency_hertz": "Clock of the part.",
    "throttle": "1 while the device is slowed down for the reason that the part names.",
    "hw_slowdown_seconds_total": "Time in which the hardware slowed the device down.",
    "thermal_slowdown_seconds_total": "Time in which heat slowed the device down, by what noticed it.",
    "power_brake_seconds_total": "Time in which what feeds the device slowed it down by its power brake.",
    # Use
    "utilization_ratio": "How busy the part is, 0 to 1.",
    "profiled": "1 while a program has the part profiled, so that its use is unknown.",
    "memory_used_bytes": "Memory in use on the device.",
    "memory_total_bytes": "Memory of the device.",
    # Memory errors
    "ecc_corrected_total": "Memory errors corrected, over the life of the part where it remembers them.",
    "ecc_uncorrected_total": "Memory errors that could not be corrected, likewise.",
    "ecc_volatile_corrected_total": "Memory errors corrected since the driver was loaded.",
    "ecc_volatile_uncorrected_total": "Memory errors not corrected since the driver was loaded.",
    "ecc_isolated_pages": "Memory pages taken out of use, for errors of the part's kind or of all.",
    "ecc_mode": "1 while error correction is on.",
    "ecc_mode_pending": "1 if error correction will be on after the next reset.",
    "remapped_rows": "Memory rows replaced by spare ones for errors of the part's kind.",
    "remap_pending": "1 while a row waits for a reset to be replaced.",
    "remap_failed": "1 once a row could not be replaced.",
    "remap_spare_banks": "Memory banks by how many spare rows they have left.",
    "remap_spare_groups": "Groups of memory banks by whether they have a spare bank left.",
    "remap_scarce_banks": "Memory banks with one spare row left, or none and a spare bank in their place.",
    "remap_exhausted_banks": "Memory banks in which the next row that fails cannot be replaced.",
    "sram_uncorrected_total": "Errors in the memory inside the chip that could not be corrected.",
    # Links
    "link_up": "1 while the link is up.",
    "link_down": "1 while a network port is down that should be up; needed: jobs need it.",
    "link_losses_total": "How often a network port lost its link; needed: jobs need it.",
    "link_rate_bytes_per_second": "Rate of the link now.",
    "port_errors_total": "Errors that an RDMA port has counted, by the kernel's name of the counter.",
    "link_received_bytes_total": "Bytes received over the device's links.",
    "link_sent_bytes_total": "Bytes sent over the device's links.",
    "link_received_packets_total": "Packets received over the device's links.",
    "link_sent_packets_total": "Packets sent over the device's links.",
    "link_errors_total": "Errors on the device's links, by kind.",
    "link_retries_total": "Transmissions repeated on the device's links.",
    "nvlink_errors_total": "NVLink errors of all links, by kind.",
    "nvlink_bit_error_ratio": "Bit error rate of the worst NVLink, by kind.",
    "nvlink_link_errors_total": "NVLink errors by link.",
    "nvlink_recoveries_total": "How often an NVLink had to recover, by link.",
    "nvlink_packet_errors_total": "NVLink packets damaged or lost, of all links (NVLink 5).",
    "nvlink_links_up": "NVLink links that are up.",
    "nvlink_links_missing": "NVLink links that should be up and are not.",
    # The constants NVML_GPU_FABRIC_STATE_... and NVML_GPU_FABRIC_HEALTH_SUMMARY_... of nvml.h.
    "fabric_state": "How far the GPU has joined the NVLink fabric: 0 not supported, 1 not started,"
    " 2 in progress, 3 completed.",
    "fabric_health": "Health of the NVLink fabric as the GPU sees it: 0 not supported, 1 healthy,"
    " 2 unhealthy, 3 limited capacity.",
    "fabric_clique": "Which GPUs reach each other over the NVLink fabric: those with the same number.",
    "c2c_links_up": "Links to the CPU of the module (C2C) that are up.",
    "c2c_links_missing": "Links to the CPU of the module (C2C) that should be up and are not.",
    # The node itself
    "edac_corrected_total": "Errors of the memory module corrected since its counters began.",
    "edac_uncorrected_total": "Errors of the memory module not corrected since its counters began.",
    "pcie_aer_correctable_total": "PCI Express errors that the link corrected, by PCI address.",
    "pcie_aer_nonfatal_total": "PCI Express errors not corrected that the link outlived, by PCI address.",
    "pcie_aer_fatal_total": "PCI Express errors that the link did not outlive, by PCI address.",
    "check_failed": "1 while what the part names cannot be looked at; what was found before holds.",
    "service_up": "1 while the service runs.",
    "service_restarts_total": "Times the service was restarted since it is watched.",
    # PCIe
    "pcie_errors_total": "PCIe errors by kind.",
    "pcie_replay_total": "PCIe packets sent again.",
    "pcie_replay_seconds_total": "Time with more PCIe packets sent again than speed and lanes explain.",
    "pcie_generation": "Generation of the PCIe link now.",
    "pcie_generation_max": "Generation that the PCIe link can have.",
    "pcie_generations_missing": "Generations by which the PCIe link of a GPU at work is too low.",
    "pcie_width_lanes": "Lanes of the PCIe link now.",
    "pcie_width_lanes_max": "Lanes that the PCIe link can have.",
    "pcie_lanes_missing": "Lanes that the PCIe link could have and has not.",
    # State
    # dcmi_get_device_health, enum dcmi_rdfx_detect_result and enum dcmi_boot_status of dcmi_interface_api.h.
    "health": "Health as the driver reports it: 0 good, 1 minor, 2 major, 3 critical alarm.",
    "network_health": "Result of the driver's own test of the network: 0 good, 1 socket failed,"
    " 2 no answer in time, 3 unreachable, 4 time exceeded, 5 fault, 6 not tested yet, 7 thread failed,"
    " 8 no address to test.",
    "boot_status": "How far the device has started: 0 not begun, 1 BIOS, 2 operating system,"
    " 3 firmware started, 16 finished.",
    "persistence_mode": "1 while the driver stays loaded without users.",
    # The constants NVML_GPU_RECOVERY_ACTION_... of nvml.h.
    "recovery_action": "What the driver asks to be done with the device: 0 nothing, 1 reset, 2 reboot of the"
    " node, 3 drain of peer-to-peer, 4 drain and reset, 5 recovery of the IMEX domain, 6 reset of the bus,"
    " 7 reboot of the system.",
    # What befell the readings themselves
    "unanswered": "Questions that the device's driver fails to answer, or refuses though it answered before.",
    "unjudged": "1 while the fault that the part names cannot be judged, as its question is not answered.",
    "refused_values_total": "Values outside of what the vendor's documents allow, left out.",
    "dropped_callbacks_total": "A library's reports not handed on in time; the next poll makes up for them.",
    "events_total": "Reports that a library made by itself.",
    "changes_total": "Changes of network interfaces that the kernel reported.",
    "overruns_total": "How often messages of the kernel were lost; a list of all made up for them.",
    "lists_total": "How often all network interfaces were listed.",
    "records_total": "Records read of the source.",
    "requests_total": "Requests sent to the source.",
    "failed_readings_total": "Readings of the source that failed.",
    "late_answers_total": "Answers that came after their request was given up, and were thrown away.",
    "log_records": "Records in the log that the source keeps.",
    "log_free_bytes": "Room in the log that the source keeps.",
    "matched_total": "Records that a pattern matched.",
    "malformed_total": "Records that could not be parsed.",
}
