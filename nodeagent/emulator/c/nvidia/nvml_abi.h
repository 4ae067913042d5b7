/*
 * The part of NVIDIA's NVML interface that the double offers: return codes, enumerations, and structures with
 * the sizes that the vendor's library has on 64-bit Linux. Layouts only; it declares no function and no state.
 * A structure whose first word is `version` is recognised by that word: size | revision << 24.
 */
#ifndef NODEAGENT_NVML_ABI_H
#define NODEAGENT_NVML_ABI_H

#include <assert.h>
#include <stdint.h>

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

/* Opaque to callers. Ours is a number, never an address, so that a stale or made-up handle is seen and not followed. */
typedef struct nvml_device *nvmlDevice_t;
typedef struct nvml_event_set *nvmlEventSet_t;

#define NVML_VERSION_WORD(type, revision) ((uint32_t)sizeof(type) | (uint32_t)(revision) << 24)

enum {
    NVML_BUS_ID_LEGACY_SIZE = 16,
    NVML_BUS_ID_SIZE = 32,
    NVML_UUID_ASCII_SIZE = 41,
    NVML_UUID_BINARY_SIZE = 16,
    NVML_FABRIC_UUID_SIZE = 16,
    NVML_FABRIC_CLIQUES = 64,
    NVML_NVLINK_MAX_LINKS = 36,
    NVML_NVLINK_FIRMWARE_ENTRIES = 100,
    NVML_INIT_FLAG_NO_GPUS = 1,
    NVML_INIT_FLAG_NO_ATTACH = 2,
};

enum { NVML_UUID_TYPE_ASCII = 1, NVML_UUID_TYPE_BINARY = 2 };
enum { NVML_MEMORY_ERROR_CORRECTED, NVML_MEMORY_ERROR_UNCORRECTED, NVML_MEMORY_ERROR_TYPES };
enum { NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC, NVML_ECC_COUNTERS };
enum {
    NVML_LOCATION_L1,
    NVML_LOCATION_L2,
    NVML_LOCATION_DRAM,
    NVML_LOCATION_REGISTER_FILE,
    NVML_LOCATION_TEXTURE,
    NVML_LOCATION_SHARED_TEXTURE,
    NVML_LOCATION_CBU,
    NVML_LOCATION_SRAM,
    NVML_LOCATIONS,
};
enum { NVML_RETIRED_SINGLE_BIT, NVML_RETIRED_DOUBLE_BIT, NVML_RETIREMENT_CAUSES };
enum { NVML_TEMPERATURE_GPU = 0 };
enum {
    NVML_VALUE_DOUBLE,
    NVML_VALUE_UNSIGNED_INT,
    NVML_VALUE_UNSIGNED_LONG,
    NVML_VALUE_UNSIGNED_LONG_LONG,
    NVML_VALUE_SIGNED_LONG_LONG,
    NVML_VALUE_SIGNED_INT,
    NVML_VALUE_UNSIGNED_SHORT,
};

enum {
    NVML_EVENT_SINGLE_BIT_ECC = 0x1,
    NVML_EVENT_DOUBLE_BIT_ECC = 0x2,
    NVML_EVENT_XID = 0x8,
    NVML_EVENT_RECOVERY_ACTION = 0x8000,
};

typedef struct {
    char busIdLegacy[NVML_BUS_ID_LEGACY_SIZE];
    uint32_t domain, bus, device;
    uint32_t pciDeviceId, pciSubSystemId;
    char busId[NVML_BUS_ID_SIZE];
} nvmlPciInfo_t;
static_assert(sizeof(nvmlPciInfo_t) == 68, "nvmlPciInfo_t");

typedef struct {
    uint32_t version;
    uint32_t domain, bus, device;
    uint32_t pciDeviceId, pciSubSystemId, baseClass, subClass;
    char busId[NVML_BUS_ID_SIZE];
} nvmlPciInfoExt_v1_t;
static_assert(NVML_VERSION_WORD(nvmlPciInfoExt_v1_t, 1) == 0x1000040, "nvmlPciInfoExt_v1_t");

typedef struct {
    uint32_t version;
    uint32_t type;
    union {
        char str[NVML_UUID_ASCII_SIZE];
        uint8_t bytes[NVML_UUID_BINARY_SIZE];
    } value;
} nvmlUUID_v1_t;
static_assert(NVML_VERSION_WORD(nvmlUUID_v1_t, 1) == 0x1000034, "nvmlUUID_v1_t");

