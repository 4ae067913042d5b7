/* The processes that hold a GPU. */
#include "nvml.h"

enum { NO_INSTANCE = -1 };

/* Asked twice: with no room for the number of processes, then with room for them. */
static nvmlReturn_t copy_processes(const struct chip *gpu, int count, uint32_t *room, nvmlProcessInfo_t *out)
{
    uint32_t processes = (uint32_t)count;
    bool fits = *room >= processes;
    *room = processes;
    if (!fits)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (processes > 0 && out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t place = 0; place < processes; place++)
        out[place] = (nvmlProcessInfo_t){
            .pid = (uint32_t)gpu->process_ids[place],
            .usedGpuMemory = gpu->process_memory_bytes[place],
            .gpuInstanceId = (uint32_t)NO_INSTANCE,
            .computeInstanceId = (uint32_t)NO_INSTANCE,
        };
    return NVML_SUCCESS;
}

static nvmlReturn_t put_processes(struct chip *gpu, bool computing, uint32_t *room, nvmlProcessInfo_t *out)
{
    if (room == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    lock_state();
    nvmlReturn_t answer = copy_processes(gpu, computing ? processes_on(gpu) : 0, room, out);
    unlock_state();
    return answer;
}

#define PROCESSES_OF(name, computing)                                                                                  \
    NVML_FUNCTION(name, nvmlDevice_t device, uint32_t *room, nvmlProcessInfo_t *out)                                   \
    {                                                                                                                  \
        ON_GPU(device);                                                                                                \
        return put_processes(gpu, computing, room, out);                                                               \
    }

/* The second and third revision have one layout; no process of ours draws or shares the GPU through MPS. */
PROCESSES_OF(nvmlDeviceGetComputeRunningProcesses_v2, true)
PROCESSES_OF(nvmlDeviceGetComputeRunningProcesses_v3, true)
PROCESSES_OF(nvmlDeviceGetGraphicsRunningProcesses_v2, false)
PROCESSES_OF(nvmlDeviceGetGraphicsRunningProcesses_v3, false)
PROCESSES_OF(nvmlDeviceGetMPSComputeRunningProcesses_v2, false)
PROCESSES_OF(nvmlDeviceGetMPSComputeRunningProcesses_v3, false)
