/* Telemetry: each function answers one field of the GPU, or one of an array by its number. */
#include "nvml.h"

#define GPU_VALUE(name, type, field)                                                                                   \
    NVML_FUNCTION(name, nvmlDevice_t device, type *value)                                                              \
    {                                                                                                                  \
        ON_GPU(device);                                                                                                \
        return PUT(value, gpu->field);                                                                                 \
    }

#define GPU_ELEMENT(name, type, field)                                                                                 \
    NVML_FUNCTION(name, nvmlDevice_t device, uint32_t index, type *value)                                              \
    {                                                                                                                  \
        ON_GPU(device);                                                                                                \
        return PUT_ELEMENT(value, gpu->field, index);                                                                  \
    }

GPU_VALUE(nvmlDeviceGetMinorNumber, uint32_t, gpu_minor_number)
GPU_VALUE(nvmlDeviceGetBoardId, uint32_t, gpu_board_id)
GPU_VALUE(nvmlDeviceGetModuleId, uint32_t, gpu_module_id)
GPU_VALUE(nvmlDeviceGetBrand, uint32_t, gpu_brand)
GPU_VALUE(nvmlDeviceGetArchitecture, uint32_t, gpu_architecture)
GPU_VALUE(nvmlDeviceGetNumGpuCores, uint32_t, gpu_cores)
GPU_VALUE(nvmlDeviceGetIrqNum, uint32_t, gpu_irq)
GPU_VALUE(nvmlDeviceGetPersistenceMode, uint32_t, gpu_persistence_mode)
GPU_VALUE(nvmlDeviceGetComputeMode, uint32_t, gpu_compute_mode)
GPU_VALUE(nvmlDeviceGetVirtualizationMode, uint32_t, gpu_virtualization_mode)
GPU_VALUE(nvmlDeviceGetPerformanceState, uint32_t, gpu_performance_state)
GPU_VALUE(nvmlDeviceGetPowerUsage, uint32_t, gpu_power_milliwatts)
GPU_VALUE(nvmlDeviceGetPowerManagementLimit, uint32_t, gpu_power_limit_milliwatts)
GPU_VALUE(nvmlDeviceGetPowerManagementDefaultLimit, uint32_t, gpu_power_default_milliwatts)
GPU_VALUE(nvmlDeviceGetEnforcedPowerLimit, uint32_t, gpu_power_enforced_milliwatts)
GPU_VALUE(nvmlDeviceGetTotalEnergyConsumption, uint64_t, gpu_energy_millijoules)
GPU_VALUE(nvmlDeviceGetCurrPcieLinkGeneration, uint32_t, gpu_pcie_generation)
GPU_VALUE(nvmlDeviceGetCurrPcieLinkWidth, uint32_t, gpu_pcie_width)
GPU_VALUE(nvmlDeviceGetMaxPcieLinkGeneration, uint32_t, gpu_pcie_generation_limit)
GPU_VALUE(nvmlDeviceGetMaxPcieLinkWidth, uint32_t, gpu_pcie_width_limit)
GPU_VALUE(nvmlDeviceGetBusType, uint32_t, gpu_bus_type)
GPU_VALUE(nvmlDeviceGetPcieReplayCounter, uint32_t, gpu_pcie_replays)
GPU_VALUE(nvmlDeviceGetSupportedEventTypes, uint64_t, gpu_event_types)

/* The same two under the names that they had before and have since driver 535. */
GPU_VALUE(nvmlDeviceGetCurrentClocksThrottleReasons, uint64_t, gpu_clock_reasons)
GPU_VALUE(nvmlDeviceGetCurrentClocksEventReasons, uint64_t, gpu_clock_reasons)
GPU_VALUE(nvmlDeviceGetSupportedClocksThrottleReasons, uint64_t, gpu_known_clock_reasons)
GPU_VALUE(nvmlDeviceGetSupportedClocksEventReasons, uint64_t, gpu_known_clock_reasons)

