/* Xids of the lines: to the event sets of their GPU, or, as by a library that gets it wrong, to those of others. */
#include "front.h"

#include <pthread.h>
#include <string.h>

enum { SETS = 256, QUEUED = 64 };

struct set {
    uintptr_t handle; /* 0: the place is free */
    uint64_t gpus;    /* a bit for each GPU that is registered */
    int first, count;
    struct line queue[QUEUED];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct set sets[SETS];
static uint64_t sent;

static struct set *find_set(uintptr_t handle)
{
    for (int place = 0; place < SETS; place++)
        if (sets[place].handle == handle)
            return &sets[place];
    return NULL;
}

void note_registered(uintptr_t handle, int gpu)
{
    pthread_mutex_lock(&mutex);
    struct set *set = find_set(handle);
    if (set == NULL && (set = find_set(0)) != NULL)
        *set = (struct set){.handle = handle};
    if (set != NULL && gpu >= 0)
        set->gpus |= UINT64_C(1) << gpu;
    pthread_mutex_unlock(&mutex);
}

void forget_set(uintptr_t handle)
{
    pthread_mutex_lock(&mutex);
    struct set *set = find_set(handle);
    if (set != NULL && handle != 0)
        memset(set, 0, sizeof *set);
    pthread_mutex_unlock(&mutex);
}

static bool is_for(const struct set *set, const struct line *xid)
{
    int gpu = xid->has_set ? xid->set : xid->gpu;

    return set->handle != 0 && (gpu == ANY || (set->gpus >> gpu & 1) != 0);
}

/* What was in the file when it was first read was sent before. */
void queue_xids(const struct lines *lines, bool is_first)
{
    uint64_t newest = sent;

    pthread_mutex_lock(&mutex);
    for (int place = 0; place < lines->count; place++) {
        const struct line *xid = &lines->line[place];
        if (xid->kind != XID || xid->order <= sent)
            continue;
        if (xid->order > newest)
            newest = xid->order;
        for (int each = 0; each < SETS && !is_first; each++)
            if (is_for(&sets[each], xid) && sets[each].count < QUEUED) {
                struct set *set = &sets[each];
                set->queue[(set->first + set->count++) % QUEUED] = *xid;
            }
    }
    sent = newest;
    pthread_mutex_unlock(&mutex);
}

bool take_xid(uintptr_t handle, struct line *xid)
{
    pthread_mutex_lock(&mutex);
    struct set *set = find_set(handle);
    bool has_one = set != NULL && set->count > 0;
    if (has_one) {
        *xid = set->queue[set->first];
        set->first = (set->first + 1) % QUEUED;
        set->count--;
    }
    pthread_mutex_unlock(&mutex);
    return has_one;
}
