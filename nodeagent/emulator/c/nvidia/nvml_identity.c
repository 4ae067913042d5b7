/* Which GPUs there are, handles for them, and what each of them is. */
#include "nvml.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* PCI class and subclass of a 3D controller, which is what GPUs without a display are. */
enum { CLASS_DISPLAY = 0x03, SUBCLASS_3D = 0x02 };

NVML_FUNCTION(nvmlDeviceGetCount_v2, uint32_t *count)
{
    int slots[CHIPS];

    IN_SESSION();
    return put_u32(count, (uint32_t)session_gpus(slots));
}

NVML_FUNCTION(nvmlDeviceGetHandleByIndex_v2, uint32_t index, nvmlDevice_t *device)
{
    int slots[CHIPS];
    uint32_t count = (uint32_t)session_gpus(slots);
    nvmlReturn_t answer = enter(__func__, index < count ? slots[index] : -1);

    if (answer == NVML_SUCCESS)
        answer = session_answer();
    if (answer != NVML_SUCCESS)
        return answer;
    if (device == NULL || index >= count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_handle(slots[index], 0, device);
}

NVML_FUNCTION(nvmlDeviceGetIndex, nvmlDevice_t device, uint32_t *index)
{
    int slots[CHIPS];

    ON_GPU(device);
    int count = session_gpus(slots);
    for (int place = 0; place < count; place++)
        if (slots[place] == slot_of_gpu(gpu))
            return put_u32(index, (uint32_t)place);
    return NVML_ERROR_UNKNOWN;
}

void mig_uuid(const struct chip *gpu, int mig, char text[NVML_UUID_ASCII_SIZE])
{
    const char *digits = strchr(gpu->gpu_uuid, '-');

    snprintf(text, NVML_UUID_ASCII_SIZE, "MIG%s", digits == NULL ? "" : digits);
    if (strlen(text) > 18)
        text[18] = (char)('0' + mig); /* where a UUID has its version */
}

static nvmlReturn_t find_by_uuid(const char *uuid, nvmlDevice_t *device)
{
    char text[NVML_UUID_ASCII_SIZE];
    int slots[CHIPS];
    int count = session_gpus(slots);

    for (int place = 0; place < count; place++) {
        const struct chip *gpu = &state()->chips[slots[place]];
        if (strcmp(gpu->gpu_uuid, uuid) == 0)
            return give_handle(slots[place], 0, device);
        for (int mig = 1; is_partitioned(gpu) && mig <= (int)gpu->gpu_mig_count; mig++) {
            mig_uuid(gpu, mig, text);
            if (strcmp(text, uuid) == 0)
                return give_handle(slots[place], mig, device);
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_FUNCTION(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
{
    IN_SESSION();
    return uuid == NULL || device == NULL ? NVML_ERROR_INVALID_ARGUMENT : find_by_uuid(uuid, device);
}

NVML_FUNCTION(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_v1_t *uuid, nvmlDevice_t *device)
{
    IN_SESSION();
    if (uuid == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != NVML_VERSION_WORD(nvmlUUID_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == NVML_UUID_TYPE_ASCII)
        return find_by_uuid(uuid->value.str, device);
    if (uuid->type != NVML_UUID_TYPE_BINARY)
        return NVML_ERROR_INVALID_ARGUMENT;
    char text[NVML_UUID_ASCII_SIZE];
    const uint8_t *b = uuid->value.bytes;
    snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    return find_by_uuid(text, device);
}

NVML_FUNCTION(nvmlDeviceGetHandleByPciBusId_v2, const char *text, nvmlDevice_t *device)
{
    unsigned domain = 0, bus = 0, number = 0;
    int slots[CHIPS];

    IN_SESSION();
    if (text == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &number) != 3) {
        domain = 0;
        if (sscanf(text, "%x:%x", &bus, &number) != 2)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    int count = session_gpus(slots);
    for (int place = 0; place < count; place++) {
        const struct chip *gpu = &state()->chips[slots[place]];
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == number)
            return give_handle(slots[place], 0, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_FUNCTION(nvmlDeviceGetHandleBySerial, const char *serial, nvmlDevice_t *device)
{
    int slots[CHIPS];

    IN_SESSION();
    if (serial == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    int count = session_gpus(slots);
    for (int place = 0; place < count; place++)
        if (strcmp(state()->chips[slots[place]].serial, serial) == 0)
            return give_handle(slots[place], 0, device);
    return NVML_ERROR_NOT_FOUND;
}

NVML_FUNCTION(nvmlDeviceGetName, nvmlDevice_t device, char *name, uint32_t length)
{
    char text[sizeof((struct chip *)0)->gpu_name + 64];

    ON_GPU_OR_MIG(device);
    if (mig == 0)
        return put_string(name, length, gpu->gpu_name);
    snprintf(text, sizeof text, "%s MIG %ug.%ugb", gpu->gpu_name, gpu->gpu_mig_slices[mig - 1],
             (unsigned)(gpu->gpu_mig_memory_bytes[mig - 1] >> 30));
    return put_string(name, length, text);
}

NVML_FUNCTION(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, uint32_t length)
{
    char text[NVML_UUID_ASCII_SIZE];

    ON_GPU_OR_MIG(device);
    if (mig == 0)
        return put_string(uuid, length, gpu->gpu_uuid);
    mig_uuid(gpu, mig, text);
    return put_string(uuid, length, text);
}

#define GPU_STRING(name, field)                                                                                        \
    NVML_FUNCTION(name, nvmlDevice_t device, char *text, uint32_t length)                                              \
    {                                                                                                                  \
        ON_GPU(device);                                                                                                \
        return put_string(text, length, gpu->field);                                                                   \
    }

GPU_STRING(nvmlDeviceGetSerial, serial)
GPU_STRING(nvmlDeviceGetBoardPartNumber, gpu_part_number)
GPU_STRING(nvmlDeviceGetVbiosVersion, gpu_vbios_version)
GPU_STRING(nvmlDeviceGetInforomImageVersion, gpu_inforom_version)

NVML_FUNCTION(nvmlDeviceValidateInforom, nvmlDevice_t device)
{
    uint32_t is_corrupt = 0;

    ON_GPU(device);
    nvmlReturn_t answer = put_u32(&is_corrupt, gpu->gpu_inforom_corrupt);
    return answer == NVML_SUCCESS && is_corrupt ? NVML_ERROR_CORRUPTED_INFOROM : answer;
}

NVML_FUNCTION(nvmlDeviceGetGspFirmwareVersion, nvmlDevice_t device, char *version)
{
    ON_GPU(device);
    return put_string(version, sizeof gpu->gpu_gsp_version, gpu->gpu_gsp_version);
}

NVML_FUNCTION(nvmlDeviceGetGspFirmwareMode, nvmlDevice_t device, uint32_t *enabled, uint32_t *by_default)
{
    ON_GPU(device);
    nvmlReturn_t answer = put_u32(enabled, gpu->gpu_gsp_mode);
    return answer != NVML_SUCCESS ? answer : put_u32(by_default, gpu->gpu_gsp_default_mode);
}

static uint32_t pci_ids(uint32_t product, uint32_t vendor) { return product << 16 | vendor; }

NVML_FUNCTION(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    ON_GPU(device);
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(pci, 0, sizeof *pci);
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_device;
    pci->pciDeviceId = pci_ids(gpu->pci_product, gpu->pci_vendor);
    pci->pciSubSystemId = pci_ids(gpu->pci_subproduct, gpu->pci_subvendor);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", gpu->pci_domain & 0xffff,
             gpu->pci_bus & 0xff, gpu->pci_device & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus, gpu->pci_device);
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetPciInfoExt, nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci)
{
    ON_GPU(device);
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (pci->version != NVML_VERSION_WORD(nvmlPciInfoExt_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_device;
    pci->pciDeviceId = pci_ids(gpu->pci_product, gpu->pci_vendor);
    pci->pciSubSystemId = pci_ids(gpu->pci_subproduct, gpu->pci_subvendor);
    pci->baseClass = CLASS_DISPLAY;
    pci->subClass = SUBCLASS_3D;
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus, gpu->pci_device);
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceOnSameBoard, nvmlDevice_t device, nvmlDevice_t other, int32_t *is_same)
{
    int slot, part;

    ON_GPU(device);
    if (is_same == NULL || !read_handle(other, &slot, &part))
        return NVML_ERROR_INVALID_ARGUMENT;
    *is_same = gpu->gpu_board_id == state()->chips[slot].gpu_board_id;
    return NVML_SUCCESS;
}
