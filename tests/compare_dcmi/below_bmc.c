/*
 * The BMC, which the vendor's libdcmi asks by IPMI (dcmi_ipmi.c, made weak): whether it can be reached, how old a
 * module's logic is, and to reset an A3's module out of band. It asks nobody whether the driver has let the dies go,
 * and they come back when the host looks for them anew.
 */
#include <stdio.h>

#include "dcmi_interface_api.h"
#include "dcmi_ipmi.h"
#include "shared.h"

enum { REFUSED = -8014 };

static bool is_reachable(void) { return state()->chips[0].outband_state == 1; }

int dcmi_ipmi_get_npu_outband_channel_state(int *channel_state)
{
    *channel_state = state()->chips[0].outband_state;
    return *channel_state == NO_VALUE ? REFUSED : 0;
}

int dcmi_ipmi_get_npu_fru_id(int card_id, unsigned char *fru_id)
{
    *fru_id = (unsigned char)card_id;
    return is_reachable() ? 0 : REFUSED;
}

int dcmi_ipmi_get_cpld_version(unsigned char fru_id, unsigned char *cpld_version)
{
    sprintf((char *)cpld_version, "3.13");
    return (void)fru_id, is_reachable() ? 0 : REFUSED;
}

int dcmi_ipmi_reset_npu_910_93(int card_id)
{
    if (!is_reachable())
        return REFUSED;
    for (int id = 0; id < state()->node.chip_count; id++) {
        struct chip *chip = &state()->chips[id];
        if (chip->card_id != card_id)
            continue;
        chip->resets++;
        chip->ready = 0;
        chip->awaits_rescan = 1;
        chip->code_count = chip->process_count = 0;
    }
    return 0;
}
