#define _GNU_SOURCE
#include "shared.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct listening {
    const struct listener *listener;
    uint64_t delivered;
};

static void deliver_new(struct listening *listening)
{
    struct event event;
    uint64_t newest = newest_event();

    if (newest - listening->delivered > EVENTS)
        listening->delivered = newest - EVENTS;
    while (listening->delivered < newest) {
        if (read_event(++listening->delivered, &event))
            listening->listener->on_event(&event);
    }
}

static void *listen_for_ever(void *argument)
{
    struct listening *listening = argument;
    const uint32_t *signal_word = &state()->node.event_signal;

    for (;;) {
        uint32_t before = __atomic_load_n(signal_word, __ATOMIC_ACQUIRE);
        listening->listener->look();
        deliver_new(listening);
        long left_ms = listening->listener->next_look_ms();
        if (left_ms != 0)
            wait_for_change(signal_word, before, left_ms);
    }
    return NULL;
}

/* Signals are for the program's own threads. */
bool start_listener(const struct listener *listener)
{
    struct listening *listening = malloc(sizeof *listening);
    sigset_t all, before;
    pthread_t thread;

    if (listening == NULL)
        return false;
    *listening = (struct listening){listener, newest_event()};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool failed = pthread_create(&thread, NULL, listen_for_ever, listening) != 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(listening);
        return false;
    }
    pthread_detach(thread);
    return true;
}
