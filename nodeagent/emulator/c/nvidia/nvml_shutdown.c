/* The end of a session, with which all ends that it gave out. */
#include "nvml.h"

NVML_FUNCTION(nvmlShutdown, void)
{
    nvmlReturn_t answer = enter(__func__, -1);
    bool is_last = false;

    if (answer != NVML_SUCCESS)
        return answer;
    if (!close_session(&is_last))
        return NVML_ERROR_UNINITIALIZED;
    if (is_last)
        free_event_sets();
    return NVML_SUCCESS;
}
