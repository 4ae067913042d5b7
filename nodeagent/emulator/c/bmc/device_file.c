/*
 * open, ioctl and close of /dev/ipmi0, as the kernel's driver ipmi_devintf does them; all other files are the
 * kernel's own. The descriptor is a real one, which is readable when an answer lies there.
 */
#define _GNU_SOURCE
#include "bmc.h"
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/ipmi.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { FILES = 16, ANSWERS = 64 };

struct answer {
    uint64_t due_ns;
    long number;
    uint8_t netfn, command;
    size_t length;
    uint8_t data[MAX_MESSAGE_BYTES];
};

struct file {
    int descriptor; /* a timer; 0: the place is free */
    int count;
    struct answer answers[ANSWERS];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct file files[FILES];

static int refuse(int number)
{
    errno = number;
    return -1;
}

static struct file *file_of(int descriptor)
{
    for (int place = 0; descriptor > 0 && place < FILES; place++) {
        if (files[place].descriptor == descriptor)
            return &files[place];
    }
    return NULL;
}

/* Readable from the time on when the first answer is there. */
static void set_timer(const struct file *file)
{
    struct itimerspec when = {0};

    if (file->count > 0) {
        uint64_t due_ns = file->answers[0].due_ns;
        when.it_value = (struct timespec){.tv_sec = (time_t)(due_ns / 1000000000u),
                                          .tv_nsec = (long)(due_ns % 1000000000u)};
    }
    timerfd_settime(file->descriptor, TFD_TIMER_ABSTIME, &when, NULL);
}

static int open_bmc(void)
{
    int refused = enter("open", -1);

    if (refused != 0)
        return refuse(refused < 0 ? -refused : refused);
    if (!state()->node.bmc_present)
        return refuse(ENOENT);
    pthread_mutex_lock(&mutex);
    struct file *file = NULL;
    for (int place = 0; place < FILES && file == NULL; place++)
        file = files[place].descriptor == 0 ? &files[place] : NULL;
    if (file != NULL) {
        int descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        *file = (struct file){.descriptor = descriptor > 0 ? descriptor : 0};
    }
    int opened = file == NULL || file->descriptor == 0 ? refuse(EMFILE) : file->descriptor;
    pthread_mutex_unlock(&mutex);
    return opened;
}

EXPORTED int open(const char *path, int flags, ...)
{
    const char *slash = strrchr(path, '/');
    mode_t mode = 0;

    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if (slash != NULL && strcmp(slash, "/ipmi0") == 0)
        return open_bmc();
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORTED int close(int descriptor)
{
    pthread_mutex_lock(&mutex);
    struct file *file = file_of(descriptor);
    if (file != NULL)
        file->descriptor = 0;
    pthread_mutex_unlock(&mutex);
    return (int)syscall(SYS_close, descriptor);
}

/* --- requests --- */

static void queue_answer(struct file *file, const struct ipmi_req *request)
{
    const struct node *node = &state()->node;
    struct answer *answer = &file->answers[file->count];

    int mode = take_mode();
    if (mode == BMC_SILENT || file->count == ANSWERS)
        return;
    answer->number = request->msgid;
    answer->netfn = request->msg.netfn | 1;
    answer->command = request->msg.cmd;
    answer->length = answer_request(mode, request->msg.netfn, request->msg.cmd, request->msg.data,
                                    request->msg.data == NULL ? 0 : request->msg.data_len, answer->data);
    /* The BMC does one thing after the other. A timer for now is one that is off. */
    answer->due_ns = now_ns() + (uint64_t)node->bmc_delay_ms * 1000000u;
    if (file->count > 0 && file->answers[file->count - 1].due_ns > answer->due_ns)
        answer->due_ns = file->answers[file->count - 1].due_ns;
    if (file->count++ == 0)
        set_timer(file);
}

static int send_request(struct file *file, const struct ipmi_req *request)
{
    const struct ipmi_system_interface_addr *address = (const void *)request->addr;

    if (request->addr_len > sizeof(struct ipmi_addr) || request->addr_len < sizeof *address)
        return refuse(EINVAL);
    if (address->addr_type != IPMI_SYSTEM_INTERFACE_ADDR_TYPE || address->channel != IPMI_BMC_CHANNEL)
        return refuse(EINVAL);
    if (request->msg.data != NULL && request->msg.data_len > MAX_MESSAGE_BYTES)
        return refuse(EMSGSIZE);
    queue_answer(file, request);
    return 0;
}

/* --- answers --- */

static int receive(struct file *file, struct ipmi_recv *received, bool may_cut_off)
{
    const struct ipmi_system_interface_addr address = {
        .addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE,
        .channel = IPMI_BMC_CHANNEL,
    };
    const struct answer *answer = &file->answers[0];

    if (file->count == 0 || answer->due_ns > now_ns())
        return refuse(EAGAIN);
    if (received->addr_len < sizeof address)
        return refuse(EINVAL);
    bool is_short = received->msg.data_len < answer->length;
    if (is_short && !may_cut_off)
        return refuse(EMSGSIZE);
    memcpy(received->addr, &address, sizeof address);
    received->addr_len = sizeof address;
    received->recv_type = IPMI_RESPONSE_RECV_TYPE;
    received->msgid = answer->number;
    received->msg.netfn = answer->netfn;
    received->msg.cmd = answer->command;
    if (!is_short)
        received->msg.data_len = (unsigned short)answer->length;
    memcpy(received->msg.data, answer->data, received->msg.data_len);
    memmove(&file->answers[0], &file->answers[1], sizeof *answer * (size_t)--file->count);
    set_timer(file);
    return is_short ? refuse(EMSGSIZE) : 0;
}

static int call(struct file *file, unsigned long request, void *argument)
{
    switch (request) {
    case IPMICTL_SEND_COMMAND:
        return send_request(file, argument);
    case IPMICTL_RECEIVE_MSG:
        return receive(file, argument, false);
    case IPMICTL_RECEIVE_MSG_TRUNC:
        return receive(file, argument, true);
    default:
        return refuse(ENOTTY);
    }
}

EXPORTED int ioctl(int descriptor, unsigned long request, ...)
{
    va_list rest;

    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    pthread_mutex_lock(&mutex);
    bool is_bmc = file_of(descriptor) != NULL;
    pthread_mutex_unlock(&mutex);
    if (!is_bmc)
        return (int)syscall(SYS_ioctl, descriptor, request, argument);
    int refused = enter("ioctl", -1);
    if (refused != 0)
        return refuse(refused < 0 ? -refused : refused);
    pthread_mutex_lock(&mutex);
    struct file *file = file_of(descriptor);
    int ended = file == NULL ? refuse(EBADF) : call(file, request, argument);
    pthread_mutex_unlock(&mutex);
    return ended;
}