GPU_ELEMENT(nvmlDeviceGetTemperatureThreshold, uint32_t, gpu_temperature_thresholds_celsius)
GPU_ELEMENT(nvmlDeviceGetClockInfo, uint32_t, gpu_clocks_megahertz)
GPU_ELEMENT(nvmlDeviceGetMaxClockInfo, uint32_t, gpu_clock_limits_megahertz)
GPU_ELEMENT(nvmlDeviceGetApplicationsClock, uint32_t, gpu_application_clocks_megahertz)
GPU_ELEMENT(nvmlDeviceGetPcieThroughput, uint32_t, gpu_pcie_kibibytes)

NVML_FUNCTION(nvmlDeviceSetPersistenceMode, nvmlDevice_t device, uint32_t mode)
{
    ON_GPU(device);
    if (mode > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    gpu->gpu_persistence_mode = mode;
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int32_t *major, int32_t *minor)
{
    ON_GPU(device);
    nvmlReturn_t answer = put_i32(major, gpu->gpu_cuda_major);
    return answer != NVML_SUCCESS ? answer : put_i32(minor, gpu->gpu_cuda_minor);
}

NVML_FUNCTION(nvmlDeviceGetTemperature, nvmlDevice_t device, uint32_t sensor, uint32_t *celsius)
{
    int32_t value = 0;

    ON_GPU(device);
    if (celsius == NULL || sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t answer = put_i32(&value, gpu->gpu_temperature_celsius);
    if (answer == NVML_SUCCESS)
        *celsius = (uint32_t)value;
    return answer;
}

NVML_FUNCTION(nvmlDeviceGetTemperatureV, nvmlDevice_t device, nvmlTemperature_v1_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(nvmlTemperature_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (out->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    return put_i32(&out->temperature, gpu->gpu_temperature_celsius);
}

NVML_FUNCTION(nvmlDeviceGetMarginTemperature, nvmlDevice_t device, nvmlMarginTemperature_v1_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(nvmlMarginTemperature_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return put_i32(&out->marginTemperature, gpu->gpu_margin_celsius);
}

NVML_FUNCTION(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice_t device, uint32_t *least, uint32_t *most)
{
    ON_GPU(device);
    nvmlReturn_t answer = put_u32(least, gpu->gpu_power_least_milliwatts);
    return answer != NVML_SUCCESS ? answer : put_u32(most, gpu->gpu_power_most_milliwatts);
}

NVML_FUNCTION(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (is_partitioned(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t answer = put_u32(&out->gpu, gpu->gpu_utilization_percent);
    return answer != NVML_SUCCESS ? answer : put_u32(&out->memory, gpu->gpu_memory_utilization_percent);
}

NVML_FUNCTION(nvmlDeviceGetViolationStatus, nvmlDevice_t device, uint32_t policy, nvmlViolationTime_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    out->referenceTime = now_ms() * 1000u;
    return PUT_ELEMENT(&out->violationTime, gpu->gpu_violation_ns, policy);
}

static uint64_t total_bytes(const struct chip *gpu, int mig)
{
    return mig == 0 ? gpu->gpu_memory_total_bytes : gpu->gpu_mig_memory_bytes[mig - 1];
}

NVML_FUNCTION(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *out)
{
    ON_GPU_OR_MIG(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    out->used = mig == 0 ? gpu->gpu_memory_used_bytes + gpu->gpu_memory_reserved_bytes : 0;
    out->free = total_bytes(gpu, mig) - out->used;
    return put_u64(&out->total, total_bytes(gpu, mig));
}

NVML_FUNCTION(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t *out)
{
    ON_GPU_OR_MIG(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    out->reserved = mig == 0 ? gpu->gpu_memory_reserved_bytes : 0;
    out->used = mig == 0 ? gpu->gpu_memory_used_bytes : 0;
    out->free = total_bytes(gpu, mig) - out->used - out->reserved;
    return put_u64(&out->total, total_bytes(gpu, mig));
}

NVML_FUNCTION(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t device, nvmlBAR1Memory_t *out)
{
    ON_GPU(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    out->bar1Used = gpu->gpu_bar1_used_bytes;
    out->bar1Free = gpu->gpu_bar1_total_bytes - gpu->gpu_bar1_used_bytes;
    return put_u64(&out->bar1Total, gpu->gpu_bar1_total_bytes);
}
