/* A caller of libnvidia-ml.so.1 with declarations of its own, as the vendor's header has them. */
#include <stdio.h>

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef int nvmlReturn_t;

typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state; /* a byte in the header, and three of padding */
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

const char *nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlShutdown(void);
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *fabric);
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set);
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);

enum { EVENT_XID = 0x8 };

static nvmlGpuFabricInfo_v3_t fabric_of(nvmlDevice_t device)
{
    nvmlGpuFabricInfo_v3_t fabric = {.version = sizeof fabric | 3u << 24};

    nvmlDeviceGetGpuFabricInfoV(device, &fabric);
    return fabric;
}

static void print_gpu(unsigned int index, nvmlDevice_t device)
{
    char name[96];
    nvmlPciInfo_t pci;
    nvmlMemory_t memory;
    unsigned int celsius;

    if (nvmlDeviceGetName(device, name, sizeof name) || nvmlDeviceGetPciInfo_v3(device, &pci) ||
        nvmlDeviceGetTemperature(device, 0, &celsius) || nvmlDeviceGetMemoryInfo(device, &memory))
        return;
    printf("gpu %u: %s, %s, %u C, %llu GiB, fabric %u\n", index, name, pci.busId, celsius, memory.total >> 30,
           fabric_of(device).state);
}

int main(void)
{
    char version[80];
    unsigned int count;
    nvmlDevice_t device;
    nvmlEventSet_t set;
    nvmlEventData_t event;
    nvmlGpuFabricInfo_v3_t unknown = {.version = 0x7f000028};

    if (nvmlInit_v2() || nvmlSystemGetDriverVersion(version, sizeof version) || nvmlDeviceGetCount_v2(&count))
        return 1;
    printf("driver %s\n", version);
    for (unsigned int index = 0; index < count; index++) {
        if (nvmlDeviceGetHandleByIndex_v2(index, &device))
            return 1;
        print_gpu(index, device);
    }
    if (nvmlEventSetCreate(&set) || nvmlDeviceRegisterEvents(device, EVENT_XID, set))
        return 1;
    printf("an event: %s\n", nvmlErrorString(nvmlEventSetWait_v2(set, &event, 1)));
    printf("an unknown version: %s\n", nvmlErrorString(nvmlDeviceGetGpuFabricInfoV(device, &unknown)));
    return nvmlEventSetFree(set) || nvmlShutdown();
}
