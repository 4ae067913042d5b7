/* What is asked about the node as a whole: versions, processes, and texts for the return codes. */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

static const char *const texts[] = {
    [0] = "Success",
    [1] = "Uninitialized",
    [2] = "Invalid Argument",
    [3] = "Not Supported",
    [4] = "Insufficient Permissions",
    [5] = "Already Initialized",
    [6] = "Not Found",
    [7] = "Insufficient Size",
    [8] = "Insufficient External Power",
    [9] = "Driver Not Loaded",
    [10] = "Timeout",
    [11] = "Interrupt Request Issue",
    [12] = "NVML Shared Library Not Found",
    [13] = "Function Not Found",
    [14] = "Corrupted infoROM",
    [15] = "GPU is lost",
    [16] = "GPU requires reset",
    [17] = "The operating system has blocked the request.",
    [18] = "RM has detected an NVML/RM version mismatch.",
    [19] = "In use by another client",
    [20] = "Insufficient Memory",
    [21] = "No data",
    [22] = "The requested vGPU operation is not available on target device, because ECC is enabled",
    [23] = "Insufficient Resources",
    [24] = "Freq Not Supported",
    [25] = "Argument version mismatch",
    [26] = "Deprecated",
    [27] = "Not ready",
    [28] = "GPU not found",
    [29] = "Invalid state",
    [30] = "Reset type not supported",
};

EXPORTED const char *nvmlErrorString(nvmlReturn_t result);
EXPORTED const char *nvmlErrorString(nvmlReturn_t result)
{
    unsigned number = (unsigned)result;

    return number < sizeof texts / sizeof *texts ? texts[number] : "Unknown Error";
}

nvmlReturn_t put_string(char *buffer, uint32_t bytes, const char *text)
{
    if (buffer == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (*text == '\0')
        return NVML_ERROR_NOT_SUPPORTED;
    if (strlen(text) >= bytes)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    put_text(buffer, bytes, text);
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlSystemGetDriverVersion, char *version, uint32_t length)
{
    IN_SESSION();
    return put_string(version, length, state()->node.gpu_driver_version);
}

NVML_FUNCTION(nvmlSystemGetNVMLVersion, char *version, uint32_t length)
{
    char text[NAME + 16];

    IN_SESSION();
    snprintf(text, sizeof text, "%d.%s", state()->node.gpu_cuda_version / 1000, library_version());
    return put_string(version, length, text);
}

NVML_FUNCTION(nvmlSystemGetCudaDriverVersion, int32_t *version)
{
    IN_SESSION();
    return put_i32(version, state()->node.gpu_cuda_version);
}

NVML_FUNCTION(nvmlSystemGetCudaDriverVersion_v2, int32_t *version)
{
    IN_SESSION();
    return put_i32(version, state()->node.gpu_cuda_version);
}

NVML_FUNCTION(nvmlSystemGetProcessName, uint32_t pid, char *name, uint32_t length)
{
    char path[32];
    char text[1024] = "";

    IN_SESSION();
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NVML_ERROR_NOT_FOUND;
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return bytes == 0 ? NVML_ERROR_NOT_FOUND : put_string(name, length, text);
}

NVML_FUNCTION(nvmlGetExcludedDeviceCount, uint32_t *count)
{
    IN_SESSION();
    return put_u32(count, 0);
}
