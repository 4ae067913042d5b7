/*
 * The events of the emulated node as the kernel sends them to the vendor's dsmi_fault_event.c, which subscribes, reads
 * and lists them, and is built as it is. From the vendor's dms_fault.c: an event's name begins with the logic id, the
 * time-out is answered as such, and of a chip that is gone nothing is sent. Filters: dms_event_distribute.c.
 */
#include <stdio.h>
#include <string.h>

#include "ascend_hal.h"
#include "dms_cmd_def.h"
#include "dsmi_common_interface.h"
#include "shared.h"

enum { OK = 0, INVALID_DEVICE = 2, WAIT_TIMEOUT = 16, BELOW_NOT_SUPPORTED = 0xfffe };
enum { BY_EVENT = 1, BY_SEVERITY = 2, BY_NODE_TYPE = 4 };

int mmSetCurrentThreadName(const char *name);
int mmSetCurrentThreadName(const char *name) { return (void)name, 0; }

int dsmi_check_device_id(int device_id);
int dsmi_check_device_id(int device_id)
{
    bool known = device_id >= 0 && device_id < state()->node.chip_count;

    return known && state()->chips[device_id].present ? OK : INVALID_DEVICE;
}

static void fill(struct dms_fault_event *out, const struct event *event)
{
    memset(out, 0, sizeof *out);
    out->event_id = event->code;
    out->deviceid = (unsigned short)event->chip;
    out->node_type_ex = (unsigned short)(event->code >> 17 & 0x7ff);
    out->node_type = (unsigned char)out->node_type_ex;
    out->severity = (unsigned char)event->severity;
    out->assertion = (unsigned char)event->assertion;
    out->event_serial_num = event->serial;
    out->notify_serial_num = event->notify_serial;
    out->alarm_raised_time = event->raised_ms;
    snprintf(out->event_name, sizeof out->event_name, "deviceid=%d, %.200s", event->chip, event->name);
    memcpy(out->additional_info, event->information, sizeof out->additional_info);
}

static bool passes(const struct dms_event_filter *filter, const struct event *event)
{
    if ((filter->filter_flag & BY_EVENT) && filter->event_id != event->code)
        return false;
    if ((filter->filter_flag & BY_SEVERITY) && event->severity < filter->severity)
        return false;
    return !(filter->filter_flag & BY_NODE_TYPE) || filter->node_type == (event->code >> 17 & 0xff);
}

/* The next event for this process, which the kernel keeps a place for from its first call on. */
static bool take_next(int dev_id, const struct dms_event_filter *filter, struct event *event)
{
    static uint64_t delivered;
    static bool is_known;

    if (!is_known)
        delivered = newest_event();
    is_known = true;
    while (delivered < newest_event()) {
        if (read_event(++delivered, event) && event->library == LIBRARY_DCMI && (dev_id < 0 || event->chip == dev_id) &&
            state()->chips[event->chip].present && passes(filter, event))
            return true;
    }
    return false;
}

drvError_t DmsGetFaultEvent(int dev_id, struct dms_event_filter *filter, int timeout, struct dms_fault_event *event);
drvError_t DmsGetFaultEvent(int dev_id, struct dms_event_filter *filter, int timeout, struct dms_fault_event *out)
{
    const uint32_t *signal_word = &state()->node.event_signal;
    int answer = enter(__func__, dev_id);
    struct event event;

    if (answer != OK)
        return (drvError_t)answer;
    uint32_t before = __atomic_load_n(signal_word, __ATOMIC_ACQUIRE);
    bool found = take_next(dev_id, filter, &event);
    if (!found && timeout != 0) {
        wait_for_change(signal_word, before, timeout);
        found = take_next(dev_id, filter, &event);
    }
    if (!found)
        return (drvError_t)WAIT_TIMEOUT;
    fill(out, &event);
    return 0;
}

drvError_t halGetFaultEvent(uint32_t devId, struct halEventFilter *filter, struct halFaultEventInfo *out, uint32_t room,
                            uint32_t *count)
{
    int answer = enter(__func__, (int)devId);
    const struct chip *chip = &state()->chips[devId];

    (void)filter;
    if (answer != OK)
        return (drvError_t)answer;
    *count = (uint32_t)chip->code_count < room ? (uint32_t)chip->code_count : room;
    for (uint32_t index = 0; index < *count; index++) {
        const struct standing *standing = &state()->standing[devId][index];
        out[index] = (struct halFaultEventInfo){.event_id = standing->code,
                                                .deviceid = (unsigned short)devId,
                                                .node_type = (unsigned short)(standing->code >> 17 & 0x7ff),
                                                .severity = (unsigned char)standing->severity,
                                                .assertion = 1,
                                                .event_serial_num = standing->serial,
                                                .notify_serial_num = standing->serial,
                                                .alarm_raised_time = standing->raised_ms};
        snprintf(out[index].event_name, sizeof out[index].event_name, "%s", standing->name);
    }
    return 0;
}
