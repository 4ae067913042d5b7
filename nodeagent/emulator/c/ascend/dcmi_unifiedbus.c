/* UnifiedBus ports of a chip: link status, bandwidth, packets, URMA devices. */
#include "dcmi.h"

#include <string.h>

static bool is_port(const struct dcmi_ub_port_info *port)
{
    return port != NULL && port->udie_id >= 0 && port->port_id >= 0 && port->port_id < UB_PORTS;
}

static int put_ub_status(const struct chip *chip, struct dcmi_ub_port_link_status *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    out->ub_link_status = chip->ub_link_status;
    memcpy(out->ub_port_status, chip->ub_ports, sizeof out->ub_port_status);
    return DCMI_OK;
}

static int put_ub_bandwidth(const struct chip *chip, unsigned int profiling_ms, const struct dcmi_ub_port_info *port,
                            struct dcmi_ub_bandwidth_info *out)
{
    if (out == NULL || profiling_ms == 0 || !is_port(port))
        return DCMI_ERR_INVALID_PARAMETER;
    *out = (struct dcmi_ub_bandwidth_info){chip->ub_sent_mb_per_s, chip->ub_received_mb_per_s, {0}};
    return DCMI_OK;
}

static int put_ub_packets(const struct chip *chip, const struct dcmi_ub_port_info *port,
                          struct dcmi_port_pkt_stats_info *out)
{
    if (out == NULL || !is_port(port))
        return DCMI_ERR_INVALID_PARAMETER;
    memset(out, 0, sizeof *out);
    out->port_id = (unsigned int)port->port_id;
    out->is_uboe_port = chip->ub_port_is_uboe[port->port_id];
    memcpy(out->counters, chip->ub_counters, sizeof out->counters);
    return DCMI_OK;
}

static int put_urma_count(const struct chip *chip, unsigned int *dev_cnt)
{
    if (dev_cnt == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *dev_cnt = chip->urma_device_count;
    return DCMI_OK;
}

/* eid_cnt is the room of the caller, then how many were written. */
static int put_eids(const struct chip *chip, unsigned int dev_index, struct dcmi_urma_eid_info *eids,
                    unsigned int *eid_cnt)
{
    if (eids == NULL || eid_cnt == NULL || dev_index >= chip->urma_device_count)
        return DCMI_ERR_INVALID_PARAMETER;
    unsigned int written = chip->urma_ids_per_device < *eid_cnt ? chip->urma_ids_per_device : *eid_cnt;
    for (unsigned int index = 0; index < written; index++) {
        memset(&eids[index], 0, sizeof eids[index]);
        eids[index].eid[0] = 0xfe;
        eids[index].eid[13] = (unsigned char)chip->physical_id;
        eids[index].eid[14] = (unsigned char)dev_index;
        eids[index].eid[15] = (unsigned char)index;
        eids[index].eid_index = index;
    }
    *eid_cnt = written;
    return DCMI_OK;
}

EXPORTED_CALL(dcmi_get_ub_port_link_status_info, dcmiv2_get_ub_port_link_status, READY_ONLY, put_ub_status,
              (struct dcmi_ub_port_link_status *ub_status), (ub_status))
EXPORTED_CALL(dcmi_get_ub_realtime_bandwidth_info, dcmiv2_get_ub_realtime_bandwidth_info, READY_ONLY,
              put_ub_bandwidth,
              (unsigned int profiling_time, struct dcmi_ub_port_info *ub_port_info,
               struct dcmi_ub_bandwidth_info *ub_bandwidth_info),
              (profiling_time, ub_port_info, ub_bandwidth_info))
EXPORTED_V2(dcmiv2_get_port_pkt_stats_info, READY_ONLY, put_ub_packets,
            (struct dcmi_ub_port_info *ub_port_info, struct dcmi_port_pkt_stats_info *port_pkt_stats_info),
            (ub_port_info, port_pkt_stats_info))
EXPORTED_CALL(dcmi_get_urma_device_cnt, dcmiv2_get_urma_device_cnt, READY_ONLY, put_urma_count,
              (unsigned int *dev_cnt), (dev_cnt))
EXPORTED_CALL(dcmi_get_eid_list_by_urma_dev_index, dcmiv2_get_eid_list_by_urma_dev_index, READY_ONLY, put_eids,
              (unsigned int dev_index, struct dcmi_urma_eid_info *eid_list, unsigned int *eid_cnt),
              (dev_index, eid_list, eid_cnt))
