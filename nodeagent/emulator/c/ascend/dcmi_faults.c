/* Health, and the active codes. */
#include "dcmi.h"

#include <stdio.h>
#include <string.h>

static const struct standing *standing_of(const struct chip *chip)
{
    return state()->standing[chip - state()->chips];
}

static unsigned int health_of(const struct chip *chip)
{
    unsigned int worst = 0;

    if (chip->health_lie != NO_LIE)
        return (unsigned int)chip->health_lie;
    for (int index = 0; index < chip->code_count; index++) {
        if (standing_of(chip)[index].severity > worst)
            worst = standing_of(chip)[index].severity;
    }
    return worst;
}

/*
 * Of a chip that the driver has removed the answer is that it is not there, and 0 answered (dsmi_get_device_health);
 * but of a 950 the library asks the chip's MCU too, and refuses (dcmi_get_device_health_950).
 */
static int put_health(const struct chip *chip, unsigned int *health)
{
    enum { NOT_THERE = 0xffffffff };

    if (health == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    if (!is_ready(chip) && (chip->present || state()->node.generation == 2))
        return unready(chip);
    *health = chip->present ? health_of(chip) : NOT_THERE;
    return DCMI_OK;
}

/* For how many active codes there is room. */
static int fitting(const struct chip *chip, int room) { return chip->code_count < room ? chip->code_count : room; }

/* The vendor collects so many at most. */
enum { COLLECTED = 128 };

/* Each code once, on however many parts of the chip it is active. */
static int collect(const struct chip *chip, unsigned int codes[COLLECTED])
{
    int count = 0;

    for (int index = 0; index < chip->code_count && count < COLLECTED; index++) {
        int before = 0;
        while (before < count && codes[before] != standing_of(chip)[index].code)
            before++;
        if (before == count)
            codes[count++] = standing_of(chip)[index].code;
    }
    return count;
}

/* A caller with less room than they need is refused. */
static int put_codes(const struct chip *chip, int *error_count, unsigned int *error_code_list, unsigned int list_len)
{
    unsigned int codes[COLLECTED];

    if (error_count == NULL || error_code_list == NULL || list_len == 0)
        return DCMI_ERR_INVALID_PARAMETER;
    if (!is_ready(chip))
        return DCMI_ERR_INNER_ERR;
    lock_state();
    int written = collect(chip, codes);
    bool fits = (unsigned int)written <= list_len;
    if (fits)
        memcpy(error_code_list, codes, (size_t)written * sizeof *codes);
    if (fits)
        *error_count = chip->code_count_lie == NO_LIE ? written : chip->code_count_lie;
    unlock_state();
    return fits ? DCMI_OK : DCMI_ERR_INVALID_PARAMETER;
}

/* The vendor takes any buffer of 48 bytes and more, and fills 256 at most. */
static int put_code_text(const struct chip *chip, unsigned int error_code, unsigned char *text, int buf_size)
{
    char name[TEXT];

    if (text == NULL || buf_size < 48)
        return DCMI_ERR_INVALID_PARAMETER;
    snprintf(name, sizeof name, "%08X", error_code);
    lock_state();
    for (int index = 0; index < chip->code_count; index++) {
        if (standing_of(chip)[index].code == error_code)
            snprintf(name, sizeof name, "%s", standing_of(chip)[index].name);
    }
    unlock_state();
    put_text((char *)text, (size_t)(buf_size < TEXT ? buf_size : TEXT), name);
    return DCMI_OK;
}

static void put_one(struct dcmi_event *out, const struct chip *chip, const struct standing *standing)
{
    struct event event = {
        .code = standing->code,
        .part = standing->part,
        .severity = standing->severity,
        .assertion = DCMI_EVENT_OCCUR,
        .serial = standing->serial,
        .notify_serial = standing->serial,
        .raised_ms = standing->raised_ms,
        .device_id_lie = NO_LIE,
        .unterminated = state()->node.unterminated,
    };

    memcpy(event.name, standing->name, sizeof standing->name);
    fill_event(out, &event, chip);
}

/* One for each part of the chip on which a code is active (dms_event_get_current_fault_event of dms_event.c). */
static int put_standing(const struct chip *chip, struct dcmi_event *events, int room, int *count)
{
    if (events == NULL || count == NULL || room <= 0 || !chip->present)
        return DCMI_ERR_INVALID_PARAMETER;
    lock_state();
    int written = fitting(chip, room);
    for (int index = 0; index < written; index++)
        put_one(&events[index], chip, &standing_of(chip)[index]);
    *count = chip->code_count_lie == NO_LIE ? written : chip->code_count_lie;
    unlock_state();
    return DCMI_OK;
}

EXPORTED_CALL(dcmi_get_device_health, dcmiv2_get_device_health, LISTED_OR_MCU, put_health, (unsigned int *health),
              (health))
EXPORTED_CALL(dcmi_get_device_errorcode_v2, dcmiv2_get_device_error_code_list, LISTED_OR_MCU, put_codes,
              (int *error_count, unsigned int *error_code_list, unsigned int list_len),
              (error_count, error_code_list, list_len))
EXPORTED_CALL(dcmi_get_device_errorcode_string, dcmiv2_get_device_error_info, READY_OR_MCU, put_code_text,
              (unsigned int error_code, unsigned char *error_info, int buf_size), (error_code, error_info, buf_size))
EXPORTED_V1(dcmi_get_device_current_fault_event, READY_OR_MCU, put_standing,
            (struct dcmi_event *event_buf, int input_event_buf_length, int *output_event_cnt),
            (event_buf, input_event_buf_length, output_event_cnt))
/* The host's driver keeps them, also of a chip that has dropped: what v1 asks the chip for first, this does not. */
EXPORTED_V2(dcmiv2_get_device_current_fault_event, LISTED_OR_MCU, put_standing,
            (struct dcmi_event *event_buf, int input_event_buf_length, int *output_event_cnt),
            (event_buf, input_event_buf_length, output_event_cnt))
