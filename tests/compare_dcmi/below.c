/*
 * What lies below the vendor's libdcmi (dsmi_*, drv*, hal*), of the emulated node whose state file lies beside the
 * library: so the vendor's library and the emulator's answer of the very same node. Enough of it for initialisation,
 * lists, identity, health, codes, processes, a few measures and resets; whatever else the library calls is "not
 * supported" (made by build.py). A reset is over as it returns.
 *
 * How each function answers in which trouble is from the vendor's user library and kernel (github hicann/driver,
 * src/ascend_hal/dmc/dsmi and src/sdk_driver/dms): facts, no code. What a chip itself answers is not known from there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ascend_hal.h"
#include "dcmi_interface_api.h"
#include "dsmi_common_interface.h"
#include "dsmi_common_interface_custom.h"
#include "dsmi_network_interface.h"
#include "shared.h"

/* Numbers of the layer below libdcmi: DRV_ERROR_* of pkg_inc/ascend_hal_error.h. */
enum { OK = 0, INVALID_DEVICE = 2, WAIT_TIMEOUT = 16, TRY_AGAIN = 51, BELOW_NOT_SUPPORTED = 0xfffe };

const struct dialect dialect = {
    .library = LIBRARY_DCMI,
    .unsupported = BELOW_NOT_SUPPORTED,
    .no_driver = INVALID_DEVICE,
};

int below_not_supported(const char *function);
int below_not_supported(const char *function)
{
    int answer = state() == NULL ? 0 : enter(function, -1);

    return answer != 0 ? answer : BELOW_NOT_SUPPORTED;
}

static int chip_count(void)
{
    int count = 0;

    while (count < state()->node.chip_count && state()->chips[count].kind == KIND_NPU)
        count++;
    return count;
}

/* The host's driver answers these for a chip that has dropped, too. */
static int ask_host(const char *function, int id, struct chip **chip)
{
    bool known = id >= 0 && id < chip_count();
    int answer = enter(function, known ? id : -1);

    *chip = known ? &state()->chips[id] : NULL;
    if (answer == OK && (!known || !(*chip)->present))
        answer = INVALID_DEVICE;
    return answer;
}

static int ask_chip(const char *function, int id, struct chip **chip)
{
    int answer = ask_host(function, id, chip);

    return answer == OK && !(*chip)->ready ? TRY_AGAIN : answer;
}

#define ASK_AS(ask, id)                                                                                                \
    struct chip *chip;                                                                                                 \
    int answer = ask(__func__, (int)(id), &chip);                                                                      \
    if (answer != OK)                                                                                                  \
        return answer
#define ASK(id) ASK_AS(ask_chip, id)
#define ASK_HOST(id) ASK_AS(ask_host, id)
#define ASK_NODE()                                                                                                     \
    int answer = enter(__func__, -1);                                                                                  \
    if (answer != OK)                                                                                                  \
        return answer

/* ---------------------------------------------------------------- the machine around it */

/* On a server, not in a container or a virtual machine; a test runs in one. The vendor's own are made weak. */
int dcmi_is_in_docker(void) { return 0; }
int dcmi_is_in_virtual_machine(void) { return 0; }

/* The vendor's log goes to standard error where COMPARE_DCMI_LOG is set. */
void dcmi_log_fun(const char *mod, const char *fmt, ...)
{
    va_list values;

    if (getenv("COMPARE_DCMI_LOG") == NULL)
        return;
    va_start(values, fmt);
    fprintf(stderr, "%s: ", mod);
    vfprintf(stderr, fmt, values);
    fputc('\n', stderr);
    va_end(values);
}

int below_system(const char *command);
int below_system(const char *command) { return (void)command, 0; }

unsigned int below_sleep(unsigned int seconds);
unsigned int below_sleep(unsigned int seconds) { return (void)seconds, 0; }

/* Of the commands that it runs, the one that lists PCI: each card behind a switch of its own, as a 950 wants it. */
FILE *below_popen(const char *command, const char *how);
FILE *below_popen(const char *command, const char *how)
{
    FILE *out = tmpfile();

    (void)how;
    for (int id = 0; out != NULL && strstr(command, "/usr/bin/find") != NULL && id < chip_count(); id++) {
        const struct chip *chip = &state()->chips[id];
        fprintf(out, "0000:00:%02x.0/0000:%02x:00.0/%04x:%02x:%02x.%x\n", chip->card_id + 1, 0x80 + chip->card_id,
                chip->pci_domain, chip->pci_bus, chip->pci_device, chip->pci_function);
    }
    for (int id = 0; out != NULL && strstr(command, "dmidecode -t9") != NULL && id < chip_count(); id++) {
        const struct chip *chip = &state()->chips[id];
        if (chip->device_id == 0)
            fprintf(out, "\tCurrent Usage: In Use\n\tID: %d\n\tBus Addr: %04x:%02x:%02x.%x\n", chip->card_id,
                    chip->pci_domain, chip->pci_bus, chip->pci_device, chip->pci_function);
    }
    if (out != NULL)
        rewind(out);
    return out;
}

