/*
 * The processes that hold a chip. A real one lets go of it when its last thread has ended, before anybody has waited
 * for it; a made up one stays until it is taken away.
 */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_ended(pid_t process)
{
    int descriptor = (int)syscall(SYS_pidfd_open, process, 0);

    if (descriptor < 0)
        return errno == ESRCH;
    struct pollfd ended = {.fd = descriptor, .events = POLLIN};
    bool found = poll(&ended, 1, 0) == 1;
    close(descriptor);
    return found;
}

void remove_process(struct chip *chip, int place)
{
    for (int next = place + 1; next < chip->process_count; next++, place++) {
        chip->process_ids[place] = chip->process_ids[next];
        chip->process_memory_bytes[place] = chip->process_memory_bytes[next];
        chip->process_is_real[place] = chip->process_is_real[next];
    }
    chip->process_count = place;
}

int processes_on(struct chip *chip)
{
    for (int place = chip->process_count - 1; place >= 0; place--) {
        if (chip->process_is_real[place] && has_ended(chip->process_ids[place]))
            remove_process(chip, place);
    }
    return chip->process_count;
}
