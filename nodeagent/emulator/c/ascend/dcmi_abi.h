/*
 * The vendor's C interface as far as it is emulated: structures and numbers of libdcmi.so (LP64, natural
 * alignment). Sizes are checked where they are not plain. Nothing of the emulator's own.
 */
#ifndef EMULATOR_DCMI_ABI_H
#define EMULATOR_DCMI_ABI_H

#include <stddef.h>

#define DCMI_OK 0
#define DCMI_ERR_INVALID_PARAMETER (-8001)
#define DCMI_ERR_OPER_NOT_PERMITTED (-8002)
#define DCMI_ERR_INNER_ERR (-8005)
#define DCMI_ERR_TIME_OUT (-8006)
#define DCMI_ERR_INVALID_DEVICE_ID (-8007)
#define DCMI_ERR_DEVICE_NOT_EXIST (-8008)
#define DCMI_ERR_DEVICE_NOT_READY (-8012)
#define DCMI_ERR_RESET_FAILED (-8015)
#define DCMI_ERR_RESOURCE_OCCUPIED (-8020)
#define DCMI_ERR_NOT_SUPPORT (-8255)

#define DCMI_DEVICE_DOES_NOT_EXIST_HEALTH 0xFFFFFFFFu

struct dcmi_chip_info {
    unsigned char chip_type[32];
    unsigned char chip_name[32];
    unsigned char chip_ver[32];
    unsigned int aicore_cnt;
};

struct dcmi_chip_info_v2 {
    unsigned char chip_type[32];
    unsigned char chip_name[32];
    unsigned char chip_ver[32];
    unsigned int aicore_cnt;
    unsigned char npu_name[32];
};

struct dcmi_pcie_info_all {
    unsigned int venderid;
    unsigned int subvenderid;
    unsigned int deviceid;
    unsigned int subdeviceid;
    int domain;
    unsigned int bdf_busid;
    unsigned int bdf_deviceid;
    unsigned int bdf_funcid;
    unsigned char reserve[32];
};

struct dcmi_die_id {
    unsigned int soc_die[5];
};

struct dcmi_board_info {
    unsigned int board_id;
    unsigned int pcb_id;
    unsigned int bom_id;
    unsigned int slot_id;
};

struct dcmi_elabel_info {
    char product_name[256];
    char model[256];
    char manufacturer[256];
    char manufacturer_date[256];
    char serial_number[256];
};

enum dcmi_unit_type { NPU_TYPE = 0, MCU_TYPE = 1, CPU_TYPE = 2, INVALID_TYPE = 0xff };
enum dcmi_die_type { NDIE = 0, VDIE = 1, DDIE = 2, INVALID_DIE = 3 };

/* --- fault events --- */

enum dcmi_event_type { DCMI_DMS_FAULT_EVENT = 0, DCMI_EVENT_TYPE_MAX = 1 };
enum { DCMI_EVENT_RECOVER = 0, DCMI_EVENT_OCCUR = 1, DCMI_EVENT_ONCE = 2 };
enum { DCMI_FILTER_EVENT_ID = 1, DCMI_FILTER_SEVERITY = 2, DCMI_FILTER_NODE_TYPE = 4 };

struct dcmi_event_filter {
    unsigned long long filter_flag;
    unsigned int event_id;
    unsigned char severity;
    unsigned char node_type;
    unsigned char resv[32];
};

struct dcmi_dms_fault_event {
    unsigned int event_id;
    unsigned short deviceid;
    unsigned char node_type;
    unsigned char node_id;
    unsigned char sub_node_type;
    unsigned char sub_node_id;
    unsigned char severity;
    unsigned char assertion;
    int event_serial_num;
    int notify_serial_num;
    unsigned long long alarm_raised_time;
    char event_name[256];
    char additional_info[32];
    unsigned char os_id;
    unsigned char resv_1[1];
    unsigned short node_type_ex;
    unsigned short sub_node_type_ex;
    unsigned char resv_2[2];
    unsigned char resv[24];
};

struct dcmi_event {
    enum dcmi_event_type type;
    union {
        struct dcmi_dms_fault_event dms_event;
    } event_t;
};

typedef void (*dcmi_fault_event_callback)(struct dcmi_event *event);

