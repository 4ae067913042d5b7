/* The chip's own network ports: health, addresses, counters. */
#define _GNU_SOURCE
#include "dcmi.h"

#include <string.h>
#include <time.h>

static int tell_network_health(const struct chip *chip, enum dcmi_rdfx_detect_result *result)
{
    if (result == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *result = (enum dcmi_rdfx_detect_result)chip->network_health;
    return DCMI_OK;
}

static int tell_address(uint32_t address, struct dcmi_ip_addr *told)
{
    memset(told, 0, sizeof *told);
    memcpy(told->u_addr.ip4, &address, sizeof address);
    told->ip_type = DCMI_IPADDR_TYPE_V4;
    return DCMI_OK;
}

static int tell_ip(const struct chip *chip, enum dcmi_port_type type, int port_id, struct dcmi_ip_addr *address,
                   struct dcmi_ip_addr *mask)
{
    if (address == NULL || mask == NULL || type >= DCMI_INVALID_PORT || port_id != 0)
        return DCMI_ERR_INVALID_PARAMETER;
    tell_address(chip->ip_mask, mask);
    return tell_address(chip->ip_address, address);
}

static int tell_packets(const struct chip *chip, int port_id, struct dcmi_network_pkt_stats_info *told)
{
    struct timespec now;

    if (told == NULL || port_id != 0)
        return DCMI_ERR_INVALID_PARAMETER;
    memset(told, 0, sizeof *told);
    memcpy(told->counters, chip->network_counters, sizeof told->counters);
    clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return DCMI_OK;
}

static int tell_bandwidth(const struct chip *chip, int port_id, unsigned int profiling_ms,
                          struct dcmi_network_rdma_bandwidth_info *told)
{
    if (told == NULL || port_id != 0 || profiling_ms == 0)
        return DCMI_ERR_INVALID_PARAMETER;
    told->tx_bandwidth = chip->network_sent_mb_per_s;
    told->rx_bandwidth = chip->network_received_mb_per_s;
    return DCMI_OK;
}

EXPORTED_CALL(dcmi_get_device_network_health, dcmiv2_get_device_network_health, READY_ONLY, tell_network_health,
              (enum dcmi_rdfx_detect_result *result), (result))
EXPORTED_V1(dcmi_get_device_ip, READY_ONLY, tell_ip,
            (enum dcmi_port_type input_type, int port_id, struct dcmi_ip_addr *ip, struct dcmi_ip_addr *mask),
            (input_type, port_id, ip, mask))
EXPORTED_CALL(dcmi_get_netdev_pkt_stats_info, dcmiv2_get_netdev_pkt_stats_info, READY_ONLY, tell_packets,
              (int port_id, struct dcmi_network_pkt_stats_info *network_pkt_stats_info),
              (port_id, network_pkt_stats_info))
EXPORTED_CALL(dcmi_get_rdma_bandwidth_info, dcmiv2_get_rdma_bandwidth_info, READY_ONLY, tell_bandwidth,
              (int port_id, unsigned int prof_time, struct dcmi_network_rdma_bandwidth_info *bandwidth_info),
              (port_id, prof_time, bandwidth_info))
