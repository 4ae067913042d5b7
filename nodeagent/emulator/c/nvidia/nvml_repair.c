/* How memory is repaired: rows, banks and channels remapped, on older products pages retired. */
#include "nvml.h"

#include <string.h>

static nvmlReturn_t put_pair(uint32_t *first, uint32_t one, uint32_t *second, uint32_t other)
{
    nvmlReturn_t answer = put_u32(first, one);

    return answer != NVML_SUCCESS ? answer : put_u32(second, other);
}

NVML_FUNCTION(nvmlDeviceGetRemappedRows, nvmlDevice_t device, uint32_t *corrected, uint32_t *uncorrected,
              uint32_t *pending, uint32_t *failed)
{
    ON_GPU(device);
    if (is_partitioned(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t answer = put_pair(corrected, gpu->gpu_rows_corrected, uncorrected, gpu->gpu_rows_uncorrected);
    if (answer != NVML_SUCCESS)
        return answer;
    return put_pair(pending, gpu->gpu_rows_pending, failed, gpu->gpu_rows_failed);
}

NVML_FUNCTION(nvmlDeviceGetRemappedRows_v2, nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (is_partitioned(gpu) || gpu->gpu_rows_corrected_inactive == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = (nvmlRemappedRowsInfo_v2_t){
        .corrActiveRemaps = gpu->gpu_rows_corrected,
        .corrInactiveRemaps = gpu->gpu_rows_corrected_inactive,
        .uncActiveRemaps = gpu->gpu_rows_uncorrected,
        .uncInactiveRemaps = gpu->gpu_rows_uncorrected_inactive,
        .bPending = gpu->gpu_rows_pending,
        .bfailureOccurred = gpu->gpu_rows_failed,
    };
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetRowRemapperHistogram, nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *out)
{
    const uint32_t *banks;

    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    banks = gpu->gpu_row_banks;
    if (is_partitioned(gpu) || banks[0] == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = (nvmlRowRemapperHistogramValues_t){banks[0], banks[1], banks[2], banks[3], banks[4]};
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetRepairStatus, nvmlDevice_t device, nvmlRepairStatus_v1_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(nvmlRepairStatus_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return put_pair(&out->bChannelRepairPending, gpu->gpu_channel_repair_pending, &out->bTpcRepairPending,
                    gpu->gpu_tpc_repair_pending);
}

NVML_FUNCTION(nvmlDeviceGetUnrepairableMemoryFlag_v1, nvmlDevice_t device, nvmlUnrepairableMemory_v1_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(nvmlUnrepairableMemory_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return put_u32(&out->unrepairableMemory, gpu->gpu_unrepairable_memory);
}

NVML_FUNCTION(nvmlDeviceGetBankRemapperStatus_v1, nvmlDevice_t device, nvmlEccBankRemapperStatus_v1_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->gpu_banks_active == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    out->activeRemappings = gpu->gpu_banks_active;
    out->inactiveRemappings = gpu->gpu_banks_inactive;
    out->bPending = gpu->gpu_banks_pending;
    out->histogram.maxSpareGroupCount = gpu->gpu_bank_groups_full;
    out->histogram.noSpareGroupCount = gpu->gpu_bank_groups_empty;
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetRetiredPagesPendingStatus, nvmlDevice_t device, uint32_t *is_pending)
{
    ON_GPU(device);
    return put_u32(is_pending, gpu->gpu_retired_pending);
}

/* Asked twice: with no room for the number of pages, then with room for them. */
static nvmlReturn_t put_pages(const struct chip *gpu, uint32_t cause, uint32_t *count, uint64_t *addresses,
                              uint64_t *times)
{
    bool is_double = cause == NVML_RETIRED_DOUBLE_BIT;
    uint32_t pages = is_double ? gpu->gpu_retired_double_count : gpu->gpu_retired_single_count;
    uint32_t room;

    if (count == NULL || cause >= NVML_RETIREMENT_CAUSES)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (pages == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    if (pages > GPU_PAGES)
        pages = GPU_PAGES;
    room = *count;
    *count = pages;
    if (room < pages)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (pages == 0)
        return NVML_SUCCESS;
    if (addresses == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    memcpy(addresses, is_double ? gpu->gpu_retired_double_pages : gpu->gpu_retired_single_pages,
           pages * sizeof *addresses);
    for (uint32_t page = 0; times != NULL && page < pages; page++)
        times[page] = (is_double ? gpu->gpu_retired_double_ms : gpu->gpu_retired_single_ms)[page] * 1000u;
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetRetiredPages, nvmlDevice_t device, uint32_t cause, uint32_t *count, uint64_t *addresses)
{
    ON_GPU(device);
    return put_pages(gpu, cause, count, addresses, NULL);
}

NVML_FUNCTION(nvmlDeviceGetRetiredPages_v2, nvmlDevice_t device, uint32_t cause, uint32_t *count, uint64_t *addresses,
              uint64_t *times)
{
    ON_GPU(device);
    return put_pages(gpu, cause, count, addresses, times);
}
