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

#endif
