/* What is done to a call before it is answered: counted, refused, delayed, hung, timed out, crashed. */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_AGAIN_MS = 50 };

static uint32_t hash(const char *name)
{
    uint32_t value = 2166136261u;

    for (; *name != '\0'; name++)
        value = (value ^ (unsigned char)*name) * 16777619u;
    return value;
}

/* The slot of a function, or the free one where it belongs. NULL: the table is full. */
static struct function *slot_of(const char *name)
{
    struct function *functions = state()->functions;
    uint32_t first = hash(name);

    for (uint32_t step = 0; step < FUNCTIONS; step++) {
        struct function *slot = &functions[(first + step) % FUNCTIONS];
        if (!__atomic_load_n(&slot->used, __ATOMIC_ACQUIRE) || strcmp(slot->name, name) == 0)
            return slot;
    }
    return NULL;
}

static struct function *function_of(const char *name)
{
    struct function *found = slot_of(name);

    if (found == NULL || __atomic_load_n(&found->used, __ATOMIC_ACQUIRE))
        return found;
    lock_state();
    found = slot_of(name);
    if (found != NULL && !found->used) {
        strncpy(found->name, name, sizeof found->name - 1);
        __atomic_store_n(&found->used, 1, __ATOMIC_RELEASE);
    }
    unlock_state();
    return found;
}

static bool fits(const struct override *override, const char *function, int chip)
{
    size_t length = strnlen(override->function, sizeof override->function);

    if (override->chip >= 0 && override->chip != chip)
        return false;
    if (override->process != 0 && override->process != getpid())
        return false;
    if (length > 0 && override->function[length - 1] == '*')
        return strncmp(override->function, function, length - 1) == 0;
    return strcmp(override->function, function) == 0;
}

/* Whether this call is one of those that the override is still for. */
static bool take(struct override *override)
{
    if (__atomic_load_n(&override->skip, __ATOMIC_ACQUIRE) > 0) {
        if (__atomic_fetch_sub(&override->skip, 1, __ATOMIC_ACQ_REL) > 0)
            return false;
    }
    if (__atomic_load_n(&override->remaining, __ATOMIC_ACQUIRE) >= 0) {
        if (__atomic_fetch_sub(&override->remaining, 1, __ATOMIC_ACQ_REL) <= 0) {
            __atomic_store_n(&override->remaining, 0, __ATOMIC_RELEASE);
            return false;
        }
    }
    return true;
}

static bool is_hanging(const struct override *override)
{
    int what = __atomic_load_n(&override->what, __ATOMIC_ACQUIRE);

    if (what < DO_HANG || what > DO_LOCK_UNINTERRUPTIBLY)
        return false;
    return override->until_ns == 0 || now_ns() < override->until_ns;
}

static void hang(const struct override *override)
{
    const uint32_t *signal_word = &state()->node.override_signal;

    for (;;) {
        uint32_t before = __atomic_load_n(signal_word, __ATOMIC_ACQUIRE);
        if (!is_hanging(override))
            return;
        wait_for_change(signal_word, before, LOOK_AGAIN_MS);
    }
}

/* A parent waits for its vfork child in state D: the only way to get there without a driver of one's own. */
static void hang_uninterruptibly(const struct override *override)
{
    pid_t parent = getpid();

    while (is_hanging(override)) {
        pid_t child = vfork();
        if (child == 0) {
            while (is_hanging(override) && getppid() == parent)
                sleep_ms(LOOK_AGAIN_MS / 5);
            _exit(0);
        }
        if (child < 0) {
            hang(override);
            return;
        }
        waitpid(child, NULL, 0);
    }
}

/* A lock inside the driver goes with the process that held it. */
static bool is_held(const struct override *override)
{
    int owner = __atomic_load_n(&override->lock_process, __ATOMIC_ACQUIRE);

    return owner != 0 && (kill(owner, 0) == 0 || errno != ESRCH);
}

