/* ECC: modes, counters by location, the SRAM counters; and how memory is repaired: rows, banks, channels, pages. */
#include "nvml.h"

#include <string.h>

static nvmlReturn_t tell_pair(uint32_t *first, uint32_t one, uint32_t *second, uint32_t other)
{
    nvmlReturn_t answer = tell_u32(first, one);

    return answer != NVML_SUCCESS ? answer : tell_u32(second, other);
}

NVML_FUNCTION(nvmlDeviceGetEccMode, nvmlDevice_t device, uint32_t *current, uint32_t *pending)
{
    ON_GPU(device);
    return tell_pair(current, gpu->gpu_ecc_mode, pending, gpu->gpu_ecc_pending_mode);
}

/* The counters of one type and span by location; NULL for numbers that NVML does not have. */
static const uint64_t *counters_of(const struct chip *gpu, uint32_t type, uint32_t span)
{
    if (type >= NVML_MEMORY_ERROR_TYPES || span >= NVML_ECC_COUNTERS)
        return NULL;
    if (type == NVML_MEMORY_ERROR_CORRECTED)
        return span == NVML_VOLATILE_ECC ? gpu->gpu_ecc_corrected_volatile : gpu->gpu_ecc_corrected_aggregate;
    return span == NVML_VOLATILE_ECC ? gpu->gpu_ecc_uncorrected_volatile : gpu->gpu_ecc_uncorrected_aggregate;
}

/* Counters are to be had only while ECC is on. */
static bool counts_errors(const struct chip *gpu) { return gpu->gpu_ecc_mode == 1; }

