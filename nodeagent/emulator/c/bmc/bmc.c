/*
 * What the BMC answers: its id, its log (IPMI 2.0, sections 20.1, 31 and 32), and the list of faults that only
 * Huawei's has, as MindCluster's NodeD asks for it (component/noded/pkg/monitoring/ipmimonitor).
 */
#include "bmc.h"
#include "shared.h"

#include <string.h>
#include <time.h>

enum {
    DONE = 0x00,
    NODE_BUSY = 0xC0,
    INVALID_COMMAND = 0xC1,
    OUT_OF_SPACE = 0xC4,
    WRONG_LENGTH = 0xC7,
    NOT_PRESENT = 0xCB,

    APPLICATION = 0x06,
    STORAGE = 0x0A,
    OEM = 0x30,

    HUAWEI = 2011,
    FIRST_RECORD = 0x0000,
    LAST_RECORD = 0xFFFF,
    RECORD_BYTES = 16,
    FAULT_BYTES = 15,
};

/* A position in an answer that is being written. */
struct writer {
    uint8_t *bytes;
    size_t length;
};

static void put(struct writer *writer, uint32_t value, int bytes)
{
    for (int index = 0; index < bytes && writer->length < MAX_MESSAGE_BYTES; index++)
        writer->bytes[writer->length++] = (uint8_t)(value >> 8 * index);
}

static uint32_t bmc_time(void) { return (uint32_t)(time(NULL) + state()->node.bmc_clock_offset_s); }

static void give_id(struct writer *answer)
{
    put(answer, DONE, 1);
    put(answer, 0x20, 1); /* device id */
    put(answer, 0x01, 1); /* device revision */
    put(answer, 0x06, 1); /* firmware revision, two bytes; bit 7 of the first: it is being updated */
    put(answer, 0x30, 1);
    put(answer, 0x02, 1); /* IPMI 2.0 */
    put(answer, 0x9F, 1); /* what else it has */
    put(answer, state()->node.bmc_manufacturer, 3);
    put(answer, 0x0000, 2); /* product id */
}

/* --- the list of faults --- */

static void rotate(void)
{
    struct state *node = state();
    struct alarm first = node->alarms[0];

    if (node->node.bmc_rotations <= 0 || node->node.alarm_count < 2)
        return;
    node->node.bmc_rotations--;
    memmove(&node->alarms[0], &node->alarms[1], sizeof first * (size_t)(node->node.alarm_count - 1));
    node->alarms[node->node.alarm_count - 1] = first;
}

static void give_faults(struct writer *answer, const uint8_t *data, size_t length)
{
    struct state *node = state();

    if (length != 9) {
        put(answer, WRONG_LENGTH, 1);
        return;
    }
    int first = data[5] | data[6] << 8, total = node->node.alarm_count;
    int count = first < total ? total - first : 0;
    if (count > node->node.bmc_faults_per_page)
        count = node->node.bmc_faults_per_page;
    put(answer, DONE, 1);
    put(answer, HUAWEI, 3);
    put(answer, node->node.bmc_total_lie == NO_LIE ? (uint32_t)total : (uint32_t)node->node.bmc_total_lie, 2);
    put(answer, (uint32_t)count, 1);
    put(answer, 0, 1);
    for (int index = first; index < first + count; index++) {
        const struct alarm *alarm = &node->alarms[index];
        put(answer, alarm->code, 4);
        put(answer, 0, 4);
        put(answer, alarm->severity, 1);
        put(answer, alarm->part_type, 1);
        put(answer, alarm->part, 1);
        put(answer, 0, FAULT_BYTES - 11);
    }
    rotate();
}

/* --- the log --- */

static void give_log(struct writer *answer)
{
    const struct node *node = &state()->node;

    put(answer, DONE, 1);
    put(answer, 0x51, 1); /* version */
    put(answer, (uint32_t)node->sel_count, 2);
    put(answer, (uint32_t)(SEL_RECORDS - node->sel_count) * RECORD_BYTES, 2);
    put(answer, node->sel_added_s, 4);
    put(answer, node->sel_erased_s, 4);
    put(answer, node->sel_overflow ? 0x82 : 0x02, 1);
}

