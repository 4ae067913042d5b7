/* Which library this is. */
#include "dcmi.h"

const struct library this_library = {
    .id = LIBRARY_DCMI,
    .unsupported = DCMI_ERR_NOT_SUPPORT,
    .no_driver = DCMI_ERR_INNER_ERR,
};