typedef struct {
    uint32_t version;
    uint32_t sensorType;
    int32_t temperature;
} nvmlTemperature_v1_t;
static_assert(NVML_VERSION_WORD(nvmlTemperature_v1_t, 1) == 0x100000C, "nvmlTemperature_v1_t");

typedef struct {
    uint32_t version;
    int32_t marginTemperature;
} nvmlMarginTemperature_v1_t;
static_assert(NVML_VERSION_WORD(nvmlMarginTemperature_v1_t, 1) == 0x1000008, "nvmlMarginTemperature_v1_t");

typedef struct {
    uint64_t total, free, used;
} nvmlMemory_t;
static_assert(sizeof(nvmlMemory_t) == 24, "nvmlMemory_t");

typedef struct {
    uint32_t version;
    uint64_t total, reserved, free, used;
} nvmlMemory_v2_t;
static_assert(NVML_VERSION_WORD(nvmlMemory_v2_t, 2) == 0x2000028, "nvmlMemory_v2_t");

typedef struct {
    uint64_t bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    uint32_t gpu, memory;
} nvmlUtilization_t;
static_assert(sizeof(nvmlUtilization_t) == 8, "nvmlUtilization_t");

typedef struct {
    uint64_t referenceTime, violationTime;
} nvmlViolationTime_t;
static_assert(sizeof(nvmlViolationTime_t) == 16, "nvmlViolationTime_t");

typedef struct {
    uint64_t l1Cache, l2Cache, deviceMemory, registerFile;
} nvmlEccErrorCounts_t;
static_assert(sizeof(nvmlEccErrorCounts_t) == 32, "nvmlEccErrorCounts_t");

