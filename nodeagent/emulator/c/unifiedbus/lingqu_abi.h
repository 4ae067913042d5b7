/* The vendor's C interface of liblingqu-dcmi.so (LP64). Nothing of the emulator's own. */
#ifndef EMULATOR_LINGQU_ABI_H
#define EMULATOR_LINGQU_ABI_H

#define LQ_DCMI_VERSION 0x2001001u

#define LQ_DCMI_OK 0
#define LQ_DCMI_ERR_PARAMETER (-8001)
#define LQ_DCMI_ERR_DEVICE_OPEN (-8004)
#define LQ_DCMI_ERR_IOCTL (-8005)
#define LQ_DCMI_ERR_THREAD (-8007)
#define LQ_DCMI_ERR_NOT_INIT (-8009)
#define LQ_DCMI_ERR_TOO_MANY_SUBSCRIPTIONS (-8014)
#define LQ_DCMI_ERR_FILTER (-8015)
#define LQ_DCMI_ERR_UNSUBSCRIBE (-8016)
#define LQ_DCMI_ERR_INIT_TWICE (-8017)

enum { LQ_DCMI_RECOVER = 0, LQ_DCMI_FAULT = 1 };

typedef enum {
    LQ_DCMI_FILTER_NONE = 0,
    LQ_DCMI_FILTER_EVENT_TYPE = 1,
    LQ_DCMI_FILTER_EVENT = 2,
    LQ_DCMI_FILTER_SEVERITY = 4,
    LQ_DCMI_FILTER_CHIP = 8
} LqDcmiEventFilterFlag;

typedef struct {
    LqDcmiEventFilterFlag filterFlag;
    unsigned int eventTypeId;
    unsigned int eventId;
    unsigned char severity;
    unsigned int chipId;
} lq_dcmi_event_filter;

typedef struct {
    unsigned int eventType;
    unsigned int subType;
    unsigned short peerportDevice;
    unsigned short peerportId;
    unsigned short switchChipid;
    unsigned short switchPortid;
    unsigned char severity;
    unsigned char assertion;
    char res[6];
    unsigned int eventSerialNum;
    unsigned int notifySerialNum;
    unsigned long alarmRaisedTime;
    unsigned char additionalParam[40];
    char additionalInfo[32];
} LqDcmiEvent;

typedef void (*LqDcmiEventCallback)(LqDcmiEvent *event);

_Static_assert(sizeof(lq_dcmi_event_filter) == 20, "passed by value");
_Static_assert(sizeof(LqDcmiEvent) == 112, "as the vendor's");

#endif
