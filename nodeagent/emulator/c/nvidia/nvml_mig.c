/* GPUs cut into MIG devices: one GPU instance with one compute instance each. */
#include "nvml.h"

NVML_FUNCTION(nvmlDeviceGetMigMode, nvmlDevice_t device, uint32_t *current, uint32_t *pending)
{
    ON_GPU(device);
    nvmlReturn_t answer = put_u32(current, gpu->gpu_mig_mode);
    return answer != NVML_SUCCESS ? answer : put_u32(pending, gpu->gpu_mig_pending_mode);
}

NVML_FUNCTION(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t device, uint32_t *count)
{
    ON_GPU(device);
    return put_u32(count, gpu->gpu_mig_limit);
}

NVML_FUNCTION(nvmlDeviceIsMigDeviceHandle, nvmlDevice_t device, uint32_t *is_mig)
{
    ON_GPU_OR_MIG(device);
    return put_u32(is_mig, mig != 0);
}

NVML_FUNCTION(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, uint32_t index, nvmlDevice_t *part)
{
    ON_GPU(device);
    if (part == NULL || index >= GPU_MIG_DEVICES)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->gpu_mig_mode == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!is_partitioned(gpu) || index >= gpu->gpu_mig_count)
        return NVML_ERROR_NOT_FOUND;
    return give_handle(slot_of_gpu(gpu), (int)index + 1, part);
}

NVML_FUNCTION(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t part, nvmlDevice_t *device)
{
    ON_GPU_OR_MIG(part);
    if (mig == 0 || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_handle(slot_of_gpu(gpu), 0, device);
}

NVML_FUNCTION(nvmlDeviceGetGpuInstanceId, nvmlDevice_t device, uint32_t *instance)
{
    ON_GPU_OR_MIG(device);
    return mig == 0 ? NVML_ERROR_NOT_SUPPORTED : put_u32(instance, (uint32_t)mig);
}

NVML_FUNCTION(nvmlDeviceGetComputeInstanceId, nvmlDevice_t device, uint32_t *instance)
{
    ON_GPU_OR_MIG(device);
    return mig == 0 ? NVML_ERROR_NOT_SUPPORTED : put_u32(instance, 0);
}

NVML_FUNCTION(nvmlDeviceGetAttributes_v2, nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    ON_GPU_OR_MIG(device);
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (mig == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = (nvmlDeviceAttributes_t){
        .gpuInstanceSliceCount = gpu->gpu_mig_slices[mig - 1],
        .computeInstanceSliceCount = gpu->gpu_mig_slices[mig - 1],
        .memorySizeMB = gpu->gpu_mig_memory_bytes[mig - 1] >> 20,
    };
    return NVML_SUCCESS;
}
