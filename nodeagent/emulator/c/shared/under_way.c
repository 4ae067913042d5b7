/*
 * Calls about chips that have not come back, of all processes. A process that ended in one has none any more.
 */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* Who calls, and which chip it is about: never 0, which is a free place. */
static uint64_t call_of(pid_t process, int chip) { return (uint64_t)process << 32 | (uint32_t)(chip + 1); }

static bool has_ended(uint64_t call) { return kill((pid_t)(call >> 32), 0) != 0 && errno == ESRCH; }

uint64_t *begin_call(int chip)
{
    uint64_t *calls = state()->node.calls_under_way;

    for (int place = 0; chip >= 0 && place < CALLS_UNDER_WAY; place++) {
        uint64_t before = __atomic_load_n(&calls[place], __ATOMIC_ACQUIRE);
        if ((before == 0 || has_ended(before)) &&
            __atomic_compare_exchange_n(&calls[place], &before, call_of(getpid(), chip), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return &calls[place];
    }
    return NULL;
}

void end_call(uint64_t *call)
{
    if (call != NULL)
        __atomic_store_n(call, 0, __ATOMIC_RELEASE);
}

bool is_called(int chip)
{
    const uint64_t *calls = state()->node.calls_under_way;

    for (int place = 0; place < CALLS_UNDER_WAY; place++) {
        uint64_t call = __atomic_load_n(&calls[place], __ATOMIC_ACQUIRE);
        if ((uint32_t)call == (uint32_t)(chip + 1) && !has_ended(call))
            return true;
    }
    return false;
}
