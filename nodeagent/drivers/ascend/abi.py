"""The C structures of libdcmi and liblingqu-dcmi that are read or passed, as their headers declare them.

All have the natural alignment of a 64-bit machine. A ``c_char`` text ends at its first zero, or at the end of
its array. Where the official header and MindCluster's differ, the larger structure is used. Structures that a
library fills are allocated by ``with_room``, because a newer library may write more than is read here.
"""

import ctypes
from ctypes import c_char, c_int, c_longlong, c_ubyte, c_uint, c_ulong, c_ulonglong, c_ushort
from typing import Final, TypeVar

ROOM_BYTES: Final = 256

HANDLED_EVENT: Final = 0
"""``DCMI_DMS_FAULT_EVENT``, the one event type there is."""

UNWRITTEN: Final = 0xFFFFFFFE
NO_NUMBER: Final = -(2**31)
"""Values in memory that the library fills, so that an unwritten field is refused and not taken for a value.
All ones are what the library itself writes for what it does not know.
"""

Structure = TypeVar("Structure", bound=ctypes.Structure)


def with_room(form: type[Structure]) -> Structure:
    """A zeroed structure with room behind it, for a library whose own is longer than ours."""
    return form.from_buffer(bytearray(ctypes.sizeof(form) + ROOM_BYTES))


class EventFilter(ctypes.Structure):
    """``dcmi_event_filter``, passed by value; all zero asks for everything."""

    _fields_ = (
        ("filter_flag", c_ulonglong),
        ("event_id", c_uint),
        ("severity", c_ubyte),
        ("node_type", c_ubyte),
        ("resv", c_ubyte * 32),
    )


class FaultEvent(ctypes.Structure):
    """``dcmi_dms_fault_event``. ``deviceid`` is the logic id; ``alarm_raised_time`` ms since 1970."""

    _fields_ = (
        ("event_id", c_uint),
        ("deviceid", c_ushort),
        ("node_type", c_ubyte),
        ("node_id", c_ubyte),
        ("sub_node_type", c_ubyte),
        ("sub_node_id", c_ubyte),
        ("severity", c_ubyte),
        ("assertion", c_ubyte),
        ("event_serial_num", c_int),
        ("notify_serial_num", c_int),
        ("alarm_raised_time", c_ulonglong),
        ("event_name", c_char * 256),
        ("additional_info", c_char * 32),
        ("os_id", c_ubyte),
        ("resv_1", c_ubyte * 1),
        ("node_type_ex", c_ushort),
        ("sub_node_type_ex", c_ushort),
        ("resv_2", c_ubyte * 2),
        ("resv", c_ubyte * 24),
    )


class DcmiEvent(ctypes.Structure):
    """``dcmi_event``; its union has one member for now."""

    _fields_ = (("type", c_int), ("event_t", FaultEvent))


class ChipInfo(ctypes.Structure):
    """``dcmi_chip_info_v2``; the older ``dcmi_chip_info`` is the same without its last field."""

    _fields_ = (
        ("chip_type", c_char * 32),
        ("chip_name", c_char * 32),
        ("chip_ver", c_char * 32),
        ("aicore_cnt", c_uint),
        ("npu_name", c_char * 32),
    )


class PcieInfo(ctypes.Structure):
    """``dcmi_pcie_info_all``."""

    _fields_ = (
        ("venderid", c_uint),
        ("subvenderid", c_uint),
        ("deviceid", c_uint),
        ("subdeviceid", c_uint),
        ("domain", c_int),
        ("bdf_busid", c_uint),
        ("bdf_deviceid", c_uint),
        ("bdf_funcid", c_uint),
        ("reserve", c_ubyte * 32),
    )


class DieId(ctypes.Structure):
    """``dcmi_die_id``."""

    _fields_ = (("soc_die", c_uint * 5),)


class BoardInfo(ctypes.Structure):
    """``dcmi_board_info``."""

    _fields_ = (("board_id", c_uint), ("pcb_id", c_uint), ("bom_id", c_uint), ("slot_id", c_uint))


class ElabelInfo(ctypes.Structure):
    """``dcmi_elabel_info``."""

    _fields_ = (
        ("product_name", c_char * 256),
        ("model", c_char * 256),
        ("manufacturer", c_char * 256),
        ("manufacturer_date", c_char * 256),
        ("serial_number", c_char * 256),
    )


class EccInfo(ctypes.Structure):
    """``dcmi_ecc_info`` as MindCluster declares it; the official header ends before the last two words."""

    _fields_ = (
        ("enable_flag", c_int),
        ("single_bit_error_cnt", c_uint),
        ("double_bit_error_cnt", c_uint),
        ("total_single_bit_error_cnt", c_uint),
        ("total_double_bit_error_cnt", c_uint),
        ("single_bit_isolated_pages_cnt", c_uint),
        ("double_bit_isolated_pages_cnt", c_uint),
        ("single_bit_next_isolated_pages_cnt", c_uint),
        ("double_bit_next_isolated_pages_cnt", c_uint),
    )


class HbmInfo(ctypes.Structure):
    """``dcmi_hbm_info``: sizes in MB, the frequency in MHz, the bandwidth in percent."""

    _fields_ = (
        ("memory_size", c_ulonglong),
        ("freq", c_uint),
        ("memory_usage", c_ulonglong),
        ("temp", c_int),
        ("bandwith_util_rate", c_uint),
    )