_Static_assert(sizeof(struct dcmi_event_filter) == 48, "passed by value in memory");
_Static_assert(sizeof(struct dcmi_dms_fault_event) == 352, "as the vendor's");
_Static_assert(sizeof(struct dcmi_event) == 360, "as the vendor's");

/* --- memory, ECC, utilisation --- */

enum dcmi_device_type {
    DCMI_DEVICE_TYPE_DDR = 0,
    DCMI_DEVICE_TYPE_SRAM = 1,
    DCMI_DEVICE_TYPE_HBM = 2,
    DCMI_DEVICE_TYPE_NPU = 3,
    DCMI_DEVICE_TYPE_NONE = 0xff
};

enum dcmi_freq_type {
    DCMI_FREQ_DDR = 1,
    DCMI_FREQ_CTRLCPU = 2,
    DCMI_FREQ_HBM = 6,
    DCMI_FREQ_AICORE_CURRENT_ = 7,
    DCMI_FREQ_AICORE_MAX = 9,
    DCMI_FREQ_VECTORCORE_CURRENT = 12
};

/* The last two words are written only by libraries that have them: 28 bytes, or 36. */
struct dcmi_ecc_info {
    int enable_flag;
    unsigned int single_bit_error_cnt;
    unsigned int double_bit_error_cnt;
    unsigned int total_single_bit_error_cnt;
    unsigned int total_double_bit_error_cnt;
    unsigned int single_bit_isolated_pages_cnt;
    unsigned int double_bit_isolated_pages_cnt;
    unsigned int single_bit_next_isolated_pages_cnt;
    unsigned int double_bit_next_isolated_pages_cnt;
};

struct dcmi_hbm_info {
    unsigned long long memory_size;
    unsigned int freq;
    unsigned long long memory_usage;
    int temp;
    unsigned int bandwith_util_rate;
};

struct dcmi_get_memory_info_stru {
    unsigned long long memory_size;
    unsigned long long memory_available;
    unsigned int freq;
    unsigned long hugepagesize;
    unsigned long hugepages_total;
    unsigned long hugepages_free;
    unsigned int utiliza;
    unsigned char reserve[60];
};

struct dcmi_memory_info_stru {
    unsigned long long memory_size;
    unsigned int freq;
    unsigned int utiliza;
};

struct dcmi_multi_utilization_info {
    unsigned int aic_util;
    unsigned int aiv_util;
    unsigned int aicore_util;
    unsigned int npu_util;
    unsigned int reserved[8];
};

struct dcmi_proc_mem_info {
    int proc_id;
    unsigned long proc_mem_usage;
};

_Static_assert(sizeof(struct dcmi_ecc_info) == 36, "the longer form");
_Static_assert(sizeof(struct dcmi_hbm_info) == 32, "as the vendor's");
_Static_assert(sizeof(struct dcmi_get_memory_info_stru) == 112, "as the vendor's");

/* --- network --- */

enum dcmi_rdfx_detect_result { DCMI_RDFX_DETECT_OK = 0, DCMI_RDFX_DETECT_MAX = 0xff };
enum dcmi_port_type { DCMI_VNIC_PORT = 0, DCMI_ROCE_PORT = 1, DCMI_INVALID_PORT = 2 };
enum dcmi_ip_addr_type { DCMI_IPADDR_TYPE_V4 = 0, DCMI_IPADDR_TYPE_V6 = 1, DCMI_IPADDR_TYPE_ANY = 2 };

struct dcmi_ip_addr {
    union {
        unsigned char ip6[16];
        unsigned char ip4[4];
    } u_addr;
    enum dcmi_ip_addr_type ip_type;
};

/* The vendor names each of the counters; fields.def keeps their order. */
struct dcmi_network_pkt_stats_info {
    unsigned long long counters[48];
    long tv_sec;
    long tv_usec;
    unsigned char reserved[64];
};

struct dcmi_network_rdma_bandwidth_info {
    unsigned int tx_bandwidth;
    unsigned int rx_bandwidth;
};

_Static_assert(sizeof(struct dcmi_network_pkt_stats_info) == 464, "as the vendor's");

/* --- links inside the node, PCIe --- */

enum dcmi_main_cmd {
    DCMI_MAIN_CMD_LP = 8,
    DCMI_MAIN_CMD_TS = 11,
    DCMI_MAIN_CMD_CHIP_INF = 12,
    DCMI_MAIN_CMD_HCCS = 16,
    DCMI_MAIN_CMD_PCIE = 55,
    DCMI_MAIN_CMD_SIO = 56,
    DCMI_MAIN_CMD_MAX = 0x8004
};

