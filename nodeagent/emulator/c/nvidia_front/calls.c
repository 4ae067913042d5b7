/* Each function of NVML: passed on to the library behind, with what the lines change of its answer. */
#include "front.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SLICE_MS = 50, XID_EVENT = 0x8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t handles[MAX_GPUS];

void note_handle(int gpu, uintptr_t handle)
{
    pthread_mutex_lock(&mutex);
    if (gpu >= 0 && gpu < MAX_GPUS)
        handles[gpu] = handle;
    pthread_mutex_unlock(&mutex);
}

uintptr_t handle_of(int gpu)
{
    pthread_mutex_lock(&mutex);
    uintptr_t handle = gpu >= 0 && gpu < MAX_GPUS ? handles[gpu] : 0;
    pthread_mutex_unlock(&mutex);
    function ask = behind("nvmlDeviceGetHandleByIndex_v2");
    if (handle == 0 && ask != NULL)
        ask((uintptr_t)gpu, (uintptr_t)&handle, 0, 0, 0, 0, 0, 0);
    return handle;
}

static bool begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

static int index_of(uintptr_t handle)
{
    int found = ANY;

    pthread_mutex_lock(&mutex);
    for (int gpu = 0; gpu < MAX_GPUS && found == ANY; gpu++)
        if (handles[gpu] == handle && handle != 0)
            found = gpu;
    pthread_mutex_unlock(&mutex);
    function ask = behind("nvmlDeviceGetIndex");
    uint32_t index = 0;
    if (found == ANY && ask != NULL && (int)ask(handle, (uintptr_t)&index, 0, 0, 0, 0, 0, 0) == SUCCESS)
        found = (int)index;
    return found;
}

int gpu_of(const struct call *call)
{
    if (begins(call->name, "nvmlDeviceGetHandleByIndex"))
        return (int)(uint32_t)call->word[0];
    if (!begins(call->name, "nvmlDevice") || begins(call->name, "nvmlDeviceGetHandle") ||
        begins(call->name, "nvmlDeviceGetCount") || begins(call->name, "nvmlDeviceDiscover"))
        return ANY;
    return index_of(call->word[0]);
}

static bool fits(const struct line *line, const struct call *call, int gpu)
{
    size_t length = strlen(line->function);

    if (line->gpu != ANY && line->gpu != gpu)
        return false;
    if (length > 0 && line->function[length - 1] == '*')
        return strncmp(line->function, call->name, length - 1) == 0;
    return strcmp(line->function, call->name) == 0;
}

/* The first line of this kind that is about the call. */
static bool find_line(enum kind kind, const struct call *call, int gpu, struct line *found)
{
    const struct lines *lines = hold_lines();
    bool is_there = false;

    for (int place = 0; place < lines->count && !is_there; place++) {
        const struct line *line = &lines->line[place];
        is_there = line->kind == kind && (kind == UNPOPULATED ? line->gpu == ANY || line->gpu == gpu
                                                              : fits(line, call, gpu));
        if (is_there)
            *found = *line;
    }
    release_lines();
    return is_there;
}

static void sleep_ms(int64_t milliseconds)
{
    struct timespec left = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0)
        ;
}

static uintptr_t pass_on(const struct call *call)
{
    const uintptr_t *word = call->word;
    function real = behind(call->name);

    if (real == NULL)
        return behind("nvmlErrorString") == NULL ? LIBRARY_NOT_FOUND : NOT_FOUND_IN_LIBRARY;
    return real(word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]);
}

static void put_value(const struct call *call, int64_t number)
{
    int argument = 0, bytes = 0;

    if (find_value(call->name, &argument, &bytes) && call->word[argument] != 0)
        memcpy((void *)call->word[argument], &number, (size_t)bytes);
}

/* --- fields ---------------------------------------------------------------------------------------------------- */

static void change_field(struct field_value *field, const struct field_value *before, int gpu)
{
    const struct lines *lines = hold_lines();

    for (int place = 0; place < lines->count; place++) {
        const struct line *line = &lines->line[place];
        if (line->kind != FIELD || line->field != field->id || (line->gpu != ANY && line->gpu != gpu))
            continue;
        if (line->scope != ANY && line->scope != (int)field->scope)
            continue;
        if (line->number == AS_IT_CAME) {
            *field = *before;
            break;
        }
        field->answer = (uint32_t)line->number;
        if (line->type != ANY) {
            field->type = (uint32_t)line->type;
            field->value = line->value;
        }
        break;
    }
    release_lines();
}