class PacketStatistics(ctypes.Structure):
    """``dcmi_network_pkt_stats_info``: what is read of it by name, the rest as it lies between."""

    _fields_ = (
        ("before_tx", c_ulonglong * 21),
        ("mac_tx_total_oct_num", c_ulonglong),
        ("mac_tx_bad", c_ulonglong * 2),
        ("mac_rx_total_pkt_num", c_ulonglong),
        ("mac_rx_total_oct_num", c_ulonglong),
        ("mac_rx_bad", c_ulonglong * 2),
        ("mac_rx_fcs_err_pkt_num", c_ulonglong),
        ("roce_rx_rc_pkt_num", c_ulonglong),
        ("roce_rx_all_pkt_num", c_ulonglong),
        ("roce_rx_err_pkt_num", c_ulonglong),
        ("roce_tx_rc_pkt_num", c_ulonglong),
        ("roce_tx_all_pkt_num", c_ulonglong),
        ("roce", c_ulonglong * 8),
        ("roce_new_pkt_rty_num", c_ulonglong),
        ("after", c_ulonglong * 5),
        ("tv_sec", c_longlong),
        ("tv_usec", c_longlong),
        ("reserved", c_ubyte * 64),
    )


class PcieErrorRate(ctypes.Structure):
    """``dcmi_chip_pcie_err_rate``."""

    _fields_ = (
        ("reg_deskew_fifo_overflow_intr_status", c_uint),
        ("reg_symbol_unlock_intr_status", c_uint),
        ("reg_deskew_unlock_intr_status", c_uint),
        ("reg_phystatus_timeout_intr_status", c_uint),
        ("symbol_unlock_counter", c_uint),
        ("pcs_rx_err_cnt", c_uint),
        ("phy_lane_err_counter", c_uint),
        ("pcs_rcv_err_status", c_uint),
        ("symbol_unlock_err_status", c_uint),
        ("phy_lane_err_status", c_uint),
        ("dl_lcrc_err_num", c_uint),
        ("dl_dcrc_err_num", c_uint),
    )


class PcieLinkErrors(ctypes.Structure):
    """``dcmi_pcie_link_error_info``."""

    _fields_ = (
        ("tx_err_cnt", c_uint),
        ("rx_err_cnt", c_uint),
        ("lcrc_err_cnt", c_uint),
        ("ecrc_err_cnt", c_uint),
        ("retry_cnt", c_uint),
        ("rsv", c_uint * 32),
    )


class HccsStatus(ctypes.Structure):
    """``dcmi_hccs_statues``: in order where ``pcs_status`` is 0 and ``hdlc_status`` 3."""

    _fields_ = (("pcs_status", c_uint), ("hdlc_status", c_uint), ("reserve", c_ubyte * 4))


class HccsStatistics(ctypes.Structure):
    """``dcmi_hccs_statistic_info_u64``, by port."""

    _fields_ = (
        ("tx_cnt", c_ulonglong * 16),
        ("rx_cnt", c_ulonglong * 16),
        ("crc_err_cnt", c_ulonglong * 16),
        ("retry_cnt", c_ulonglong * 16),
        ("reserved", c_ulonglong * 64),
    )


class UbPortLinkStatus(ctypes.Structure):
    """``dcmi_ub_port_link_status``; of a port 0 absent, 1 all lanes, 2 some lanes, 3 no link."""

    _fields_ = (("ub_link_status", c_int), ("ub_port_status", c_int * 36))


class ProcessMemory(ctypes.Structure):
    """``dcmi_proc_mem_info``, bytes."""

    _fields_ = (("proc_id", c_int), ("proc_mem_usage", c_ulong))


class SwitchEvent(ctypes.Structure):
    """``LqDcmiEvent``. ``switchPortid`` has 16 bits: of a fault of the whole chip they are all ones."""

    _fields_ = (
        ("eventType", c_uint),
        ("subType", c_uint),
        ("peerportDevice", c_ushort),
        ("peerportId", c_ushort),
        ("switchChipid", c_ushort),
        ("switchPortid", c_ushort),
        ("severity", c_ubyte),
        ("assertion", c_ubyte),
        ("res", c_char * 6),
        ("eventSerialNum", c_uint),
        ("notifySerialNum", c_uint),
        ("alarmRaisedTime", c_ulong),
        ("additionalParam", c_ubyte * 40),
        ("additionalInfo", c_char * 32),
    )


class SwitchFilter(ctypes.Structure):
    """``lq_dcmi_event_filter``, passed by value; all zero asks for everything."""

    _fields_ = (
        ("filterFlag", c_int),
        ("eventTypeId", c_uint),
        ("eventId", c_uint),
        ("severity", c_ubyte),
        ("chipId", c_uint),
    )


FaultCallback = ctypes.CFUNCTYPE(None, ctypes.POINTER(DcmiEvent))
"""``dcmi_fault_event_callback``: called on a thread of the library's."""

SwitchCallback = ctypes.CFUNCTYPE(None, ctypes.POINTER(SwitchEvent))


def text(raw: bytes) -> str:
    """A text of the library: up to its first zero, if any; what cannot be shown is replaced."""
    decoded = raw.partition(b"\0")[0].decode("utf-8", "replace").strip()
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in decoded)
