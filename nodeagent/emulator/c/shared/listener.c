#define _GNU_SOURCE
#include "shared.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct hearing {
    const struct listener *listener;
    uint64_t told;
};

static void tell_new(struct hearing *hearing)
{
    struct event event;
    uint64_t newest = newest_event();

    if (newest - hearing->told > EVENTS)
        hearing->told = newest - EVENTS;
    while (hearing->told < newest) {
        if (read_event(++hearing->told, &event))
            hearing->listener->tell(&event);
    }
}

static void *listen_for_ever(void *argument)
{
    struct hearing *hearing = argument;
    const uint32_t *signal_word = &state()->node.event_signal;

    for (;;) {
        uint32_t before = __atomic_load_n(signal_word, __ATOMIC_ACQUIRE);
        hearing->listener->look();
        tell_new(hearing);
        long left_ms = hearing->listener->next_look_ms();
        if (left_ms != 0)
            wait_for_change(signal_word, before, left_ms);
    }
    return NULL;
}

/* Signals are for the program's own threads. */
bool start_listener(const struct listener *listener)
{
    struct hearing *hearing = malloc(sizeof *hearing);
    sigset_t all, before;
    pthread_t thread;

    if (hearing == NULL)
        return false;
    *hearing = (struct hearing){listener, newest_event()};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool failed = pthread_create(&thread, NULL, listen_for_ever, hearing) != 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(hearing);
        return false;
    }
    pthread_detach(thread);
    return true;
}
