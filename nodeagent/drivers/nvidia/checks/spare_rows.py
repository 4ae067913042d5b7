"""How nearly the spare rows of a GPU's memory are used up, from what it says of rows and banks.

A bank of memory has eight spare rows or so; the histogram counts the banks by how many of them are left: low
is one, none is none (RUSD_MEM_ROW_REMAP_INFO in src/common/sdk/nvidia/inc/class/cl00de.h of NVIDIA's open
modules). From Blackwell on a bank without spare rows is replaced as a whole, as long as its group has a spare
bank (nvmlEccBankRemapperStatus in nvml.h). It judges nothing.
"""

from nodeagent.drivers.nvidia.calls import Readings

ROWS = "remap_spare_banks"
"""Banks by how many spare rows they have left."""
GROUPS = "remap_spare_groups"
"""Groups of banks by whether they have a spare bank left."""


def summarize(readings: Readings) -> None:
    """Fill in how many banks have hardly a spare row left, and in how many the next row that fails cannot be
    replaced. Once one could not be (``remap_failed``), that is the fault, and no bank counts beside it.
    """
    low, none = (readings.values.get(f"{ROWS}.{left}") for left in ("low", "none"))
    if low is None or none is None:
        return
    has_spare_banks = readings.values.get(f"{GROUPS}.none") == 0
    none = 0.0 if readings.values.get("remap_failed") else none
    exhausted = 0.0 if has_spare_banks else none
    readings.put("remap_exhausted_banks", exhausted)
    readings.put("remap_scarce_banks", low + none - exhausted)
