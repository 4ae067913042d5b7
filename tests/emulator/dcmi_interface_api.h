/*
 * libdcmi.so as its vendor declares it: the part that as_documented.c uses, written down from the facts about the
 * interface (tests/fixtures/dcmi_abi.json says where those are from), not from the double's own header.
 */
#ifndef DCMI_INTERFACE_API_H
#define DCMI_INTERFACE_API_H

enum dcmi_unit_type {
    NPU_TYPE = 0,
    MCU_TYPE = 1,
    CPU_TYPE = 2,
    INVALID_TYPE = 255,
};

enum dcmi_die_type {
    NDIE = 0,
    VDIE = 1,
    DDIE = 2,
    INVALID_DIE = 3,
};

enum dcmi_event_type {
    DCMI_DMS_FAULT_EVENT = 0,
    DCMI_EVENT_TYPE_MAX = 1,
};

enum dcmi_device_type {
    DCMI_DEVICE_TYPE_DDR = 0,
    DCMI_DEVICE_TYPE_SRAM = 1,
    DCMI_DEVICE_TYPE_HBM = 2,
    DCMI_DEVICE_TYPE_NPU = 3,
    DCMI_HBM_RECORDED_SINGLE_ADDR = 4,
    DCMI_HBM_RECORDED_MULTI_ADDR = 5,
    DCMI_DEVICE_TYPE_NONE = 255,
};

enum dcmi_boot_status {
    DCMI_BOOT_STATUS_UNINIT = 0,
    DCMI_BOOT_STATUS_BIOS = 1,
    DCMI_BOOT_STATUS_OS = 2,
    DCMI_BOOT_STATUS_FINISH = 3,
    DCMI_SYSTEM_START_FINISH = 16,
};

enum dcmi_reset_channel {
    OUTBAND_CHANNEL = 0,
    INBAND_CHANNEL = 1,
};

enum dcmi_main_cmd {
    DCMI_MAIN_CMD_DVPP = 0,
    DCMI_MAIN_CMD_ISP = 1,
    DCMI_MAIN_CMD_TS_GROUP_NUM = 2,
    DCMI_MAIN_CMD_CAN = 3,
    DCMI_MAIN_CMD_UART = 4,
    DCMI_MAIN_CMD_UPGRADE = 5,
    DCMI_MAIN_CMD_UFS = 6,
    DCMI_MAIN_CMD_OS_POWER = 7,
    DCMI_MAIN_CMD_LP = 8,
    DCMI_MAIN_CMD_MEMORY = 9,
    DCMI_MAIN_CMD_RECOVERY = 10,
    DCMI_MAIN_CMD_TS = 11,
    DCMI_MAIN_CMD_CHIP_INF = 12,
    DCMI_MAIN_CMD_QOS = 13,
    DCMI_MAIN_CMD_SOC_INFO = 14,
    DCMI_MAIN_CMD_SILS = 15,
    DCMI_MAIN_CMD_HCCS = 16,
    DCMI_MAIN_CMD_HOST_AICPU = 17,
    DCMI_MAIN_CMD_TEMP = 50,
    DCMI_MAIN_CMD_SVM = 51,
    DCMI_MAIN_CMD_VDEV_MNG = 52,
    DCMI_MAIN_CMD_SEC = 53,
    DCMI_MAIN_CMD_PCIE = 55,
    DCMI_MAIN_CMD_SIO = 56,
    DCMI_MAIN_CMD_EX_COMPUTING = 0x8000,
    DCMI_MAIN_CMD_DEVICE_SHARE = 0x8001,
    DCMI_MAIN_CMD_EX_CERT = 0x8003,
    DCMI_MAIN_CMD_MAX = 0x8004,
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

struct dcmi_ecc_info {
    int enable_flag;
    unsigned int single_bit_error_cnt;
    unsigned int double_bit_error_cnt;
    unsigned int total_single_bit_error_cnt;
    unsigned int total_double_bit_error_cnt;
    unsigned int single_bit_isolated_pages_cnt;
    unsigned int double_bit_isolated_pages_cnt;
};

struct dcmi_hbm_info {
    unsigned long long memory_size;
    unsigned int freq;
    unsigned long long memory_usage;
    int temp;
    unsigned int bandwith_util_rate;
};

struct dcmi_proc_mem_info {
    int proc_id;
    unsigned long proc_mem_usage;
};

struct dcmi_hccs_statues {
    unsigned int pcs_status;
    unsigned int hdlc_status;
    unsigned char reserve[4];
};

int dcmi_init(void);
int dcmi_get_card_list(int *card_num, int *card_list, int list_len);
int dcmi_get_device_num_in_card(int card_id, int *device_num);
int dcmi_get_device_id_in_card(int card_id, int *device_id_max, int *mcu_id, int *cpu_id);
int dcmi_get_device_type(int card_id, int device_id, enum dcmi_unit_type *device_type);
int dcmi_get_device_logic_id(int *device_logic_id, int card_id, int device_id);
int dcmi_get_device_phyid_from_logicid(unsigned int logicid, unsigned int *phyid);
int dcmi_get_card_id_device_id_from_logicid(int *card_id, int *device_id, unsigned int device_logic_id);
int dcmi_get_device_chip_info_v2(int card_id, int device_id, struct dcmi_chip_info_v2 *chip_info);
int dcmi_get_device_die_v2(int card_id, int device_id, enum dcmi_die_type input_type,
    struct dcmi_die_id *die_id);
int dcmi_get_card_elabel_v2(int card_id, struct dcmi_elabel_info *elabel_info);
int dcmi_get_netdev_brother_device(int card_id, int device_id, int *brother_card_id);
int dcmi_get_device_health(int card_id, int device_id, unsigned int *health);
int dcmi_get_device_errorcode_v2(int card_id, int device_id, int *error_count, unsigned int *error_code_list,
    unsigned int list_len);
int dcmi_subscribe_fault_event(int card_id, int device_id, struct dcmi_event_filter filter,
    dcmi_fault_event_callback handler);
int dcmi_get_fault_event(int card_id, int device_id, int timeout, struct dcmi_event_filter filter,
    struct dcmi_event *event);
int dcmi_get_device_ecc_info(int card_id, int device_id, enum dcmi_device_type input_type,
    struct dcmi_ecc_info *device_ecc_info);
int dcmi_get_device_hbm_info(int card_id, int device_id, struct dcmi_hbm_info *hbm_info);
int dcmi_get_device_utilization_rate(int card_id, int device_id, int input_type,
    unsigned int *utilization_rate);
int dcmi_get_device_resource_info(int card_id, int device_id, struct dcmi_proc_mem_info *proc_info,
    int *proc_num);
int dcmi_get_device_info(int card_id, int device_id, enum dcmi_main_cmd main_cmd, unsigned int sub_cmd,
    void *buf, unsigned int *size);
int dcmi_get_device_boot_status(int card_id, int device_id, enum dcmi_boot_status *boot_status);
int dcmi_set_device_reset(int card_id, int device_id, enum dcmi_reset_channel channel_type);
int dcmiv2_init(void);
int dcmiv2_get_device_list(int *device_list, int *device_cnt, int list_len);
int dcmiv2_get_device_health(int dev_id, unsigned int *health);

#endif
