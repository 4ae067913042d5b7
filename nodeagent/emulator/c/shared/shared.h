/*
 * The emulated node as every library sees it: one file, mapped by all, that lies next to the library itself.
 * Nothing here knows a vendor's interface. The fields are listed in fields.def.
 */
#ifndef EMULATOR_SHARED_H
#define EMULATOR_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
#define LIMIT(name, value) name = (value),
#include "fields.def"
};

struct node {
#define NODE_FIELD(type, name) type name;
#define NODE_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct chip {
#define CHIP_FIELD(type, name) type name;
#define CHIP_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct override {
#define OVERRIDE_FIELD(type, name) type name;
#define OVERRIDE_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct function {
#define FUNCTION_FIELD(type, name) type name;
#define FUNCTION_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct standing {
#define STANDING_FIELD(type, name) type name;
#define STANDING_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct fabric {
#define FABRIC_FIELD(type, name) type name;
#define FABRIC_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct alarm {
#define ALARM_FIELD(type, name) type name;
#define ALARM_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct sel {
#define SEL_FIELD(type, name) type name;
#define SEL_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct event {
#define EVENT_FIELD(type, name) type name;
#define EVENT_ARRAY(type, name, count) type name[count];
#include "fields.def"
};

struct state {
    struct node node;
    struct chip chips[CHIPS];
    struct standing standing[CHIPS][CODES];
    struct fabric fabric[FABRIC_FAULTS];
    struct alarm alarms[ALARMS];
    struct sel sel[SEL_RECORDS];
    struct override overrides[OVERRIDES];
    struct function functions[FUNCTIONS];
    struct event events[EVENTS];
};

/* Which library this is, and two answers that each gives by a number of its own; in its library.c. */
struct library {
    int id;          /* LIBRARY_DCMI and so on */
    int unsupported; /* this product has no such call */
    int no_driver;   /* the node cannot be reached at all */
};
extern const struct library this_library;

/* The mapped node, NULL when there is none next to the library or it is of another build. */
struct state *state(void);

/*
 * To be called first in every exported function. Counts the call, then does what an override sets: sleeps while
 * it hangs, ends the process when it is to crash. chip is an index into state()->chips, or -1.
 * Returns 0 to go on, else what the function is to answer.
 */
int enter(const char *function, int chip);

/* The same for what is no function and is not counted, such as one link of a field. */
int overridden(const char *name, int chip);

/* The answer to a call about a chip, counted where it is an error. */
int answered(const char *function, int answer);

/* A call about a chip (-1: about none) is under way until it ends. is_called: one of any process is, about this chip. */
uint64_t *begin_call(int chip);
void end_call(uint64_t *call);
bool is_called(int chip);

/* The lock over what several processes write: codes, events. Held for microseconds. */
void lock_state(void);
void unlock_state(void);

/* How many processes hold the chip, those that have ended left out of its list. The caller holds the lock. */
int processes_on(struct chip *chip);
void remove_process(struct chip *chip, int place);

/* Of the file, of this process alone: for locks on its bytes. */
int state_descriptor(void);

uint64_t now_ns(void);
uint64_t now_ms(void);
void sleep_ms(long milliseconds);

/* Waits until *field has changed, at most so long (-1: for ever). */
void wait_for_change(const uint32_t *field, uint32_t before, long timeout_ms);
void wake(const uint32_t *field);

/* Appends an event for subscribers; number, serials and time are filled in. The caller holds the lock. */
void post_event(struct event *event);

/* Copies the event of that number; false when it is not in the ring (any more). */
bool read_event(uint64_t number, struct event *event);
uint64_t newest_event(void);

/* How a library hears of events: look() before every round, next_look_ms() (-1: never) for one without an event. */
struct listener {
    void (*look)(void);
    long (*next_look_ms)(void);
    void (*on_event)(const struct event *event);
};

/* Starts a thread that receives every event from now on. False when there can be none. */
bool start_listener(const struct listener *listener);

/* Copies a text into a buffer of so many bytes, cut off; without its final NUL when the node is set to lie so. */
void put_text(char *buffer, size_t bytes, const char *text);

#endif
