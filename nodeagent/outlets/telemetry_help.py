"""What the readings mean that drivers agree on, by name: the help texts of their metrics. Words only."""

from collections.abc import Mapping
from typing import Final

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
    "hw_slowdown_minutes_total": "Minutes in which the hardware slowed the device down.",
    # Use
    "utilization_ratio": "How busy the part is, 0 to 1.",
    "memory_used_bytes": "Memory in use on the device.",
    "memory_total_bytes": "Memory of the device.",
    # Memory errors
    "ecc_corrected_total": "Memory errors corrected, over the life of the part where it remembers them.",
    "ecc_uncorrected_total": "Memory errors that could not be corrected, likewise.",
    "ecc_volatile_corrected_total": "Memory errors corrected since the driver was loaded.",
    "ecc_volatile_uncorrected_total": "Memory errors not corrected since the driver was loaded.",
    "ecc_isolated_pages": "Memory pages taken out of use for errors of the part's kind.",
    "ecc_mode": "1 while error correction is on.",
    "ecc_mode_pending": "1 if error correction will be on after the next reset.",
    "remapped_rows": "Memory rows replaced by spare ones for errors of the part's kind.",
    "remap_pending": "1 while a row waits for a reset to be replaced.",
    "remap_failed": "1 once a row could not be replaced.",
    "remap_spare_banks": "Memory banks by how many spare rows they have left.",
    "sram_uncorrected_total": "Errors in the memory inside the chip that could not be corrected.",
    # Links
    "link_up": "1 while the link is up.",
    "link_received_bytes_total": "Bytes received over the device's links.",
    "link_sent_bytes_total": "Bytes sent over the device's links.",
    "link_received_packets_total": "Packets received over the device's links.",
    "link_sent_packets_total": "Packets sent over the device's links.",
    "link_errors_total": "Errors on the device's links, by kind.",
    "link_retries_total": "Transmissions repeated on the device's links.",
    "nvlink_errors_total": "NVLink errors of all links, by kind.",
    "nvlink_bit_error_ratio": "Bit error rate of the worst NVLink, by kind.",
    "nvlink_link_errors_total": "NVLink errors by link.",
    "nvlink_links_up": "NVLink links that are up.",
    "nvlink_links_missing": "NVLink links that ought to be up and are not.",
    "fabric_state": "How far the GPU has joined the NVLink fabric, the vendor's number (3: completed).",
    "fabric_health": "Health of the NVLink fabric as the GPU sees it, the vendor's number.",
    "fabric_clique": "Which GPUs reach each other over the NVLink fabric, the vendor's number.",
    # PCIe
    "pcie_errors_total": "PCIe errors by kind.",
    "pcie_replay_total": "PCIe packets sent again.",
    "pcie_replay_minutes_total": "Minutes with more PCIe packets sent again than speed and lanes explain.",
    "pcie_generation": "Generation of the PCIe link now.",
    "pcie_generation_max": "Generation that the PCIe link can have.",
    "pcie_generations_missing": "Generations by which the PCIe link of a GPU at work is too low.",
    "pcie_width_lanes": "Lanes of the PCIe link now.",
    "pcie_width_lanes_max": "Lanes that the PCIe link can have.",
    "pcie_lanes_missing": "Lanes that the PCIe link could have and has not.",
    # State
    "health": "Health as the vendor's number.",
    "network_health": "Health of the network as the vendor's number.",
    "boot_status": "How far the device has started, the vendor's number.",
    "persistence_mode": "1 while the driver stays loaded without users.",
    "recovery_action": "What the driver asks to be done with the device, the vendor's number.",
    # What befell the readings themselves
    "refused_values_total": "Values outside of what the vendor's documents allow, left out.",
    "dropped_callbacks_total": "A library's reports not handed on in time; the next poll makes up for them.",
    "events_total": "Reports that a library made by itself.",
    "records_total": "Records read of the source.",
    "matched_total": "Records that a pattern matched.",
    "malformed_total": "Records that could not be parsed.",
}
