/* In place of the vendor's log of its dsmi layer, whose own header needs one that is not in its source. */
#define DEVICE_MONITOR_LOG_H
#define DEV_MON_ERR(...)
#define DEV_MON_WARNING(...)
#define DEV_MON_INFO(...)
#define DEV_MON_DEBUG(...)
#define DEV_MON_EX_NOTSUPPORT_ERR(...)
#define CHECK_DEVICE_BUSY(device_id, answer) (void)(device_id), (void)(answer)