/*
 * A call that times out inside the driver with the lock of all devices held: others wait, it answers an error in
 * the end. So does a remote procedure call to a GPU's GSP (_kgspRpcRecvPoll in kernel_gsp.c of NVIDIA's open modules).
 */
static bool is_timing_out(const struct override *override)
{
    return __atomic_load_n(&override->what, __ATOMIC_ACQUIRE) == DO_TIME_OUT;
}

static void await_time_out(const struct override *override)
{
    while (is_timing_out(override) && is_held(override) && override->lock_library == this_library.id)
        sleep_ms(LOOK_AGAIN_MS / 5);
}

static int time_out(struct override *override)
{
    int none = 0;
    uint64_t until_ns;

    while (!__atomic_compare_exchange_n(&override->lock_process, &none, getpid(), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
        await_time_out(override);
        /* One that ended meanwhile has left its number. */
        if (!is_held(override))
            __atomic_store_n(&override->lock_process, 0, __ATOMIC_RELEASE);
        none = 0;
    }
    override->lock_library = this_library.id;
    until_ns = now_ns() + (uint64_t)override->delay_ms * 1000000u;
    while (is_timing_out(override) && now_ns() < until_ns)
        sleep_ms(LOOK_AGAIN_MS / 5);
    __atomic_store_n(&override->lock_process, 0, __ATOMIC_RELEASE);
    return override->answer;
}

static bool is_lock(int what) { return what == DO_LOCK || what == DO_LOCK_UNINTERRUPTIBLY; }

static void do_hang(struct override *override, int what)
{
    if (what == DO_HANG_UNINTERRUPTIBLY || what == DO_LOCK_UNINTERRUPTIBLY)
        hang_uninterruptibly(override);
    else
        hang(override);
}

static void crash(int signal_number)
{
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    _exit(128 + signal_number);
}

static int apply(struct override *override, const char *function, int chip)
{
    int what = __atomic_load_n(&override->what, __ATOMIC_ACQUIRE);

    if (what == DO_NOTHING)
        return 0;
    if (is_lock(what) && is_held(override)) {
        if (override->lock_library == this_library.id)
            do_hang(override, what);
        return 0;
    }
    if (what == DO_TIME_OUT)
        await_time_out(override);
    if (!fits(override, function, chip) || !take(override))
        return 0;
    __atomic_fetch_add(&override->matches, 1, __ATOMIC_RELAXED);
    switch (what) {
    case DO_ANSWER:
        return override->answer;
    case DO_DELAY:
        sleep_ms(override->delay_ms);
        return 0;
    case DO_TIME_OUT:
        return time_out(override);
    case DO_CRASH:
        crash(override->answer);
        return 0;
    default:
        if (is_lock(what)) {
            override->lock_library = this_library.id;
            __atomic_store_n(&override->lock_process, getpid(), __ATOMIC_RELEASE);
        }
        do_hang(override, what);
        return 0;
    }
}

int answered(const char *name, int answer)
{
    struct function *function = answer == 0 || state() == NULL ? NULL : function_of(name);

    if (function != NULL)
        __atomic_fetch_add(&function->refused, 1, __ATOMIC_RELAXED);
    return answer;
}

int overridden(const char *name, int chip)
{
    struct state *node = state();
    int answer = 0;

    for (int index = 0; index < node->node.override_count && answer == 0; index++)
        answer = apply(&node->overrides[index], name, chip);
    return answer;
}

int enter(const char *name, int chip)
{
    struct state *node = state();
    struct function *function;
    uint64_t *call;
    int answer = 0;

    if (node == NULL)
        return this_library.no_driver;
    call = begin_call(chip);
    function = function_of(name);
    if (function != NULL && chip < CHIPS)
        __atomic_fetch_add(&function->calls[chip + 1], 1, __ATOMIC_RELAXED);
    answer = overridden(name, chip);
    end_call(call);
    if (answer == 0 && function != NULL && function->unsupported)
        answer = this_library.unsupported;
    return answer;
}
