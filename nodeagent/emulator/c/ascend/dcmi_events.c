/* Fault events: subscribed to (a callback on a thread of the library's own), or waited for. Only changes are sent. */
#include "dcmi.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A process has one at most, and keeps it: nothing of it changes once the thread runs that reads it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int chip; /* index, or -1 for all */
    struct dcmi_event_filter filter;
    dcmi_fault_event_callback handler; /* NULL: no subscription */
} subscription;
static bool was_refused;

void fill_event(struct dcmi_event *out, const struct event *event, const struct chip *chip)
{
    struct dcmi_dms_fault_event *fault = &out->event_t.dms_event;

    memset(out, 0, sizeof *out);
    out->type = DCMI_DMS_FAULT_EVENT;
    fault->event_id = event->code;
    fault->deviceid = (unsigned short)(event->device_id_lie != NO_LIE ? event->device_id_lie : chip->logic_id);
    fault->node_type_ex = (unsigned short)(event->code >> 17 & 0x7ff);
    fault->node_type = (unsigned char)fault->node_type_ex;
    fault->node_id = (unsigned char)event->part;
    fault->severity = (unsigned char)event->severity;
    fault->assertion = (unsigned char)event->assertion;
    fault->event_serial_num = event->serial;
    fault->notify_serial_num = event->notify_serial;
    fault->alarm_raised_time = event->raised_ms;
    memcpy(fault->additional_info, event->information, sizeof fault->additional_info);
    if (event->unterminated)
        memset(fault->event_name, 'X', sizeof fault->event_name);
    else /* so begins each name (dms_event_para_to_dms_event of dms_fault.c, dsmi_fault_event_data_fill) */
        snprintf(fault->event_name, sizeof fault->event_name, "deviceid=%u, %.200s", fault->deviceid, event->name);
}

static bool passes(const struct dcmi_event_filter *filter, const struct event *event)
{
    if ((filter->filter_flag & DCMI_FILTER_EVENT_ID) && filter->event_id != event->code)
        return false;
    if ((filter->filter_flag & DCMI_FILTER_SEVERITY) && event->severity < filter->severity)
        return false;
    return !(filter->filter_flag & DCMI_FILTER_NODE_TYPE) || filter->node_type == (event->code >> 17 & 0xff);
}

/* Of a chip that the driver has removed nothing is sent (DmsGetFaultEvent of dms_fault.c). */
static bool is_for(const struct event *event, int chip, const struct dcmi_event_filter *filter)
{
    return event->library == LIBRARY_DCMI && state()->chips[event->chip].present &&
           (chip < 0 || event->chip == chip) && passes(filter, event);
}

static void deliver(const struct event *event)
{
    struct dcmi_event out;

    if (!is_for(event, subscription.chip, &subscription.filter))
        return;
    fill_event(&out, event, &state()->chips[event->chip]);
    subscription.handler(&out);
}

static const struct listener listener = {settle_all, next_end_ms, deliver};

/*
 * answer: of the driver, whose slots other processes may have. One that is refused for these reasons leaves the
 * library's thread marked as running, and every later subscription of the process is refused (dsmi_fault_event.c).
 */