static int place_of(int number)
{
    int count = state()->node.sel_count;

    if (count == 0 || number == FIRST_RECORD)
        return count - 1 < 0 ? -1 : 0;
    if (number == LAST_RECORD)
        return count - 1;
    for (int place = 0; place < count; place++) {
        if (state()->sel[place].number == (uint32_t)number)
            return place;
    }
    return -1;
}

static void give_record(struct writer *answer, const uint8_t *data, size_t length)
{
    if (length != 6) {
        put(answer, WRONG_LENGTH, 1);
        return;
    }
    int place = place_of(data[2] | data[3] << 8);
    if (place < 0) {
        put(answer, NOT_PRESENT, 1);
        return;
    }
    const struct sel *record = &state()->sel[place];
    put(answer, DONE, 1);
    put(answer, place + 1 < state()->node.sel_count ? record[1].number : LAST_RECORD, 2);
    put(answer, record->number, 2);
    put(answer, record->kind, 1);
    put(answer, record->at_s, 4);
    put(answer, record->generator, 2);
    put(answer, record->revision, 1);
    put(answer, record->sensor_type, 1);
    put(answer, record->sensor, 1);
    put(answer, record->event_type, 1);
    for (int index = 0; index < 3; index++)
        put(answer, record->data[index], 1);
}

static void add_record(struct writer *answer, const uint8_t *data, size_t length)
{
    struct node *node = &state()->node;

    if (length != RECORD_BYTES) {
        put(answer, WRONG_LENGTH, 1);
        return;
    }
    if (node->sel_count == SEL_RECORDS) {
        node->sel_overflow = 1;
        put(answer, OUT_OF_SPACE, 1);
        return;
    }
    struct sel *record = &state()->sel[node->sel_count++];
    *record = (struct sel){
        .number = node->sel_next_number++,
        .at_s = node->sel_added_s = bmc_time(),
        .kind = data[2],
        .generator = (uint32_t)(data[7] | data[8] << 8),
        .revision = data[9],
        .sensor_type = data[10],
        .sensor = data[11],
        .event_type = data[12],
        .data = {data[13], data[14], data[15]},
    };
    put(answer, DONE, 1);
    put(answer, record->number, 2);
}

static void give_time(struct writer *answer)
{
    put(answer, DONE, 1);
    put(answer, bmc_time(), 4);
}

/* --- all --- */

static void answer_well(struct writer *answer, int what, const uint8_t *data, size_t length)
{
    switch (what) {
    case APPLICATION << 8 | 0x01:
        give_id(answer);
        return;
    case STORAGE << 8 | 0x40:
        give_log(answer);
        return;
    case STORAGE << 8 | 0x43:
        give_record(answer, data, length);
        return;
    case STORAGE << 8 | 0x44:
        add_record(answer, data, length);
        return;
    case STORAGE << 8 | 0x48:
        give_time(answer);
        return;
    case OEM << 8 | 0x94:
        state()->node.bmc_list_requests++;
        if (state()->node.bmc_has_list) {
            give_faults(answer, data, length);
            return;
        }
        /* fall through */
    default:
        put(answer, INVALID_COMMAND, 1);
    }
}

int take_mode(void)
{
    struct node *node = &state()->node;

    if (node->bmc_mode_times == 0)
        return BMC_WELL;
    if (node->bmc_mode_times > 0)
        node->bmc_mode_times--;
    return node->bmc_mode;
}

size_t answer_request(int mode, uint8_t netfn, uint8_t command, const uint8_t *data, size_t length,
                      uint8_t answer[MAX_MESSAGE_BYTES])
{
    struct writer writer = {answer, 0};
    int what = netfn == STORAGE && !state()->node.bmc_has_log ? -1 : netfn << 8 | command;

    if (mode == BMC_BUSY) {
        put(&writer, NODE_BUSY, 1);
        return writer.length;
    }
    lock_state();
    answer_well(&writer, what, data, length);
    unlock_state();
    if (mode == BMC_GARBAGE) {
        for (size_t index = 1; index < writer.length; index++)
            answer[index] = (uint8_t)(index * 151 + 77);
    }
    return mode == BMC_TRUNCATED ? (writer.length + 1) / 2 : writer.length;
}
