/* ECC: its mode, counters by location, and what is told of the errors of SRAM. */
#include "nvml.h"

#include <string.h>

static_assert(sizeof(nvmlEccSramUniqueUncorrectedErrorEntry_v1_t) * GPU_SRAM_ERRORS ==
                  sizeof((struct chip *)0)->gpu_sram_errors,
              "the state keeps the errors of SRAM as they are told");

NVML_FUNCTION(nvmlDeviceGetEccMode, nvmlDevice_t device, uint32_t *current, uint32_t *pending)
{
    ON_GPU(device);
    nvmlReturn_t answer = tell_u32(current, gpu->gpu_ecc_mode);
    return answer != NVML_SUCCESS ? answer : tell_u32(pending, gpu->gpu_ecc_pending_mode);
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

/* Asked twice: without room for entries, for their number, then with room for them. */
NVML_FUNCTION(nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts, nvmlDevice_t device,
              nvmlEccSramUniqueUncorrectedErrorCounts_v1_t *told)
{
    ON_GPU(device);
    if (told == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (told->version != NVML_VERSION_WORD(nvmlEccSramUniqueUncorrectedErrorCounts_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    uint32_t errors = gpu->gpu_sram_error_count;
    if (!counts_errors(gpu) || errors > GPU_SRAM_ERRORS)
        return NVML_ERROR_NOT_SUPPORTED;
    bool fits = told->entries == NULL || told->entryCount >= errors;
    told->entryCount = errors;
    if (!fits)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (told->entries != NULL)
        memcpy(told->entries, gpu->gpu_sram_errors, errors * sizeof *told->entries);
    return NVML_SUCCESS;
}
