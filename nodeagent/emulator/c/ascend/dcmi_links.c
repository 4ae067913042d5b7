/* Links between the chips of a node, and PCIe. Much of it is asked by a pair of numbers: dcmi_get_device_info. */
#include "dcmi.h"

#include <string.h>

static size_t make_hccs_status(const struct chip *chip, void *made)
{
    *(struct dcmi_hccs_statues *)made = (struct dcmi_hccs_statues){
        .pcs_status = chip->hccs_pcs_status,
        .hdlc_status = chip->hccs_hdlc_status,
    };
    return sizeof(struct dcmi_hccs_statues);
}

static size_t make_hccs_lanes(const struct chip *chip, void *made)
{
    struct dcmi_hccs_lane_info *lanes = made;

    lanes->hccs_port_pcs_bitmap = chip->hccs_port_bitmap;
    memcpy(lanes->pcs_lane_bitmap, chip->hccs_lane_bitmaps, sizeof lanes->pcs_lane_bitmap);
    return sizeof *lanes;
}

static size_t make_hccs_counters(const struct chip *chip, void *made)
{
    struct dcmi_hccs_statistic_info *counters = made;

    for (int port = 0; port < HCCS_PORTS; port++) {
        counters->tx_cnt[port] = (unsigned int)chip->hccs_sent[port];
        counters->rx_cnt[port] = (unsigned int)chip->hccs_received[port];
        counters->crc_err_cnt[port] = (unsigned int)chip->hccs_crc_errors[port];
        counters->retry_cnt[port] = (unsigned int)chip->hccs_retries[port];
    }
    return sizeof *counters;
}

static size_t make_hccs_wide_counters(const struct chip *chip, void *made)
{
    struct dcmi_hccs_statistic_info_u64 *counters = made;

    memcpy(counters->tx_cnt, chip->hccs_sent, sizeof counters->tx_cnt);
    memcpy(counters->rx_cnt, chip->hccs_received, sizeof counters->rx_cnt);
    memcpy(counters->crc_err_cnt, chip->hccs_crc_errors, sizeof counters->crc_err_cnt);
    memcpy(counters->retry_cnt, chip->hccs_retries, sizeof counters->retry_cnt);
    return sizeof *counters;
}

static size_t make_sio_errors(const struct chip *chip, void *made)
{
    *(struct dcmi_sio_crc_err_statistics_info *)made = (struct dcmi_sio_crc_err_statistics_info){
        .tx_error_count = (unsigned short)chip->sio_sent_errors,
        .rx_error_count = (unsigned short)chip->sio_received_errors,
    };
    return sizeof(struct dcmi_sio_crc_err_statistics_info);
}

static size_t make_pod(const struct chip *chip, void *made)
{
    *(struct dcmi_spod_info *)made = (struct dcmi_spod_info){
        .sdid = chip->pod_device_id,
        .super_pod_size = chip->pod_size,
        .super_pod_id = chip->pod_id,
        .server_index = chip->pod_server,
        .chassis_id = chip->pod_chassis,
        .super_pod_type = chip->pod_type,
    };
    return sizeof(struct dcmi_spod_info);
}

static size_t make_pod_status(const struct chip *chip, void *made)
{
    *(struct dcmi_spod_node_status *)made = (struct dcmi_spod_node_status){chip->pod_device_id, chip->pod_node_status};
    return sizeof(struct dcmi_spod_node_status);
}

static size_t make_pcie_link_errors(const struct chip *chip, void *made)
{
    memcpy(((struct dcmi_pcie_link_error_info *)made)->counters, chip->pcie_link_errors, sizeof chip->pcie_link_errors);
    return sizeof(struct dcmi_pcie_link_error_info);
}

/* A byte for each core; those that are profiled are marked (dms_calculate_average_utilization of dms_ts_info.c). */
static size_t make_core_use(const struct chip *chip, int input_type, size_t cores, void *made)
{
    enum { PROFILED = 0xef };

    memset(made, chip->profiling ? PROFILED : (int)chip->utilization_percent[input_type], cores);
    return cores;
}

static size_t make_ai_core_use(const struct chip *chip, void *made)
{
    return make_core_use(chip, 2, chip->aicore_count, made);
}

static size_t make_vector_core_use(const struct chip *chip, void *made)
{
    return make_core_use(chip, 12, (size_t)chip->aicore_count * 2, made);
}

static size_t make_frequency_reduction(const struct chip *chip, void *made)
{
    *(unsigned int *)made = chip->frequency_reduction_cause;
    return sizeof(unsigned int);
}