static uintptr_t ask_fields(const struct call *call, int gpu)
{
    struct field_value *fields = (struct field_value *)call->word[2];
    int count = (int)call->word[1], populated = 0;
    struct line line;

    if (fields == NULL || count < 1 || count > 1024)
        return pass_on(call);
    struct field_value before[1024];
    memcpy(before, fields, (size_t)count * sizeof *fields);
    uintptr_t answer = pass_on(call);
    for (int place = 0; place < count; place++) {
        if ((int)answer != SUCCESS)
            fields[place].answer = (uint32_t)answer;
        change_field(&fields[place], &before[place], gpu);
        populated += fields[place].answer == SUCCESS;
    }
    if (populated > 0)
        return SUCCESS;
    return find_line(UNPOPULATED, call, gpu, &line) ? (uintptr_t)line.number : answer;
}

/* --- events ---------------------------------------------------------------------------------------------------- */

struct event_data {
    uintptr_t device;
    uint64_t type, data;
    uint32_t instances[2];
};

static uint64_t now_ms(void)
{
    struct timespec clock;

    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (uint64_t)clock.tv_sec * 1000u + (uint64_t)clock.tv_nsec / 1000000u;
}

/* In slices, so that an Xid of the lines is soon noticed. */
static uintptr_t wait_for_event(struct call call)
{
    struct event_data *out = (struct event_data *)call.word[1];
    uint64_t until_ms = now_ms() + (uint32_t)call.word[2];
    struct line xid;

    for (;;) {
        hold_lines();
        release_lines();
        if (out != NULL && take_xid(call.word[0], &xid)) {
            *out = (struct event_data){
                .device = handle_of(xid.gpu),
                .type = XID_EVENT,
                .data = (uint64_t)xid.number,
                .instances = {xid.instances[0], xid.instances[1]},
            };
            return SUCCESS;
        }
        uint64_t at_ms = now_ms();
        uint64_t left_ms = at_ms < until_ms ? until_ms - at_ms : 0;
        call.word[2] = left_ms < SLICE_MS ? left_ms : SLICE_MS;
        uintptr_t answer = pass_on(&call);
        if ((int)answer != TIMED_OUT || left_ms <= SLICE_MS)
            return answer;
    }
}

/* --- every call ------------------------------------------------------------------------------------------------- */

static uintptr_t answer_to(const struct call *call, int gpu)
{
    if (strcmp(call->name, "nvmlDeviceGetFieldValues") == 0)
        return ask_fields(call, gpu);
    if (strcmp(call->name, "nvmlEventSetWait_v2") == 0 || strcmp(call->name, "nvmlEventSetWait") == 0)
        return wait_for_event(*call);
    return pass_on(call);
}

/* What later calls are known by. */
static void remember(const struct call *call, int gpu)
{
    if (begins(call->name, "nvmlDeviceGetHandleByIndex") && call->word[1] != 0)
        note_handle(gpu, *(uintptr_t *)call->word[1]);
    else if (strcmp(call->name, "nvmlDeviceRegisterEvents") == 0)
        note_registered(call->word[2], gpu);
    else if (strcmp(call->name, "nvmlEventSetFree") == 0)
        forget_set(call->word[0]);
}

static uintptr_t take(const struct call *call)
{
    int gpu = gpu_of(call);
    struct line line;

    if (find_line(DELAY, call, gpu, &line))
        sleep_ms(line.number);
    if (find_line(ANSWER, call, gpu, &line) && line.number != SUCCESS)
        return (uintptr_t)line.number;
    uintptr_t answer = answer_to(call, gpu);
    if (find_line(PUT, call, gpu, &line)) {
        put_value(call, line.number);
        answer = SUCCESS;
    }
    if ((int)answer == SUCCESS)
        remember(call, gpu);
    return answer;
}

#define FUNCTION(nvml)                                                                                                 \
    EXPORTED uintptr_t nvml(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);   \
    EXPORTED uintptr_t nvml(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, \
                            uintptr_t h)                                                                               \
    {                                                                                                                  \
        return take(&(struct call){.name = #nvml, .word = {a, b, c, d, e, f, g, h}});                                  \
    }
#define VALUE(nvml, argument, bytes) FUNCTION(nvml)
#include "functions.def"

EXPORTED const char *nvmlErrorString(int answer);
EXPORTED const char *nvmlErrorString(int answer)
{
    function real = behind(__func__);

    if (real == NULL)
        return "there is no library behind the front";
    return (const char *)real((uintptr_t)answer, 0, 0, 0, 0, 0, 0, 0);
}

/* For the writer of the lines: "" or what is wrong with them. */
EXPORTED const char *front_check(const char *text);
EXPORTED const char *front_check(const char *text)
{
    static __thread char error[ERROR_BYTES];
    static __thread struct lines lines;

    return parse_lines(text, &lines, error);
}
