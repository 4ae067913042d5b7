/*
 * A library in front of another libnvidia-ml.so.1, which lies next to it by name: it passes every call on and changes
 * what the lines of a file name. The lines are read again when the file changes, while programs use the library.
 */
#ifndef NVIDIA_FRONT_H
#define NVIDIA_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SUCCESS = 0, NOT_FOUND_IN_LIBRARY = 13, LIBRARY_NOT_FOUND = 12, TIMED_OUT = 10, AS_IT_CAME = -1, ANY = -1 };
enum { MAX_LINES = 512, MAX_NAME = 64, MAX_GPUS = 64, PATH_BYTES = 4096, ERROR_BYTES = 512 };

enum kind { ANSWER, PUT, DELAY, FIELD, UNPOPULATED, XID };

/* One line. number: the code, value, milliseconds or Xid. gpu: ANY, or one by its index. */
struct line {
    enum kind kind;
    char function[MAX_NAME]; /* exact, or with a * at its end */
    int gpu;
    int64_t number;
    uint32_t field;
    int scope;
    int type; /* of a field's value; ANY: it has none */
    uint64_t value;
    uint64_t order; /* of an Xid: one with a greater number than before is sent */
    uint32_t instances[2];
    bool has_set; /* of an Xid: it goes to the sets of the GPU `set`, ANY: to all */
    int set;
};

struct lines {
    int count;
    struct line line[MAX_LINES];
};

/* An entry of nvmlDeviceGetFieldValues. */
struct field_value {
    uint32_t id, scope;
    int64_t timestamp, latency;
    uint32_t type, answer;
    uint64_t value;
};

/* What is passed on with a call: up to eight words, none of them a floating-point number. */
struct call {
    const char *name;
    uintptr_t word[8];
};

typedef uintptr_t (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* Reads a text into lines. "" or what is wrong, with the number of its line and what would be right. */
const char *parse_lines(const char *text, struct lines *lines, char error[ERROR_BYTES]);

/* Where a function leaves its value: the number of the argument and its bytes. False: it has no single one. */
bool find_value(const char *name, int *argument, int *bytes);
bool is_passed_on(const char *pattern);

/* The lines in force are those of the file; held while they are looked at. */
const struct lines *hold_lines(void);
void release_lines(void);

/* The same function of the library behind; NULL where it has none. */
function behind(const char *name);
const char *own_folder(void);

/* The index of the GPU that a call is about, ANY: of none. */
int gpu_of(const struct call *call);
void note_handle(int gpu, uintptr_t handle);
uintptr_t handle_of(int gpu);

/* Event sets, and the Xids of the lines. */
void note_registered(uintptr_t set, int gpu);
void forget_set(uintptr_t set);
void queue_xids(const struct lines *lines, bool is_first);
bool take_xid(uintptr_t set, struct line *xid);

#endif