static const struct pair {
    unsigned int main, sub;
    size_t (*make)(const struct chip *chip, void *made);
} pairs[] = {
    {DCMI_MAIN_CMD_LP, 9, make_frequency_reduction},
    {DCMI_MAIN_CMD_TS, 0, make_ai_core_use},
    {DCMI_MAIN_CMD_TS, 1, make_vector_core_use},
    {DCMI_MAIN_CMD_CHIP_INF, 1, make_pod},
    {DCMI_MAIN_CMD_CHIP_INF, 2, make_pod_status},
    {DCMI_MAIN_CMD_HCCS, 0, make_hccs_status},
    {DCMI_MAIN_CMD_HCCS, 1, make_hccs_lanes},
    {DCMI_MAIN_CMD_HCCS, 3, make_hccs_counters},
    {DCMI_MAIN_CMD_HCCS, 5, make_hccs_wide_counters},
    {DCMI_MAIN_CMD_PCIE, 1, make_pcie_link_errors},
    {DCMI_MAIN_CMD_SIO, 0, make_sio_errors},
};

enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* What a product does not have it has no pairs for. */
static bool has(const struct chip *chip, unsigned int main_cmd)
{
    switch (main_cmd) {
    case DCMI_MAIN_CMD_TS:
        return chip->utilization_percent[12] != NO_VALUE;
    case DCMI_MAIN_CMD_CHIP_INF:
        return chip->pod_device_id != NO_VALUE;
    case DCMI_MAIN_CMD_HCCS:
        return chip->hccs_hdlc_status != NO_VALUE;
    case DCMI_MAIN_CMD_SIO:
        return chip->sio_sent_errors != NO_VALUE;
    default:
        return true;
    }
}

/* size is the room of the caller, then what was written. */
static int put_pair(const struct chip *chip, enum dcmi_main_cmd main_cmd, unsigned int sub_cmd, void *buf,
                    unsigned int *size)
{
    union {
        struct dcmi_hccs_statistic_info_u64 largest;
        unsigned char bytes[sizeof(struct dcmi_hccs_statistic_info_u64)];
    } made = {.bytes = {0}};

    if (buf == NULL || size == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    for (int index = 0; index < PAIRS; index++) {
        if (pairs[index].main != (unsigned int)main_cmd || pairs[index].sub != sub_cmd || !has(chip, main_cmd))
            continue;
        size_t bytes = pairs[index].make(chip, &made);
        if (*size < bytes)
            return DCMI_ERR_INVALID_PARAMETER;
        memcpy(buf, &made, bytes);
        *size = (unsigned int)bytes;
        return DCMI_OK;
    }
    return DCMI_ERR_NOT_SUPPORT;
}

static int put_hccs_bandwidth(const struct chip *chip, struct dcmi_hccs_bandwidth_info *out)
{
    if (out == NULL || out->profiling_time <= 0)
        return DCMI_ERR_INVALID_PARAMETER;
    out->total_txbw = out->total_rxbw = 0;
    for (int port = 0; port < HCCS_PORTS; port++) {
        out->tx_bandwidth[port] = chip->hccs_sent_gb_per_s[port];
        out->rx_bandwidth[port] = chip->hccs_received_gb_per_s[port];
        out->total_txbw += chip->hccs_sent_gb_per_s[port];
        out->total_rxbw += chip->hccs_received_gb_per_s[port];
    }
    return DCMI_OK;
}

static int put_pcie_errors(const struct chip *chip, struct dcmi_chip_pcie_err_rate *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    memcpy(out->counters, chip->pcie_errors, sizeof out->counters);
    return DCMI_OK;
}

static int put_pcie_bandwidth(const struct chip *chip, struct dcmi_pcie_link_bandwidth_info *out)
{
    if (out == NULL || out->profiling_time <= 0)
        return DCMI_ERR_INVALID_PARAMETER;
    memcpy(out->bandwidths, chip->pcie_bandwidth, sizeof out->bandwidths);
    return DCMI_OK;
}

static int put_pod_status(const struct chip *chip, unsigned int sdid, unsigned int *status)
{
    if (status == NULL || sdid != chip->pod_device_id)
        return DCMI_ERR_INVALID_PARAMETER;
    *status = chip->pod_node_status;
    return DCMI_OK;
}

EXPORTED_CALL(dcmi_get_device_info, dcmiv2_get_device_info, READY_ONLY, put_pair,
              (enum dcmi_main_cmd main_cmd, unsigned int sub_cmd, void *buf, unsigned int *size),
              (main_cmd, sub_cmd, buf, size))
EXPORTED_V1(dcmi_get_hccs_link_bandwidth_info, READY_ONLY, put_hccs_bandwidth,
            (struct dcmi_hccs_bandwidth_info *hccs_bandwidth_info), (hccs_bandwidth_info))
EXPORTED_CALL(dcmi_get_device_pcie_error_cnt, dcmiv2_get_device_pcie_error_cnt, READY_ONLY, put_pcie_errors,
              (struct dcmi_chip_pcie_err_rate *pcie_err_code_info), (pcie_err_code_info))
EXPORTED_CALL(dcmi_get_pcie_link_bandwidth_info, dcmiv2_get_pcie_link_bandwidth_info, READY_ONLY, put_pcie_bandwidth,
              (struct dcmi_pcie_link_bandwidth_info *pcie_link_bandwidth_info), (pcie_link_bandwidth_info))
EXPORTED_V1(dcmi_get_spod_node_status, READY_ONLY, put_pod_status, (unsigned int sdid, unsigned int *status),
            (sdid, status))
