/* ECC: its mode, counters by location, and what is reported of the errors of SRAM. */
#include "nvml.h"

#include <string.h>

static_assert(sizeof(nvmlEccSramUniqueUncorrectedErrorEntry_v1_t) * GPU_SRAM_ERRORS ==
                  sizeof((struct chip *)0)->gpu_sram_errors,
              "the state keeps the errors of SRAM as they are reported");

NVML_FUNCTION(nvmlDeviceGetEccMode, nvmlDevice_t device, uint32_t *current, uint32_t *pending)
{
    ON_GPU(device);
    nvmlReturn_t answer = put_u32(current, gpu->gpu_ecc_mode);
    return answer != NVML_SUCCESS ? answer : put_u32(pending, gpu->gpu_ecc_pending_mode);
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
    return counts_errors(gpu) ? put_u64(count, counters[location]) : NVML_ERROR_NOT_SUPPORTED;
}

static uint64_t known(uint64_t counter) { return counter == UINT64_MAX ? 0 : counter; }

NVML_FUNCTION(nvmlDeviceGetDetailedEccErrors, nvmlDevice_t device, uint32_t type, uint32_t span,
              nvmlEccErrorCounts_t *out)
{
    ON_GPU(device);
    const uint64_t *counters = counters_of(gpu, type, span);
    if (counters == NULL || out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!counts_errors(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    out->l1Cache = known(counters[NVML_LOCATION_L1]);
    out->l2Cache = known(counters[NVML_LOCATION_L2]);
    out->deviceMemory = known(counters[NVML_LOCATION_DRAM]);
    out->registerFile = known(counters[NVML_LOCATION_REGISTER_FILE]);
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetSramEccErrorStatus, nvmlDevice_t device, nvmlEccSramErrorStatus_v1_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(nvmlEccSramErrorStatus_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!counts_errors(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    out->aggregateUncParity = gpu->gpu_sram_parity_aggregate;
    out->aggregateUncSecDed = gpu->gpu_sram_secded_aggregate;
    out->aggregateCor = gpu->gpu_sram_corrected_aggregate;
    out->volatileUncParity = gpu->gpu_sram_parity_volatile;
    out->volatileUncSecDed = gpu->gpu_sram_secded_volatile;
    out->volatileCor = gpu->gpu_sram_corrected_volatile;
    out->aggregateUncBucketL2 = gpu->gpu_sram_buckets[0];
    out->aggregateUncBucketSm = gpu->gpu_sram_buckets[1];
    out->aggregateUncBucketPcie = gpu->gpu_sram_buckets[2];
    out->aggregateUncBucketMcu = gpu->gpu_sram_buckets[3];
    out->aggregateUncBucketOther = gpu->gpu_sram_buckets[4];
    return put_u32(&out->bThresholdExceeded, gpu->gpu_sram_threshold_exceeded);
}

/* Asked twice: without room for entries, for their number, then with room for them. */
NVML_FUNCTION(nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts, nvmlDevice_t device,
              nvmlEccSramUniqueUncorrectedErrorCounts_v1_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(nvmlEccSramUniqueUncorrectedErrorCounts_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    uint32_t errors = gpu->gpu_sram_error_count;
    if (!counts_errors(gpu) || errors > GPU_SRAM_ERRORS)
        return NVML_ERROR_NOT_SUPPORTED;
    bool fits = out->entries == NULL || out->entryCount >= errors;
    out->entryCount = errors;
    if (!fits)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (out->entries != NULL)
        memcpy(out->entries, gpu->gpu_sram_errors, errors * sizeof *out->entries);
    return NVML_SUCCESS;
}