int below_pclose(FILE *out);
int below_pclose(FILE *out) { return fclose(out); }

/* Root's list of processes that a reset may kill lies beside the node, not in /etc. */
char *below_realpath(const char *path, char *resolved);
char *below_realpath(const char *path, char *resolved)
{
    const char *etc = getenv("COMPARE_DCMI_ETC");
    char there[4096];

    if (strncmp(path, "/etc/", 5) != 0 || etc == NULL)
        return realpath(path, resolved);
    snprintf(there, sizeof there, "%s/%s", etc, path + 5);
    return realpath(there, resolved);
}

/* ---------------------------------------------------------------- the node */

drvError_t drvGetPlatformInfo(uint32_t *info)
{
    *info = 1; /* a host with chips in its slots */
    return 0;
}

int devdrv_get_host_phy_mach_flag(unsigned int dev_id, unsigned int *host_flag);
int devdrv_get_host_phy_mach_flag(unsigned int dev_id, unsigned int *host_flag)
{
    ASK(dev_id);
    *host_flag = 0x5a6b7c8d; /* a physical machine */
    return OK;
}

int dmanage_get_container_flag(unsigned int *flag);
int dmanage_get_container_flag(unsigned int *flag)
{
    ASK_NODE();
    *flag = 0;
    return OK;
}

/* uda_user_kernel_api.c: the ids are read once for a process, and a chip that is removed later stays among them. */
static int registered(int ids[CHIPS])
{
    static int first[CHIPS], count = -1;

    if (count < 0) {
        count = 0;
        for (int id = 0; id < chip_count(); id++) {
            if (state()->chips[id].present)
                first[count++] = id;
        }
    }
    memcpy(ids, first, sizeof first);
    return count;
}

int dsmi_get_device_count(int *device_count)
{
    int ids[CHIPS];
    ASK_NODE();
    *device_count = registered(ids);
    return OK;
}

int dsmi_get_all_device_count(int *all_device_count) { return dsmi_get_device_count(all_device_count); }

int dsmi_list_device(int device_id_list[], int count)
{
    int ids[CHIPS];
    ASK_NODE();
    int there = registered(ids);
    for (int index = 0; index < count && index < there; index++)
        device_id_list[index] = ids[index];
    return OK;
}

int dsmi_get_phyid_from_logicid(unsigned int logicid, unsigned int *phyid)
{
    ASK_HOST(logicid);
    *phyid = logicid;
    return OK;
}

int dsmi_get_logicid_from_phyid(unsigned int phyid, unsigned int *logicid)
{
    ASK_HOST(phyid);
    *logicid = phyid;
    return OK;
}

int dsmi_get_mainboard_id(unsigned int device_id, unsigned int *mainboard_id)
{
    ASK(device_id);
    *mainboard_id = state()->node.mainboard_id;
    return OK;
}

int dsmi_get_version(int device_id, char *version_str, unsigned int version_len, unsigned int *ret_len)
{
    ASK(device_id);
    snprintf(version_str, version_len, "%s", state()->node.driver_version);
    *ret_len = (unsigned int)strlen(version_str);
    return OK;
}

/* ---------------------------------------------------------------- what a chip is */

int dsmi_get_board_info(int device_id, struct dsmi_board_info_stru *out)
{
    ASK(device_id);
    *out = (struct dsmi_board_info_stru){chip->board_id, chip->pcb_id, chip->bom_id, chip->slot_id};
    return OK;
}

/* One name, which libdcmi takes apart at its underscore on an A3 or a 950 (dcmi_copy_npu_chip_name_v2). */
int dsmi_get_chip_info(int device_id, struct dsmi_chip_info_stru *out)
{
    ASK(device_id);
    const char *series = chip->chip_name;
    if (strncmp(series, "Ascend", 6) == 0)
        series += 6;
    snprintf((char *)out->chip_type, sizeof out->chip_type, "%s", chip->chip_type);
    snprintf((char *)out->chip_ver, sizeof out->chip_ver, "%s", chip->chip_version);
    if (strcmp(chip->chip_name, chip->npu_name) == 0)
        snprintf((char *)out->chip_name, sizeof out->chip_name, "%s", series);
    else
        snprintf((char *)out->chip_name, sizeof out->chip_name, "%.14s_%.16s", series, chip->npu_name);
    return OK;
}

