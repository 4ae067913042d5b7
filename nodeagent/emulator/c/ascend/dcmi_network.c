/* The chip's own network ports: health, addresses, counters. */
#define _GNU_SOURCE
#include "dcmi.h"

#include <string.h>
#include <time.h>

static int put_network_health(const struct chip *chip, enum dcmi_rdfx_detect_result *result)
{
    if (result == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *result = (enum dcmi_rdfx_detect_result)chip->network_health;
    return DCMI_OK;
}

static int put_address(uint32_t address, struct dcmi_ip_addr *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->u_addr.ip4, &address, sizeof address);
    out->ip_type = DCMI_IPADDR_TYPE_V4;
    return DCMI_OK;
}

static int put_ip(const struct chip *chip, enum dcmi_port_type type, int port_id, struct dcmi_ip_addr *address,
                  struct dcmi_ip_addr *mask)
{
    if (address == NULL || mask == NULL || type >= DCMI_INVALID_PORT || port_id != 0)
        return DCMI_ERR_INVALID_PARAMETER;
    put_address(chip->ip_mask, mask);
    return put_address(chip->ip_address, address);
}

static int put_packets(const struct chip *chip, int port_id, struct dcmi_network_pkt_stats_info *out)
{
    struct timespec now;

    if (out == NULL || port_id != 0)
        return DCMI_ERR_INVALID_PARAMETER;
    memset(out, 0, sizeof *out);
    memcpy(out->counters, chip->network_counters, sizeof out->counters);
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return DCMI_OK;
}

static int put_bandwidth(const struct chip *chip, int port_id, unsigned int profiling_ms,
                         struct dcmi_network_rdma_bandwidth_info *out)
{
    if (out == NULL || port_id != 0 || profiling_ms == 0)
        return DCMI_ERR_INVALID_PARAMETER;
    out->tx_bandwidth = chip->network_sent_mb_per_s;
    out->rx_bandwidth = chip->network_received_mb_per_s;
    return DCMI_OK;
}

EXPORTED_CALL(dcmi_get_device_network_health, dcmiv2_get_device_network_health, READY_ONLY, put_network_health,
              (enum dcmi_rdfx_detect_result *result), (result))
EXPORTED_V1(dcmi_get_device_ip, READY_ONLY, put_ip,
            (enum dcmi_port_type input_type, int port_id, struct dcmi_ip_addr *ip, struct dcmi_ip_addr *mask),
            (input_type, port_id, ip, mask))
EXPORTED_CALL(dcmi_get_netdev_pkt_stats_info, dcmiv2_get_netdev_pkt_stats_info, READY_ONLY, put_packets,
              (int port_id, struct dcmi_network_pkt_stats_info *network_pkt_stats_info),
              (port_id, network_pkt_stats_info))
EXPORTED_CALL(dcmi_get_rdma_bandwidth_info, dcmiv2_get_rdma_bandwidth_info, READY_ONLY, put_bandwidth,
              (int port_id, unsigned int prof_time, struct dcmi_network_rdma_bandwidth_info *bandwidth_info),
              (port_id, prof_time, bandwidth_info))
