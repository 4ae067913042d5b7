/*
 * One process's session with the driver: how often it was opened, which GPUs it found, which handles it gave out.
 * What it holds is also written into the node, where a reset looks for processes that block it.
 */
#include "nvml.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A handle: this mark, the session's number, the MIG device, the chip. Never an address. */
enum { HANDLE_MARK = 0x4e56 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint32_t inits;
    uint32_t number;
    uint32_t driver_load;
    int client;
    int count;
    int slots[CHIPS];
    bool given[CHIPS][GPU_MIG_DEVICES + 1];
} session = {.client = -1};
static char loaded_version[NAME];
static pthread_mutex_t discovery = PTHREAD_MUTEX_INITIALIZER;

/* A library stays the one that was loaded, whatever is installed over it later. */
__attribute__((constructor)) static void remember_version(void)
{
    if (state() != NULL)
        snprintf(loaded_version, sizeof loaded_version, "%s", state()->node.gpu_library_version);
}

const char *library_version(void) { return loaded_version; }

static bool is_free(int pid) { return pid == 0 || pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH); }

/* The place of this process among the node's clients; -1 when there are too many to count. */
static int take_client(struct node *node)
{
    int found = -1;

    lock_state();
    for (int index = 0; index < GPU_CLIENTS && found < 0; index++)
        if (is_free(node->gpu_client_pids[index]))
            found = index;
    if (found >= 0) {
        node->gpu_client_handles[found] = 0;
        node->gpu_client_event_sets[found] = 0;
        node->gpu_client_inits[found] = 0;
        node->gpu_client_pids[found] = getpid();
    }
    unlock_state();
    return found;
}

static void count_inits(struct node *node)
{
    if (session.client < 0)
        return;
    node->gpu_client_inits[session.client] = session.inits;
    if (session.inits == 0) {
        node->gpu_client_handles[session.client] = 0;
        node->gpu_client_event_sets[session.client] = 0;
        node->gpu_client_pids[session.client] = 0;
        session.client = -1;
    }
}

void count_event_sets(int change)
{
    pthread_mutex_lock(&mutex);
    if (session.client >= 0)
        state()->node.gpu_client_event_sets[session.client] += (uint32_t)change;
    pthread_mutex_unlock(&mutex);
}

static void begin_session(const struct state *found)
{
    session.number++;
    session.driver_load = found->node.gpu_driver_load;
    session.count = 0;
    memset(session.given, 0, sizeof session.given);
    for (int slot = 0; slot < found->node.chip_count; slot++)
        if (found->chips[slot].kind == KIND_GPU && found->chips[slot].present)
            session.slots[session.count++] = slot;
    session.client = take_client(&state()->node);
}

static nvmlReturn_t open_driver(const char *function)
{
    nvmlReturn_t answer = enter(function, -1);

    if (answer != NVML_SUCCESS)
        return answer;
    const struct node *node = &state()->node;
    if (!node->gpu_driver_loaded)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (strcmp(node->gpu_driver_version, loaded_version) != 0)
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    pthread_mutex_lock(&mutex);
    if (session.inits == 0)
        begin_session(state());
    session.inits++;
    count_inits(&state()->node);
    pthread_mutex_unlock(&mutex);
    return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlInitWithFlags, uint32_t flags)
{
    if ((flags & ~(uint32_t)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH)) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    return open_driver(__func__);
}

NVML_FUNCTION(nvmlInit_v2, void) { return open_driver(__func__); }

bool close_session(bool *is_last)
{
    pthread_mutex_lock(&mutex);
    bool was_open = session.inits > 0;
    if (was_open) {
        session.inits--;
        count_inits(&state()->node);
    }
    *is_last = was_open && session.inits == 0;
    pthread_mutex_unlock(&mutex);
    return was_open;
}

