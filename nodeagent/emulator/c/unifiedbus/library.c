/* Which library this is. */
#include "lingqu_abi.h"
#include "shared.h"

const struct library this_library = {
    .id = LIBRARY_LINGQU,
    .unsupported = LQ_DCMI_ERR_IOCTL,
    .no_driver = LQ_DCMI_ERR_DEVICE_OPEN,
};