int dsmi_get_computing_power_info(int device_id, int type, struct dsmi_computing_power_info *out)
{
    ASK(device_id);
    (void)type;
    out->data1 = chip->aicore_count;
    return OK;
}

int dsmi_get_pcie_info(int device_id, struct tag_pcie_idinfo *out)
{
    ASK(device_id);
    *out = (struct tag_pcie_idinfo){.deviceid = chip->pci_product,
                                    .venderid = chip->pci_vendor,
                                    .subvenderid = chip->pci_subvendor,
                                    .subdeviceid = chip->pci_subproduct,
                                    .bdf_busid = chip->pci_bus,
                                    .bdf_deviceid = chip->pci_device,
                                    .bdf_funcid = chip->pci_function};
    return OK;
}

int dsmi_get_pcie_info_v2(int device_id, struct dcmi_pcie_info_all *out);
int dsmi_get_pcie_info_v2(int device_id, struct dcmi_pcie_info_all *out)
{
    ASK(device_id);
    *out = (struct dcmi_pcie_info_all){.venderid = chip->pci_vendor,
                                       .subvenderid = chip->pci_subvendor,
                                       .deviceid = chip->pci_product,
                                       .subdeviceid = chip->pci_subproduct,
                                       .domain = (int)chip->pci_domain,
                                       .bdf_busid = chip->pci_bus,
                                       .bdf_deviceid = chip->pci_device,
                                       .bdf_funcid = chip->pci_function};
    return OK;
}

int dsmi_get_device_die(int device_id, struct dsmi_soc_die_stru *out)
{
    ASK(device_id);
    memcpy(out->soc_die, chip->vdie, sizeof chip->vdie);
    return OK;
}

int dsmi_dft_get_elable(int device_id, int item_type, char *data, int *length)
{
    ASK(device_id);
    (void)item_type;
    *length = sprintf(data, "%s", chip->serial);
    return OK;
}

/* What the card's MCU is asked for (DCMI_MCU_*_OPCODE of dcmi_common.h). */
enum { MCU_HEALTH = 0x1, MCU_CODES = 0x2 };

/*
 * The card's MCU, by way of the chip: it is well and has no codes, which is a zero; else up to four bytes are a number,
 * which is the board, and more is the serial number. A 950 asks it for each chip's health and codes, too.
 */
int dsmi_passthru_mcu(int device_id, struct passthru_message_stru *message)
{
    ASK(device_id);
    const struct dmp_req_message_stru *asked = &message->src_message.data.req;
    struct dmp_rsp_message_stru *out = &message->dest_message.data.rsp;

    if (chip->mcu_silent_ms > 0)
        return WAIT_TIMEOUT;
    memset(out, 0, sizeof *out);
    out->opcode = asked->opcode;
    out->length = out->total_length = asked->length;
    if (asked->opcode == MCU_HEALTH || asked->opcode == MCU_CODES) {
        out->total_length = out->length = asked->opcode == MCU_HEALTH ? 1 : 2;
        return OK;
    }
    if (asked->length <= sizeof chip->board_id) {
        memcpy(out->data, &chip->board_id, asked->length);
        return OK;
    }
    out->total_length = (unsigned int)strlen(chip->serial);
    out->length = asked->offset >= out->total_length ? 0 : out->total_length - asked->offset;
    if (out->length > asked->length)
        out->length = asked->length;
    memcpy(out->data, chip->serial + asked->offset, out->length);
    return OK;
}

/* ---------------------------------------------------------------- how it is */

/* Of one that is not registered any more it says so by the health, and answers 0. */
int dsmi_get_device_health(int device_id, unsigned int *health)
{
    struct chip *chip;
    int answer = ask_chip(__func__, device_id, &chip);

    if (answer == INVALID_DEVICE) {
        *health = 0xffffffffu;
        return OK;
    }
    if (answer != OK)
        return answer;
    *health = 0;
    for (int index = 0; index < chip->code_count; index++) {
        if (state()->standing[device_id][index].severity > *health)
            *health = state()->standing[device_id][index].severity;
    }
    return OK;
}

int dsmi_get_device_errorcode(int device_id, int *count, unsigned int *codes)
{
    ASK(device_id);
    for (int index = 0; index < chip->code_count; index++)
        codes[index] = state()->standing[device_id][index].code;
    *count = chip->code_count;
    return OK;
}

