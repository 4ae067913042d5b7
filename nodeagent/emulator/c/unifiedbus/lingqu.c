/* liblingqu-dcmi.so: faults of the UnifiedBus switch chips, subscribed to or listed. */
#include "lingqu_abi.h"
#include "shared.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SUBSCRIPTIONS = 15, EVERY_FLAG = 15 };

struct subscription {
    lq_dcmi_event_filter filter;
    LqDcmiEventCallback handler;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct subscription subscriptions[SUBSCRIPTIONS];
static int subscription_count;
static bool is_initialised;

/* The faults as this process knows them: all there were when it began, and then what events have reported. */
static struct fabric known[FABRIC_FAULTS];
static int known_count;

static int open_library(const char *function)
{
    int answer = enter(function, -1);

    if (answer == 0 && !is_initialised)
        return LQ_DCMI_ERR_NOT_INIT;
    return answer;
}

static void fill_event(LqDcmiEvent *out, const struct event *event)
{
    *out = (LqDcmiEvent){
        .eventType = event->code,
        .subType = (unsigned int)event->data[0],
        .peerportDevice = (unsigned short)event->data[1],
        .peerportId = (unsigned short)event->data[2],
        .switchChipid = (unsigned short)event->data[3],
        .switchPortid = (unsigned short)event->data[4],
        .severity = (unsigned char)event->severity,
        .assertion = (unsigned char)event->assertion,
        .eventSerialNum = (unsigned int)event->serial,
        .notifySerialNum = (unsigned int)event->notify_serial,
        .alarmRaisedTime = event->raised_ms,
    };
    if (event->unterminated)
        memset(out->additionalInfo, 'X', sizeof out->additionalInfo);
}

static bool passes(const lq_dcmi_event_filter *filter, const struct event *event)
{
    unsigned int flags = (unsigned int)filter->filterFlag;

    if ((flags & LQ_DCMI_FILTER_EVENT_TYPE) && filter->eventTypeId != event->code)
        return false;
    if ((flags & LQ_DCMI_FILTER_EVENT) && filter->eventId != event->data[0])
        return false;
    if ((flags & LQ_DCMI_FILTER_SEVERITY) && event->severity < filter->severity)
        return false;
    return !(flags & LQ_DCMI_FILTER_CHIP) || filter->chipId == event->data[3];
}

/* The place of a fault in what the process knows, or -1. */
static int find_known(const struct fabric *fault)
{
    for (int index = 0; index < known_count; index++) {
        if (known[index].event_type == fault->event_type && known[index].sub_type == fault->sub_type &&
            known[index].chip == fault->chip && known[index].port == fault->port)
            return index;
    }
    return -1;
}

/* As EventHandler of the vendor's lingqu-dcmi.c. The caller holds the mutex. */
static void learn(const struct event *event)
{
    struct fabric fault = {
        .event_type = event->code,
        .sub_type = (uint32_t)event->data[0],
        .peer_device = (uint32_t)event->data[1],
        .peer_port = (uint32_t)event->data[2],
        .chip = (uint32_t)event->data[3],
        .port = (uint32_t)event->data[4],
        .severity = event->severity,
        .serial = event->serial,
        .raised_ms = event->raised_ms,
    };
    int index = find_known(&fault);

    if (event->assertion == LQ_DCMI_FAULT && index < 0 && known_count < FABRIC_FAULTS)
        known[known_count++] = fault;
    else if (event->assertion == LQ_DCMI_RECOVER && index >= 0)
        known[index] = known[--known_count];
}

/* The process learns of it, and its subscribers are notified, also of what happened before that. */
static void deliver(const struct event *event)
{
    struct subscription copies[SUBSCRIPTIONS];
    LqDcmiEvent out;

    if (event->library != LIBRARY_LINGQU)
        return;
    pthread_mutex_lock(&mutex);
    learn(event);
    int count = subscription_count;
    memcpy(copies, subscriptions, sizeof copies);
    pthread_mutex_unlock(&mutex);
    fill_event(&out, event);
    for (int index = 0; index < count; index++) {
        if (passes(&copies[index].filter, event))
            copies[index].handler(&out);
    }
}

/* The vendor's thread asks the driver so often, and sees nothing sooner. */
static void wait_for_poll(void) { sleep_ms(state()->node.fabric_poll_ms); }

static long next_poll_ms(void) { return -1; }

static const struct listener listener = {wait_for_poll, next_poll_ms, deliver};

/* Only here the driver is asked for all faults. */
static int begin(void)
{
    int answer = LQ_DCMI_OK;

    pthread_mutex_lock(&mutex);
    if (is_initialised) {
        answer = LQ_DCMI_ERR_INIT_TWICE;
    } else if (!start_listener(&listener)) {
        answer = LQ_DCMI_ERR_THREAD;
    } else {
        lock_state();
        known_count = state()->node.fabric_fault_count;
        memcpy(known, state()->fabric, sizeof known);
        unlock_state();
        is_initialised = true;
    }
    pthread_mutex_unlock(&mutex);
    return answer;
}

EXPORTED int lq_dcmi_init(void);
EXPORTED int lq_dcmi_init(void)
{
    int answer = enter(__func__, -1);

    return answer != 0 ? answer : begin();
}

static bool is_same(const lq_dcmi_event_filter *one, const lq_dcmi_event_filter *other)
{
    return one->filterFlag == other->filterFlag && one->eventTypeId == other->eventTypeId &&
           one->eventId == other->eventId && one->severity == other->severity && one->chipId == other->chipId;
}

static int unsubscribe(const lq_dcmi_event_filter *filter)
{
    for (int index = 0; index < subscription_count; index++) {
        if (is_same(&subscriptions[index].filter, filter)) {
            subscriptions[index] = subscriptions[--subscription_count];
            return LQ_DCMI_OK;
        }
    }
    return LQ_DCMI_ERR_UNSUBSCRIBE;
}

/* In place of the subscription with the same filter, if there is one. */
static int subscribe(const lq_dcmi_event_filter *filter, LqDcmiEventCallback handler)
{
    (void)unsubscribe(filter);
    if (subscription_count == SUBSCRIPTIONS)
        return LQ_DCMI_ERR_TOO_MANY_SUBSCRIPTIONS;
    subscriptions[subscription_count++] = (struct subscription){*filter, handler};
    return LQ_DCMI_OK;
}

EXPORTED int lq_dcmi_subscribe_fault_event(lq_dcmi_event_filter filter, LqDcmiEventCallback handler);
EXPORTED int lq_dcmi_subscribe_fault_event(lq_dcmi_event_filter filter, LqDcmiEventCallback handler)
{
    int answer = open_library(__func__);

    if (answer != 0)
        return answer;
    if ((unsigned int)filter.filterFlag > EVERY_FLAG)
        return LQ_DCMI_ERR_FILTER;
    pthread_mutex_lock(&mutex);
    answer = handler == NULL ? unsubscribe(&filter) : subscribe(&filter, handler);
    pthread_mutex_unlock(&mutex);
    return answer;
}

static void fill_listed(LqDcmiEvent *out, const struct fabric *fault)
{
    *out = (LqDcmiEvent){
        .eventType = fault->event_type,
        .subType = fault->sub_type,
        .peerportDevice = (unsigned short)fault->peer_device,
        .peerportId = (unsigned short)fault->peer_port,
        .switchChipid = (unsigned short)fault->chip,
        .switchPortid = (unsigned short)fault->port,
        .severity = (unsigned char)fault->severity,
        .assertion = LQ_DCMI_FAULT,
        .eventSerialNum = (unsigned int)fault->serial,
        .notifySerialNum = (unsigned int)fault->serial,
        .alarmRaisedTime = fault->raised_ms,
    };
}

EXPORTED int lq_dcmi_get_fault_info(unsigned int listLen, unsigned int *eventListLen, LqDcmiEvent *eventList);
EXPORTED int lq_dcmi_get_fault_info(unsigned int listLen, unsigned int *eventListLen, LqDcmiEvent *eventList)
{
    int answer = open_library(__func__);

    if (answer != 0)
        return answer;
    if (listLen == 0 || listLen > USHRT_MAX || eventListLen == NULL || eventList == NULL)
        return LQ_DCMI_ERR_PARAMETER;
    int32_t lie = state()->node.fabric_fault_count_lie;
    pthread_mutex_lock(&mutex);
    unsigned int written = (unsigned int)known_count < listLen ? (unsigned int)known_count : listLen;
    for (unsigned int index = 0; index < written; index++)
        fill_listed(&eventList[index], &known[index]);
    *eventListLen = lie == NO_LIE ? written : (unsigned int)lie;
    pthread_mutex_unlock(&mutex);
    return LQ_DCMI_OK;
}

EXPORTED int lq_dcmi_get_fault_nums(unsigned int *fault_nums);
EXPORTED int lq_dcmi_get_fault_nums(unsigned int *fault_nums)
{
    int answer = open_library(__func__);

    if (answer != 0)
        return answer;
    if (fault_nums == NULL)
        return LQ_DCMI_ERR_PARAMETER;
    pthread_mutex_lock(&mutex);
    *fault_nums = (unsigned int)known_count;
    pthread_mutex_unlock(&mutex);
    return LQ_DCMI_OK;
}

EXPORTED int lq_dcmi_get_version(unsigned int *lq_version, unsigned int *lqdcmi_version);
EXPORTED int lq_dcmi_get_version(unsigned int *lq_version, unsigned int *lqdcmi_version)
{
    int answer = enter(__func__, -1);

    if (answer != 0)
        return answer;
    if (lq_version == NULL || lqdcmi_version == NULL)
        return LQ_DCMI_ERR_PARAMETER;
    *lq_version = *lqdcmi_version = LQ_DCMI_VERSION;
    return LQ_DCMI_OK;
}
