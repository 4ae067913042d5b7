/* What the files of libdcmi.so share: finding the chip that a call is about, and the form of an exported call. */
#ifndef EMULATOR_DCMI_H
#define EMULATOR_DCMI_H

#include "dcmi_abi.h"
#include "shared.h"

#define EXPORTED __attribute__((visibility("default")))
#define ARGUMENTS(...) __VA_ARGS__

/*
 * Who answers: the host, from what it knows, so that no hang of a chip reaches the call; the library for every chip
 * that it lists, be it removed since, and for the card's MCU, which is always well; the chip in any state; the chip
 * only when it is ready; or that, and also the card's MCU.
 */
enum readiness { HOST_ANSWERS, LISTED_OR_MCU, ANY_STATE, READY_ONLY, READY_OR_MCU };

/*
 * The beginning of a call about one chip. generation 1: card and device; 2: card is ignored, device is the logic id.
 * Answers -8012 for a chip that is not ready where readiness asks for it, -8007 for one that the driver has removed.
 * Returns 0 and the chip, or the answer.
 */
int open_chip(const char *function, int generation, int card_id, int device_id, enum readiness readiness,
              struct chip **chip);

/* The beginning of a call about no chip. */
int open_node(const char *function, int generation);

/* Initialised: what can be found, of what this process was given, is what is listed from now on. */
void find_chips(const bool taken[CHIPS]);

/* Opens the chips, which may make them this process's own. 0, or what the library answers. See dcmi_owner.c. */
int take_chips(bool taken[CHIPS]);
bool has_initialised(void);

/* Whether the driver showed it to this process, healthy or not. */
bool is_registered(const struct chip *chip);
bool is_listed(const struct chip *chip);

/* No server's, but a card that is put into one. */
bool is_on_card(const struct chip *chip);

/* On its card, as this process numbers what it has found. */
int device_id_of(const struct chip *chip);

/* The chip of a card, or -1. */
int find_chip(int card_id, int device_id);
bool is_mcu(int card_id, int device_id);
int mcu_id_of(int card_id);
int find_by_logic_id(int logic_id);
int find_by_physical_id(int physical_id);

/* Whether this chip answers: listed, on its bus, not in the middle of a reset. */
bool is_ready(const struct chip *chip);

/* What calls about a chip answer that does not. */
int unready(const struct chip *chip);

/* Finishes the reset of a chip, or of all chips, if its time is over. */
void settle(struct chip *chip);
void settle_all(void);

/* Kills the users of any chip that are on root's list for it. */
void kill_listed(void);

/* How long until the next reset is over; -1: none is under way. */
long next_end_ms(void);

void fill_event(struct dcmi_event *out, const struct event *event, const struct chip *chip);

/*
 * EXPORTED_CALL(dcmi_get_x, dcmiv2_get_x, READY_ONLY, put_x, (int *x), (x)) exports both generations of a call
 * whose arguments after the chip are the same; put_x gets the chip and the arguments.
 */
#define EXPORTED_V1(name, readiness, put, declared, passed)                                                            \
    EXPORTED int name(int card_id, int device_id, ARGUMENTS declared);                                                 \
    EXPORTED int name(int card_id, int device_id, ARGUMENTS declared)                                                  \
    {                                                                                                                  \
        struct chip *chip;                                                                                             \
        int answer = open_chip(__func__, 1, card_id, device_id, readiness, &chip);                                     \
        return answered(__func__, answer != 0 ? answer : put(chip, ARGUMENTS passed));                                 \
    }

#define EXPORTED_V2(name, readiness, put, declared, passed)                                                            \
    EXPORTED int name(int dev_id, ARGUMENTS declared);                                                                 \
    EXPORTED int name(int dev_id, ARGUMENTS declared)                                                                  \
    {                                                                                                                  \
        struct chip *chip;                                                                                             \
        int answer = open_chip(__func__, 2, 0, dev_id, readiness, &chip);                                              \
        return answered(__func__, answer != 0 ? answer : put(chip, ARGUMENTS passed));                                 \
    }

#define EXPORTED_CALL(v1, v2, readiness, put, declared, passed)                                                        \
    EXPORTED_V1(v1, readiness, put, declared, passed)                                          \
    EXPORTED_V2(v2, readiness, put, declared, passed)

/* The same for a call that has no arguments after the chip. */
#define EXPORTED_BARE(v1, v2, readiness, put)                                                                          \
    EXPORTED int v1(int card_id, int device_id);                                                                       \
    EXPORTED int v1(int card_id, int device_id)                                                                        \
    {                                                                                                                  \
        struct chip *chip;                                                                                             \
        int answer = open_chip(__func__, 1, card_id, device_id, readiness, &chip);                                     \
        return answered(__func__, answer != 0 ? answer : put(chip));                                                   \
    }                                                                                                                  \
    EXPORTED int v2(int dev_id);                                                                                       \
    EXPORTED int v2(int dev_id)                                                                                        \
    {                                                                                                                  \
        struct chip *chip;                                                                                             \
        int answer = open_chip(__func__, 2, 0, dev_id, readiness, &chip);                                              \
        return answered(__func__, answer != 0 ? answer : put(chip));                                                   \
    }

#endif