int dsmi_get_device_boot_status(int device_id, enum dsmi_boot_status *status)
{
    ASK_HOST(device_id);
    *status = chip->ready ? (enum dsmi_boot_status)16 : (enum dsmi_boot_status)0;
    return OK;
}

int dsmi_get_device_temperature(int device_id, int *out)
{
    ASK(device_id);
    *out = chip->temperature_celsius;
    return OK;
}

/* A 950's temperature. */
int dsmi_get_soc_sensor_info(int device_id, int sensor_id, TAG_SENSOR_INFO *out)
{
    ASK(device_id);
    (void)sensor_id;
    *out = (TAG_SENSOR_INFO){.uchar = (unsigned char)chip->temperature_celsius};
    return OK;
}

int dsmi_get_network_health(int device_id, DSMI_NET_HEALTH_STATUS *out)
{
    ASK(device_id);
    *out = (DSMI_NET_HEALTH_STATUS)chip->network_health;
    return OK;
}

/* Of a process that has ended since it was listed: dms_get_process_memory of the kernel's dms_process_info.c. */
static int put_memory(struct chip *chip, unsigned int process, unsigned long *bytes)
{
    int last = chip->process_count - 1, place = last;

    while (place >= 0 && (unsigned int)chip->process_ids[place] != process)
        place--;
    if (place >= 0 && chip->process_memory_bytes[place] != PROCESS_ENDED) {
        *bytes = chip->process_memory_bytes[place];
        return OK;
    }
    if (place >= 0) {
        chip->process_ids[place] = chip->process_ids[last];
        chip->process_memory_bytes[place] = chip->process_memory_bytes[last];
        chip->process_count = last;
    }
    return BELOW_NOT_SUPPORTED;
}

/* The host knows the processes; their memory it asks the chip for. */
int dsmi_get_resource_info(unsigned int devid, struct dsmi_resource_para *para, struct dsmi_resource_info *info)
{
    ASK_HOST(devid);
    if (para->resource_type == DSMI_DEV_PROCESS_PID) {
        memset(info->buf, 0, info->buf_len);
        size_t bytes = sizeof chip->process_ids[0] * (size_t)chip->process_count;
        memcpy(info->buf, chip->process_ids, bytes < info->buf_len ? bytes : info->buf_len);
        return OK;
    }
    if (para->resource_type != DSMI_DEV_PROCESS_MEM)
        return BELOW_NOT_SUPPORTED;
    if (!chip->ready)
        return TRY_AGAIN;
    lock_state();
    answer = put_memory(chip, para->owner_id, info->buf);
    unlock_state();
    return answer;
}

/* ---------------------------------------------------------------- resets */

/* The topology is the host's to say: chips of one board are joined where all of them are reset together. */
int dsmi_get_hccs_status(int device_id1, int device_id2, int *out)
{
    ASK_HOST(device_id1);
    *out = device_id2 < chip_count() && chip->reset_group == state()->chips[device_id2].reset_group;
    return OK;
}

drvError_t halGetPairPhyDevicesInfo(uint32_t devId, uint32_t otherDevId, int32_t infoType, int64_t *value)
{
    (void)devId, (void)otherDevId, (void)infoType;
    *value = 1;
    return 0;
}

static void begin(struct chip *chip)
{
    chip->resets++;
    chip->ready = 1;
    chip->code_count = 0;
    chip->process_count = 0;
}

/* One card of a 310P is one unit below; a die of an A3 is reset with the other one of its card. */
int dsmi_hot_reset_atomic(int device_id, int dsmi_hotreset_subcmd)
{
    struct chip *chip = NULL;
    bool everything = device_id == -1 || device_id == 0xff;
    int answer = everything ? enter(__func__, -1) : ask_host(__func__, device_id, &chip);

    if (answer != OK)
        return answer;
    if (dsmi_hotreset_subcmd == DSMI_SUBCMD_HOTRESET_RESCAN && chip->awaits_rescan) {
        chip->awaits_rescan = 0;
        chip->ready = 1;
    }
    if (dsmi_hotreset_subcmd != DSMI_SUBCMD_HOTRESET_ASSEMBLE && dsmi_hotreset_subcmd != DSMI_SUBCMD_HOTRESET_RESET)
        return OK;
    for (int id = 0; id < chip_count(); id++) {
        struct chip *other = &state()->chips[id];
        if (everything || other->card_id == chip->card_id)
            begin(other);
    }
    return OK;
}