typedef struct {
    uint32_t version;
    uint64_t aggregateUncParity, aggregateUncSecDed, aggregateCor;
    uint64_t volatileUncParity, volatileUncSecDed, volatileCor;
    uint64_t aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie;
    uint64_t aggregateUncBucketMcu, aggregateUncBucketOther;
    uint32_t bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;
static_assert(NVML_VERSION_WORD(nvmlEccSramErrorStatus_v1_t, 1) == 0x1000068, "nvmlEccSramErrorStatus_v1_t");

typedef struct {
    uint32_t unit, location, sublocation, extlocation, address, isParity, count;
} nvmlEccSramUniqueUncorrectedErrorEntry_v1_t;
static_assert(sizeof(nvmlEccSramUniqueUncorrectedErrorEntry_v1_t) == 28, "an SRAM error");

typedef struct {
    uint32_t version;
    uint32_t entryCount;
    nvmlEccSramUniqueUncorrectedErrorEntry_v1_t *entries;
} nvmlEccSramUniqueUncorrectedErrorCounts_v1_t;
static_assert(NVML_VERSION_WORD(nvmlEccSramUniqueUncorrectedErrorCounts_v1_t, 1) == 0x1000010, "SRAM errors");

typedef struct {
    uint32_t corrActiveRemaps, corrInactiveRemaps, uncActiveRemaps, uncInactiveRemaps;
    uint32_t bPending, bfailureOccurred;
} nvmlRemappedRowsInfo_v2_t;
static_assert(sizeof(nvmlRemappedRowsInfo_v2_t) == 24, "nvmlRemappedRowsInfo_v2_t");

typedef struct {
    uint32_t max, high, partial, low, none;
} nvmlRowRemapperHistogramValues_t;
static_assert(sizeof(nvmlRowRemapperHistogramValues_t) == 20, "nvmlRowRemapperHistogramValues_t");

typedef struct {
    uint32_t version;
    uint32_t bChannelRepairPending, bTpcRepairPending;
} nvmlRepairStatus_v1_t;
static_assert(NVML_VERSION_WORD(nvmlRepairStatus_v1_t, 1) == 0x100000C, "nvmlRepairStatus_v1_t");

typedef struct {
    uint32_t version;
    uint32_t unrepairableMemory;
} nvmlUnrepairableMemory_v1_t;
static_assert(NVML_VERSION_WORD(nvmlUnrepairableMemory_v1_t, 1) == 0x1000008, "nvmlUnrepairableMemory_v1_t");

typedef struct {
    uint32_t activeRemappings, inactiveRemappings, bPending;
    struct {
        uint32_t maxSpareGroupCount, noSpareGroupCount;
    } histogram;
} nvmlEccBankRemapperStatus_v1_t;
static_assert(sizeof(nvmlEccBankRemapperStatus_v1_t) == 20, "nvmlEccBankRemapperStatus_v1_t");

typedef struct {
    uint32_t version;
    uint32_t isNvleEnabled;
} nvmlNvLinkInfo_v1_t;
static_assert(NVML_VERSION_WORD(nvmlNvLinkInfo_v1_t, 1) == 0x1000008, "nvmlNvLinkInfo_v1_t");

typedef struct {
    uint8_t ucodeType;
    uint32_t major, minor, subMinor;
} nvmlNvlinkFirmwareVersion_t;

typedef struct {
    uint32_t version;
    uint32_t isNvleEnabled;
    struct {
        nvmlNvlinkFirmwareVersion_t firmwareVersion[NVML_NVLINK_FIRMWARE_ENTRIES];
        uint32_t numValidEntries;
    } firmwareInfo;
} nvmlNvLinkInfo_v2_t;
static_assert(NVML_VERSION_WORD(nvmlNvLinkInfo_v2_t, 2) == 0x200064C, "nvmlNvLinkInfo_v2_t");

typedef struct {
    uint8_t clusterUuid[NVML_FABRIC_UUID_SIZE];
    uint32_t status;
    uint32_t cliqueId;
    uint32_t state;
} nvmlGpuFabricInfo_t;
static_assert(sizeof(nvmlGpuFabricInfo_t) == 28, "nvmlGpuFabricInfo_t");

typedef struct {
    uint32_t version;
    uint8_t clusterUuid[NVML_FABRIC_UUID_SIZE];
    uint32_t status;
    uint32_t cliqueId;
    uint32_t state;
    uint32_t healthMask;
} nvmlGpuFabricInfo_v2_t;
static_assert(NVML_VERSION_WORD(nvmlGpuFabricInfo_v2_t, 2) == 0x2000024, "nvmlGpuFabricInfo_v2_t");

typedef struct {
    uint32_t version;
    uint8_t clusterUuid[NVML_FABRIC_UUID_SIZE];
    uint32_t status;
    uint32_t cliqueId;
    uint32_t state;
    uint32_t healthMask;
    uint8_t healthSummary;
} nvmlGpuFabricInfo_v3_t;
static_assert(NVML_VERSION_WORD(nvmlGpuFabricInfo_v3_t, 3) == 0x3000028, "nvmlGpuFabricInfo_v3_t");

typedef struct {
    uint8_t clusterUuid[NVML_FABRIC_UUID_SIZE];
    uint32_t status;
    struct {
        uint8_t type;
        uint32_t id;
    } cliques[NVML_FABRIC_CLIQUES];
    uint32_t numCliques;
    uint8_t state;
    uint32_t healthMask;
    uint8_t healthSummary;
} nvmlGpuFabricInfo_v4_t;
static_assert(sizeof(nvmlGpuFabricInfo_v4_t) == 548, "nvmlGpuFabricInfo_v4_t");

typedef struct {
    uint32_t fieldId;
    uint32_t scopeId;
    int64_t timestamp;
    int64_t latencyUsec;
    uint32_t valueType;
    uint32_t nvmlReturn;
    union {
        double dVal;
        uint32_t uiVal;
        unsigned long ulVal;
        uint64_t ullVal;
        int64_t sllVal;
        int32_t siVal;
        uint16_t usVal;
    } value;
} nvmlFieldValue_t;
static_assert(sizeof(nvmlFieldValue_t) == 40, "nvmlFieldValue_t");

typedef struct {
    uint32_t pid;
    uint64_t usedGpuMemory;
    uint32_t gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
static_assert(sizeof(nvmlProcessInfo_t) == 24, "nvmlProcessInfo_t");

typedef struct {
    nvmlDevice_t device;
    uint64_t eventType;
    uint64_t eventData;
    uint32_t gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
static_assert(sizeof(nvmlEventData_t) == 32, "nvmlEventData_t");

typedef struct {
    uint32_t multiprocessorCount;
    uint32_t sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
    uint32_t gpuInstanceSliceCount, computeInstanceSliceCount;
    uint64_t memorySizeMB;
} nvmlDeviceAttributes_t;
static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "nvmlDeviceAttributes_t");

#endif