NVML_FUNCTION(nvmlDeviceGetTotalEccErrors, nvmlDevice_t device, uint32_t type, uint32_t span, uint64_t *count)
{
    uint64_t sum = 0;

    ON_GPU(device);
    const uint64_t *counters = counters_of(gpu, type, span);
    if (counters == NULL || count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!counts_errors(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    for (int location = 0; location < NVML_LOCATIONS; location++)
        sum += counters[location] == UINT64_MAX ? 0 : counters[location];
    *count = sum;
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetMemoryErrorCounter, nvmlDevice_t device, uint32_t type, uint32_t span, uint32_t location,
              uint64_t *count)
{
    ON_GPU(device);
    const uint64_t *counters = counters_of(gpu, type, span);
    if (counters == NULL || location >= NVML_LOCATIONS)
        return NVML_ERROR_INVALID_ARGUMENT;
    return counts_errors(gpu) ? tell_u64(count, counters[location]) : NVML_ERROR_NOT_SUPPORTED;
}

static uint64_t known(uint64_t counter) { return counter == UINT64_MAX ? 0 : counter; }

NVML_FUNCTION(nvmlDeviceGetDetailedEccErrors, nvmlDevice_t device, uint32_t type, uint32_t span,
              nvmlEccErrorCounts_t *told)
{
    ON_GPU(device);
    const uint64_t *counters = counters_of(gpu, type, span);
    if (counters == NULL || told == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!counts_errors(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    told->l1Cache = known(counters[NVML_LOCATION_L1]);
    told->l2Cache = known(counters[NVML_LOCATION_L2]);
    told->deviceMemory = known(counters[NVML_LOCATION_DRAM]);
    told->registerFile = known(counters[NVML_LOCATION_REGISTER_FILE]);
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetSramEccErrorStatus, nvmlDevice_t device, nvmlEccSramErrorStatus_v1_t *told)
{
    ON_GPU(device);
    if (told == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (told->version != NVML_VERSION_WORD(nvmlEccSramErrorStatus_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!counts_errors(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    told->aggregateUncParity = gpu->gpu_sram_parity_aggregate;
    told->aggregateUncSecDed = gpu->gpu_sram_secded_aggregate;
    told->aggregateCor = gpu->gpu_sram_corrected_aggregate;
    told->volatileUncParity = gpu->gpu_sram_parity_volatile;
    told->volatileUncSecDed = gpu->gpu_sram_secded_volatile;
    told->volatileCor = gpu->gpu_sram_corrected_volatile;
    told->aggregateUncBucketL2 = gpu->gpu_sram_buckets[0];
    told->aggregateUncBucketSm = gpu->gpu_sram_buckets[1];
    told->aggregateUncBucketPcie = gpu->gpu_sram_buckets[2];
    told->aggregateUncBucketMcu = gpu->gpu_sram_buckets[3];
    told->aggregateUncBucketOther = gpu->gpu_sram_buckets[4];
    return tell_u32(&told->bThresholdExceeded, gpu->gpu_sram_threshold_exceeded);
}

NVML_FUNCTION(nvmlDeviceGetRemappedRows, nvmlDevice_t device, uint32_t *corrected, uint32_t *uncorrected,
              uint32_t *pending, uint32_t *failed)
{
    ON_GPU(device);
    if (is_partitioned(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t answer = tell_pair(corrected, gpu->gpu_rows_corrected, uncorrected, gpu->gpu_rows_uncorrected);
    if (answer != NVML_SUCCESS)
        return answer;
    return tell_pair(pending, gpu->gpu_rows_pending, failed, gpu->gpu_rows_failed);
}

NVML_FUNCTION(nvmlDeviceGetRemappedRows_v2, nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *told)
{
    ON_GPU(device);
    if (told == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (is_partitioned(gpu) || gpu->gpu_rows_corrected_inactive == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    *told = (nvmlRemappedRowsInfo_v2_t){
        .corrActiveRemaps = gpu->gpu_rows_corrected,
        .corrInactiveRemaps = gpu->gpu_rows_corrected_inactive,
        .uncActiveRemaps = gpu->gpu_rows_uncorrected,
        .uncInactiveRemaps = gpu->gpu_rows_uncorrected_inactive,
        .bPending = gpu->gpu_rows_pending,
        .bfailureOccurred = gpu->gpu_rows_failed,
    };
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetRowRemapperHistogram, nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *told)
{
    const uint32_t *banks;

    ON_GPU(device);
    if (told == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    banks = gpu->gpu_row_banks;
    if (is_partitioned(gpu) || banks[0] == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    *told = (nvmlRowRemapperHistogramValues_t){banks[0], banks[1], banks[2], banks[3], banks[4]};
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetRepairStatus, nvmlDevice_t device, nvmlRepairStatus_v1_t *told)
{
    ON_GPU(device);
    if (told == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (told->version != NVML_VERSION_WORD(nvmlRepairStatus_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return tell_pair(&told->bChannelRepairPending, gpu->gpu_channel_repair_pending, &told->bTpcRepairPending,
                     gpu->gpu_tpc_repair_pending);
}

NVML_FUNCTION(nvmlDeviceGetUnrepairableMemoryFlag_v1, nvmlDevice_t device, nvmlUnrepairableMemory_v1_t *told)
{
    ON_GPU(device);
    if (told == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (told->version != NVML_VERSION_WORD(nvmlUnrepairableMemory_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return tell_u32(&told->unrepairableMemory, gpu->gpu_unrepairable_memory);
}

NVML_FUNCTION(nvmlDeviceGetBankRemapperStatus_v1, nvmlDevice_t device, nvmlEccBankRemapperStatus_v1_t *told)
{
    ON_GPU(device);
    if (told == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->gpu_banks_active == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    told->activeRemappings = gpu->gpu_banks_active;
    told->inactiveRemappings = gpu->gpu_banks_inactive;
    told->bPending = gpu->gpu_banks_pending;
    told->histogram.maxSpareGroupCount = gpu->gpu_bank_groups_full;
    told->histogram.noSpareGroupCount = gpu->gpu_bank_groups_empty;
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetRetiredPagesPendingStatus, nvmlDevice_t device, uint32_t *is_pending)
{
    ON_GPU(device);
    return tell_u32(is_pending, gpu->gpu_retired_pending);
}

/* Asked twice: with no room for the number of pages, then with room for them. */
static nvmlReturn_t tell_pages(const struct chip *gpu, uint32_t cause, uint32_t *count, uint64_t *addresses,
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
    return tell_pages(gpu, cause, count, addresses, NULL);
}

NVML_FUNCTION(nvmlDeviceGetRetiredPages_v2, nvmlDevice_t device, uint32_t cause, uint32_t *count, uint64_t *addresses,
              uint64_t *times)
{
    ON_GPU(device);
    return tell_pages(gpu, cause, count, addresses, times);
}