struct dcmi_hccs_statues {
    unsigned int pcs_status;
    unsigned int hdlc_status;
    unsigned char reserve[4];
};

struct dcmi_hccs_lane_info {
    unsigned int hccs_port_pcs_bitmap;
    unsigned int pcs_lane_bitmap[16];
    unsigned int reserve[16];
};

struct dcmi_hccs_statistic_info {
    unsigned int tx_cnt[16];
    unsigned int rx_cnt[16];
    unsigned int crc_err_cnt[16];
    unsigned int retry_cnt[16];
    unsigned int reserved_field_cnt[64];
};

struct dcmi_hccs_statistic_info_u64 {
    unsigned long long tx_cnt[16];
    unsigned long long rx_cnt[16];
    unsigned long long crc_err_cnt[16];
    unsigned long long retry_cnt[16];
    unsigned long long reserved[64];
};

struct dcmi_hccs_bandwidth_info {
    int profiling_time;
    double total_txbw;
    double total_rxbw;
    double tx_bandwidth[16];
    double rx_bandwidth[16];
};

struct dcmi_sio_crc_err_statistics_info {
    unsigned short tx_error_count;
    unsigned short rx_error_count;
    unsigned char reserved[8];
};

struct dcmi_spod_info {
    unsigned int sdid;
    unsigned int super_pod_size;
    unsigned int super_pod_id;
    unsigned int server_index;
    unsigned int chassis_id;
    unsigned int super_pod_type;
    unsigned int reserve[6];
};

struct dcmi_spod_node_status {
    unsigned int sdid;
    unsigned int status;
};

struct dcmi_chip_pcie_err_rate {
    unsigned int counters[12];
};

struct dcmi_pcie_link_error_info {
    unsigned int counters[5];
    unsigned int rsv[32];
};

/* Seven triples of least, most and average. */
struct dcmi_pcie_link_bandwidth_info {
    int profiling_time;
    unsigned int bandwidths[21];
};

_Static_assert(sizeof(struct dcmi_hccs_bandwidth_info) == 280, "as the vendor's");
_Static_assert(sizeof(struct dcmi_pcie_link_bandwidth_info) == 88, "as the vendor's");
_Static_assert(sizeof(struct dcmi_pcie_link_error_info) == 148, "as the vendor's");

/* --- UnifiedBus --- */

struct dcmi_ub_port_info {
    int udie_id;
    int port_id;
};

struct dcmi_ub_port_link_status {
    unsigned int ub_link_status;
    unsigned int ub_port_status[36];
};

struct dcmi_ub_bandwidth_info {
    unsigned int tx_bandwidth;
    unsigned int rx_bandwidth;
    unsigned int reserved[2];
};

struct dcmi_port_pkt_stats_info {
    unsigned int port_id;
    unsigned int is_uboe_port;
    unsigned long long counters[48];
    unsigned char reserved[128];
};

struct dcmi_urma_eid_info {
    unsigned char eid[16];
    unsigned int eid_index;
    unsigned int padding;
};

_Static_assert(sizeof(struct dcmi_ub_port_link_status) == 148, "as the vendor's");
_Static_assert(sizeof(struct dcmi_port_pkt_stats_info) == 520, "as the vendor's");
_Static_assert(sizeof(struct dcmi_urma_eid_info) == 24, "as the vendor's");

/* --- starting and resetting --- */

enum dcmi_boot_status {
    DCMI_BOOT_STATUS_UNINIT = 0,
    DCMI_BOOT_STATUS_BIOS = 1,
    DCMI_BOOT_STATUS_OS = 2,
    DCMI_BOOT_STATUS_FINISH = 3,
    DCMI_SYSTEM_START_FINISH = 16
};

enum dcmi_reset_channel { OUTBAND_CHANNEL = 0, INBAND_CHANNEL = 1 };

enum { DCMI_ALL_CARDS = 0xFF };

/* Of vendor 0x19e5. */
enum { PCI_DEVICE_310P = 0xd500, PCI_DEVICE_910B = 0xd802, PCI_DEVICE_A3 = 0xd803 };

#endif
