/*
 * Event sets: which GPUs and which types of event a caller wants, and waiting for them on the node's ring.
 * An event of ours is: chip, data[0] the type, data[1] its number (the Xid), data[2] and data[3] the instances.
 */
#include "nvml.h"

#include <pthread.h>
#include <string.h>

enum { SETS = 64, SET_MARK = 0x4e57 };

struct event_set {
    bool used;
    uint32_t number;
    uint64_t seen; /* number of the newest event that was looked at */
    uint64_t types[CHIPS];
    uint64_t since[CHIPS]; /* events up to this number were there before the GPU was registered */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct event_set sets[SETS];
static uint32_t next_number;

/* The caller holds the mutex. NULL for whatever is no event set of ours, or freed. */
static struct event_set *find_set(nvmlEventSet_t handle)
{
    uintptr_t bits = (uintptr_t)handle;
    struct event_set *set = &sets[bits % SETS];
    bool is_ours = bits >> 48 == SET_MARK && set->used && set->number == (uint32_t)(bits >> 16);

    return is_ours ? set : NULL;
}

NVML_FUNCTION(nvmlEventSetCreate, nvmlEventSet_t *created)
{
    nvmlReturn_t answer = NVML_ERROR_INSUFFICIENT_RESOURCES;

    IN_SESSION();
    if (created == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&mutex);
    for (uintptr_t place = 0; place < SETS && answer != NVML_SUCCESS; place++) {
        if (sets[place].used)
            continue;
        sets[place] = (struct event_set){.used = true, .number = ++next_number, .seen = newest_event()};
        *created = (nvmlEventSet_t)((uintptr_t)SET_MARK << 48 | (uintptr_t)sets[place].number << 16 | place);
        answer = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&mutex);
    if (answer == NVML_SUCCESS)
        count_event_sets(1);
    return answer;
}

/* Whoever waits has to look again: what it waits for may be gone. */
static void disturb_waiters(void)
{
    uint32_t *signal_word = &state()->node.event_signal;

    __atomic_fetch_add(signal_word, 1, __ATOMIC_SEQ_CST);
    wake(signal_word);
}

void free_event_sets(void)
{
    pthread_mutex_lock(&mutex);
    for (int place = 0; place < SETS; place++)
        sets[place].used = false;
    pthread_mutex_unlock(&mutex);
    disturb_waiters();
}

NVML_FUNCTION(nvmlEventSetFree, nvmlEventSet_t handle)
{
    nvmlReturn_t answer = enter(__func__, -1);

    if (answer != NVML_SUCCESS)
        return answer;
    /* A driver that is gone does not keep anybody from freeing what is the caller's own. */
    if (session_answer() == NVML_ERROR_UNINITIALIZED)
        return NVML_ERROR_UNINITIALIZED;
    pthread_mutex_lock(&mutex);
    struct event_set *set = find_set(handle);
    if (set != NULL)
        set->used = false;
    pthread_mutex_unlock(&mutex);
    if (set == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    count_event_sets(-1);
    disturb_waiters();
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceRegisterEvents, nvmlDevice_t device, uint64_t types, nvmlEventSet_t handle)
{
    ON_GPU(device);
    int slot = slot_of_gpu(gpu);
    nvmlReturn_t answer = NVML_SUCCESS;

    pthread_mutex_lock(&mutex);
    struct event_set *set = find_set(handle);
    if (set == NULL || types == 0)
        answer = NVML_ERROR_INVALID_ARGUMENT;
    else if ((types & ~gpu->gpu_event_types) != 0)
        answer = NVML_ERROR_NOT_SUPPORTED;
    else {
        if (set->types[slot] == 0)
            set->since[slot] = newest_event();
        set->types[slot] |= types;
    }
    pthread_mutex_unlock(&mutex);
    return answer;
}

enum { TO_THEIR_SETS, TO_EVERY_SET, TO_WHO_LOOKS_FIRST };

/* Whether this set, of a library that does not look which GPU is registered, is the one that gets the event. */
static bool is_taken(const struct event *event)
{
    uint64_t *taken = &state()->node.gpu_events_taken;
    uint64_t before = __atomic_load_n(taken, __ATOMIC_ACQUIRE);

    while (before < event->number)
        if (__atomic_compare_exchange_n(taken, &before, event->number, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

static bool is_wanted(const struct event_set *set, const struct event *event)
{
    int to = state()->node.gpu_events_to;

    if (event->library != LIBRARY_NVML || event->chip < 0 || event->chip >= CHIPS)
        return false;
    if (to != TO_THEIR_SETS)
        return to == TO_EVERY_SET || is_taken(event);
    return (set->types[event->chip] & event->data[0]) != 0 && event->number > set->since[event->chip];
}

static bool has_lost_gpu(const struct event_set *set)
{
    if (!state()->node.gpu_wait_answers_lost)
        return false;
    for (int slot = 0; slot < CHIPS; slot++)
        if (set->types[slot] != 0 && gpu_answer(&state()->chips[slot]) == NVML_ERROR_GPU_IS_LOST)
            return true;
    return false;
}

/* The next event of the set, or what else there is to answer at once; TIMEOUT when there is nothing yet. */
static nvmlReturn_t take_event(nvmlEventSet_t handle, struct event *event)
{
    nvmlReturn_t answer = NVML_ERROR_TIMEOUT;

    pthread_mutex_lock(&mutex);
    struct event_set *set = find_set(handle);
    if (set == NULL)
        answer = NVML_ERROR_INVALID_ARGUMENT;
    uint64_t newest = newest_event();
    if (set != NULL && newest > EVENTS && set->seen < newest - EVENTS)
        set->seen = newest - EVENTS;
    while (answer == NVML_ERROR_TIMEOUT && set->seen < newest) {
        set->seen++;
        if (read_event(set->seen, event) && is_wanted(set, event))
            answer = NVML_SUCCESS;
    }
    if (answer == NVML_ERROR_TIMEOUT && has_lost_gpu(set))
        answer = NVML_ERROR_GPU_IS_LOST;
    pthread_mutex_unlock(&mutex);
    return answer;
}

static nvmlReturn_t wait_for_event(nvmlEventSet_t handle, struct event *event, uint32_t timeout_ms)
{
    const uint32_t *signal_word = &state()->node.event_signal;
    uint64_t until_ns = now_ns() + timeout_ms * UINT64_C(1000000);

    for (;;) {
        uint32_t before = __atomic_load_n(signal_word, __ATOMIC_ACQUIRE);
        nvmlReturn_t answer = session_answer();
        if (answer == NVML_SUCCESS)
            answer = take_event(handle, event);
        uint64_t at_ns = now_ns();
        if (answer != NVML_ERROR_TIMEOUT || at_ns >= until_ns)
            return answer;
        wait_for_change(signal_word, before, (long)((until_ns - at_ns + 999999) / 1000000));
    }
}

NVML_FUNCTION(nvmlEventSetWait_v2, nvmlEventSet_t handle, nvmlEventData_t *out, uint32_t timeout_ms)
{
    struct event event;

    IN_SESSION();
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t answer = wait_for_event(handle, &event, timeout_ms);
    if (answer != NVML_SUCCESS)
        return answer;
    *out = (nvmlEventData_t){
        .device = handle_of(event.chip, 0),
        .eventType = event.data[0],
        .eventData = event.data[1],
        .gpuInstanceId = (uint32_t)event.data[2],
        .computeInstanceId = (uint32_t)event.data[3],
    };
    return NVML_SUCCESS;
}