static int subscribe(int answer, int chip, struct dcmi_event_filter filter, dcmi_fault_event_callback handler)
{
    if (handler == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    pthread_mutex_lock(&mutex);
    if (subscription.handler != NULL || was_refused) {
        answer = DCMI_ERR_RESOURCE_OCCUPIED;
    } else if (answer != DCMI_OK) {
        was_refused = answer == DCMI_ERR_RESOURCE_OCCUPIED || answer == DCMI_ERR_NOT_SUPPORT;
    } else {
        subscription.chip = chip;
        subscription.filter = filter;
        subscription.handler = handler;
        if (!start_listener(&listener)) {
            subscription.handler = NULL;
            answer = DCMI_ERR_INNER_ERR;
        }
    }
    pthread_mutex_unlock(&mutex);
    return answer;
}

/* Opens the chip of a call, or all chips where the device is -1. */
static int open_some(const char *function, int generation, int card_id, int device_id, int *index)
{
    struct chip *chip;

    *index = -1;
    if (device_id == -1)
        return open_node(function, generation);
    int answer = open_chip(function, generation, card_id, device_id, ANY_STATE, &chip);
    if (answer == DCMI_OK)
        *index = (int)(chip - state()->chips);
    return answer;
}

EXPORTED int dcmi_subscribe_fault_event(int card_id, int device_id, struct dcmi_event_filter filter,
                                        dcmi_fault_event_callback handler);
EXPORTED int dcmi_subscribe_fault_event(int card_id, int device_id, struct dcmi_event_filter filter,
                                        dcmi_fault_event_callback handler)
{
    int chip;
    int answer = open_some(__func__, 1, card_id, device_id, &chip);

    return subscribe(answer, chip, filter, handler);
}

EXPORTED int dcmiv2_subscribe_fault_event(int dev_id, struct dcmi_event_filter filter,
                                          dcmi_fault_event_callback handler);
EXPORTED int dcmiv2_subscribe_fault_event(int dev_id, struct dcmi_event_filter filter,
                                          dcmi_fault_event_callback handler)
{
    int chip;
    int answer = open_some(__func__, 2, 0, dev_id, &chip);

    return subscribe(answer, chip, filter, handler);
}

/* The next change after the one delivered last; from the first call of this process on. */
static bool take_next(int chip, const struct dcmi_event_filter *filter, struct event *event)
{
    static struct place {
        bool known;
        uint64_t number;
    } delivered[CHIPS + 1];
    bool found = false;

    pthread_mutex_lock(&mutex);
    struct place *last = &delivered[chip + 1];
    uint64_t newest = newest_event();
    if (!last->known || newest - last->number > EVENTS)
        *last = (struct place){true, newest};
    while (!found && last->number < newest)
        found = read_event(++last->number, event) && is_for(event, chip, filter);
    pthread_mutex_unlock(&mutex);
    return found;
}

static int wait_for_event(int chip, int timeout_ms, const struct dcmi_event_filter *filter, struct dcmi_event *out)
{
    const uint32_t *signal_word = &state()->node.event_signal;
    uint64_t end_ns = now_ns() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000u;
    struct event event;

    if (out == NULL || timeout_ms < -1 || timeout_ms > 30000)
        return DCMI_ERR_INVALID_PARAMETER;
    for (;;) {
        uint32_t before = __atomic_load_n(signal_word, __ATOMIC_ACQUIRE);
        settle_all();
        if (take_next(chip, filter, &event)) {
            fill_event(out, &event, &state()->chips[event.chip]);
            return DCMI_OK;
        }
        uint64_t now = now_ns();
        if (timeout_ms >= 0 && now >= end_ns)
            return DCMI_ERR_TIME_OUT;
        wait_for_change(signal_word, before, timeout_ms < 0 ? -1 : (long)((end_ns - now) / 1000000u) + 1);
    }
}

EXPORTED int dcmi_get_fault_event(int card_id, int device_id, int timeout, struct dcmi_event_filter filter,
                                  struct dcmi_event *event);
EXPORTED int dcmi_get_fault_event(int card_id, int device_id, int timeout, struct dcmi_event_filter filter,
                                  struct dcmi_event *event)
{
    int chip;
    int answer = open_some(__func__, 1, card_id, device_id, &chip);

    return answer != 0 ? answer : wait_for_event(chip, timeout, &filter, event);
}

EXPORTED int dcmiv2_get_fault_event(int dev_id, int timeout, struct dcmi_event_filter filter,
                                    struct dcmi_event *event);
EXPORTED int dcmiv2_get_fault_event(int dev_id, int timeout, struct dcmi_event_filter filter,
                                    struct dcmi_event *event)
{
    int chip;
    int answer = open_some(__func__, 2, 0, dev_id, &chip);

    return answer != 0 ? answer : wait_for_event(chip, timeout, &filter, event);
}
