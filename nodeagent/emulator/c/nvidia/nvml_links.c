/* NVLink, the fabric behind its switches, and chip-to-chip links. */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

/* What is at the other end of each link: an NVSwitch. */
enum { REMOTE_VENDOR = 0x10de, REMOTE_PRODUCT = 0x22a3 };

/* A GPU that has links refuses the numbers beyond its own, as NVML does those beyond what it knows of at all. */
static nvmlReturn_t check_link(const struct chip *gpu, uint32_t link)
{
    if (link >= NVML_NVLINK_MAX_LINKS)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->gpu_nvlink_count == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    return link < gpu->gpu_nvlink_count && link < GPU_LINKS ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

#define ON_LINK(device, link)                                                                                          \
    ON_GPU(device);                                                                                                    \
    refusal = check_link(gpu, link);                                                                                   \
    if (refusal != NVML_SUCCESS)                                                                                       \
        return refusal

NVML_FUNCTION(nvmlDeviceGetNvLinkState, nvmlDevice_t device, uint32_t link, uint32_t *is_active)
{
    ON_LINK(device, link);
    uint32_t state = gpu->gpu_nvlink_states[link];
    return put_u32(is_active, state == UINT32_MAX ? state : state == 1);
}

NVML_FUNCTION(nvmlDeviceGetNvLinkVersion, nvmlDevice_t device, uint32_t link, uint32_t *version)
{
    ON_LINK(device, link);
    return put_u32(version, gpu->gpu_nvlink_version);
}

NVML_FUNCTION(nvmlDeviceGetNvLinkErrorCounter, nvmlDevice_t device, uint32_t link, uint32_t counter, uint64_t *count)
{
    ON_LINK(device, link);
    const uint64_t *const counters[] = {
        gpu->gpu_nvlink_replays,         gpu->gpu_nvlink_recoveries,      gpu->gpu_nvlink_crc_flit_errors,
        gpu->gpu_nvlink_crc_data_errors, gpu->gpu_nvlink_ecc_data_errors,
    };
    if (counter >= sizeof counters / sizeof *counters)
        return NVML_ERROR_INVALID_ARGUMENT;
    return put_u64(count, counters[counter][link]);
}

NVML_FUNCTION(nvmlDeviceGetNvLinkCapability, nvmlDevice_t device, uint32_t link, uint32_t capability, uint32_t *has)
{
    /* Peers, system memory, atomics on both, no SLI bridge, valid: in NVML's order. */
    static const uint32_t capabilities[] = {1, 1, 1, 1, 0, 1};

    ON_LINK(device, link);
    return PUT_ELEMENT(has, capabilities, capability);
}

NVML_FUNCTION(nvmlDeviceGetNvLinkRemoteDeviceType, nvmlDevice_t device, uint32_t link, uint32_t *type)
{
    ON_LINK(device, link);
    return put_u32(type, gpu->gpu_nvlink_remote_type);
}

NVML_FUNCTION(nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlDevice_t device, uint32_t link, nvmlPciInfo_t *pci)
{
    ON_LINK(device, link);
    uint32_t bus = gpu->gpu_nvlink_remote_bus[link];
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (bus == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    memset(pci, 0, sizeof *pci);
    pci->bus = bus;
    pci->pciDeviceId = (uint32_t)REMOTE_PRODUCT << 16 | REMOTE_VENDOR;
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", bus & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", bus & 0xff);
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetNvLinkInfo, nvmlDevice_t device, void *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    uint32_t version = *(uint32_t *)out;
    if (version == NVML_VERSION_WORD(nvmlNvLinkInfo_v1_t, 1))
        return put_u32(&((nvmlNvLinkInfo_v1_t *)out)->isNvleEnabled, gpu->gpu_nvlink_encryption);
    if (version != NVML_VERSION_WORD(nvmlNvLinkInfo_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlNvLinkInfo_v2_t *second = out;
    second->firmwareInfo.numValidEntries = 0;
    return put_u32(&second->isNvleEnabled, gpu->gpu_nvlink_encryption);
}

NVML_FUNCTION(nvmlDeviceGetGpuFabricInfo, nvmlDevice_t device, nvmlGpuFabricInfo_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    memcpy(out->clusterUuid, gpu->gpu_fabric_cluster, sizeof out->clusterUuid);
    out->status = gpu->gpu_fabric_status;
    out->cliqueId = gpu->gpu_fabric_clique;
    return put_u32(&out->state, gpu->gpu_fabric_state);
}

/* The third revision is the second and one more byte, so that what they share is filled in once. */
static_assert(offsetof(nvmlGpuFabricInfo_v2_t, healthMask) == offsetof(nvmlGpuFabricInfo_v3_t, healthMask), "prefix");

NVML_FUNCTION(nvmlDeviceGetGpuFabricInfoV, nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    bool is_second = out->version == NVML_VERSION_WORD(nvmlGpuFabricInfo_v2_t, 2);
    bool is_third = out->version == NVML_VERSION_WORD(nvmlGpuFabricInfo_v3_t, 3);
    if (!is_second && !(is_third && state()->node.gpu_fabric_revision >= 3))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (gpu->gpu_fabric_state == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    memcpy(out->clusterUuid, gpu->gpu_fabric_cluster, sizeof out->clusterUuid);
    out->status = gpu->gpu_fabric_status;
    out->cliqueId = gpu->gpu_fabric_clique;
    out->state = gpu->gpu_fabric_state;
    out->healthMask = gpu->gpu_fabric_health_mask;
    if (is_third)
        out->healthSummary = (uint8_t)gpu->gpu_fabric_health_summary;
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetGpuFabricInfo_v4, nvmlDevice_t device, nvmlGpuFabricInfo_v4_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->gpu_fabric_state == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    memcpy(out->clusterUuid, gpu->gpu_fabric_cluster, sizeof out->clusterUuid);
    out->status = gpu->gpu_fabric_status;
    out->cliques[0].id = gpu->gpu_fabric_clique;
    out->numCliques = 1;
    out->state = (uint8_t)gpu->gpu_fabric_state;
    out->healthMask = gpu->gpu_fabric_health_mask;
    out->healthSummary = (uint8_t)gpu->gpu_fabric_health_summary;
    return NVML_SUCCESS;
}

/* A structure without a version word, although the name has a V. */
NVML_FUNCTION(nvmlDeviceGetC2cModeInfoV, nvmlDevice_t device, uint32_t *is_enabled)
{
    ON_GPU(device);
    return put_u32(is_enabled, gpu->gpu_c2c_mode);
}
