/* Which library this is. */
#include "nvml.h"

const struct library this_library = {
    .id = LIBRARY_NVML,
    .unsupported = NVML_ERROR_NOT_SUPPORTED,
    .no_driver = NVML_ERROR_DRIVER_NOT_LOADED,
};