nvmlReturn_t session_answer(void)
{
    const struct node *node = &state()->node;

    if (__atomic_load_n(&session.inits, __ATOMIC_ACQUIRE) == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (!node->gpu_driver_loaded)
        return node->gpu_unloaded_answer;
    if (node->gpu_driver_load == session.driver_load)
        return NVML_SUCCESS;
    bool is_same = strcmp(node->gpu_driver_version, loaded_version) == 0;
    return is_same ? (nvmlReturn_t)node->gpu_reloaded_answer : NVML_ERROR_LIB_RM_VERSION_MISMATCH;
}

nvmlReturn_t gpu_answer(const struct chip *gpu)
{
    if (!gpu->present || !gpu->ready)
        return NVML_ERROR_GPU_IS_LOST;
    return gpu->gpu_answer;
}

/*
 * The first handle of a GPU opens its device file, and where nothing keeps the GPU initialised the kernel module
 * does so then: rm_init_adapter() in osapi.c of NVIDIA's open modules, under the lock of all GPUs. So one GPU is
 * initialised after the other, and every other call waits meanwhile. It begins again with each process.
 */
static void discover(const struct chip *gpu, const bool *is_given)
{
    pthread_mutex_lock(&discovery);
    if (!*is_given && gpu->gpu_persistence_mode == 0)
        sleep_ms(gpu->gpu_discovery_ms);
    pthread_mutex_unlock(&discovery);
}

static void await_discovery(void)
{
    pthread_mutex_lock(&discovery);
    pthread_mutex_unlock(&discovery);
}

nvmlReturn_t open_session(const char *function)
{
    nvmlReturn_t answer = enter(function, -1);

    await_discovery();
    return answer != NVML_SUCCESS ? answer : session_answer();
}

nvmlReturn_t open_gpu(const char *function, nvmlDevice_t device, struct chip **gpu, int *mig)
{
    int slot = -1;
    bool is_known = read_handle(device, &slot, mig);
    nvmlReturn_t answer = enter(function, slot);

    await_discovery();
    if (answer == NVML_SUCCESS)
        answer = session_answer();
    if (answer != NVML_SUCCESS)
        return answer;
    if (!is_known)
        return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = &state()->chips[slot];
    return gpu_answer(*gpu);
}

int session_gpus(int slots[CHIPS])
{
    pthread_mutex_lock(&mutex);
    int count = session.count;
    memcpy(slots, session.slots, sizeof session.slots);
    pthread_mutex_unlock(&mutex);
    return count;
}

int slot_of_gpu(const struct chip *gpu) { return (int)(gpu - state()->chips); }

nvmlDevice_t handle_of(int slot, int mig)
{
    return (nvmlDevice_t)((uintptr_t)HANDLE_MARK << 48 | (uintptr_t)session.number << 16 | (uintptr_t)mig << 8 |
                          (uintptr_t)slot);
}

nvmlReturn_t give_handle(int slot, int mig, nvmlDevice_t *device)
{
    nvmlReturn_t answer = gpu_answer(&state()->chips[slot]);

    if (answer != NVML_SUCCESS)
        return answer;
    discover(&state()->chips[slot], &session.given[slot][mig]);
    pthread_mutex_lock(&mutex);
    if (!session.given[slot][mig] && session.client >= 0)
        state()->node.gpu_client_handles[session.client]++;
    session.given[slot][mig] = true;
    *device = handle_of(slot, mig);
    pthread_mutex_unlock(&mutex);
    return NVML_SUCCESS;
}

bool read_handle(nvmlDevice_t device, int *slot, int *mig)
{
    uintptr_t bits = (uintptr_t)device;
    unsigned chip = bits & 0xff;
    unsigned part = bits >> 8 & 0xff;
    bool is_ours = bits >> 48 == HANDLE_MARK && (uint32_t)(bits >> 16) == session.number;

    if (!is_ours || chip >= CHIPS || part > GPU_MIG_DEVICES || !session.given[chip][part])
        return false;
    *slot = (int)chip;
    *mig = (int)part;
    return true;
}
