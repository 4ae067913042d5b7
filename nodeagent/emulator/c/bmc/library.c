/* Which library this is; its answers are error numbers of the kernel. */
#include "shared.h"

#include <errno.h>

const struct library this_library = {
    .id = LIBRARY_BMC,
    .unsupported = ENODEV,
    .no_driver = ENOENT,
};
