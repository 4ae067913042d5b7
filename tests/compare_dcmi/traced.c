/*
 * Notes the calls of libdcmi that a reset is made of, in calls.log beside the library where there is such a file: a
 * line for each call with the time (microseconds since 1970), the process, the name, card, device, the answer and what
 * it gave (-1 where it gave nothing). The vendor's own functions are behind another name (build.py), so that what
 * they call of each other is not noted: only what the program asked for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dcmi_interface_api.h"

extern __typeof__(dcmi_set_device_reset) vendor_dcmi_set_device_reset;
extern __typeof__(dcmi_pre_reset_soc) vendor_dcmi_pre_reset_soc;
extern __typeof__(dcmi_rescan_soc) vendor_dcmi_rescan_soc;
extern __typeof__(dcmi_get_device_resource_info) vendor_dcmi_get_device_resource_info;
extern __typeof__(dcmi_get_device_boot_status) vendor_dcmi_get_device_boot_status;
extern __typeof__(dcmi_get_device_errorcode_v2) vendor_dcmi_get_device_errorcode_v2;

static int open_log(void)
{
    Dl_info library;
    char path[4096];

    if (dladdr((void *)open_log, &library) == 0 || strrchr(library.dli_fname, '/') == NULL)
        return -1;
    int folder = (int)(strrchr(library.dli_fname, '/') - library.dli_fname);
    snprintf(path, sizeof path, "%.*s/calls.log", folder, library.dli_fname);
    return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

static int noted(const char *name, int card_id, int device_id, int answer, int shown)
{
    int error = errno, log = open_log();
    struct timespec now;
    char line[256];

    if (log >= 0) {
        clock_gettime(CLOCK_REALTIME, &now);
        int length = snprintf(line, sizeof line, "%lld %d %s %d %d %d %d\n",
                              (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000, (int)getpid(), name, card_id,
                              device_id, answer, shown);
        if (write(log, line, (size_t)length) != length)
            fputs("calls.log: a line is lost\n", stderr);
        close(log);
    }
    errno = error;
    return answer;
}

int dcmi_set_device_reset(int card_id, int device_id, enum dcmi_reset_channel channel_type)
{
    return noted(__func__, card_id, device_id, vendor_dcmi_set_device_reset(card_id, device_id, channel_type),
                 (int)channel_type);
}

int dcmi_pre_reset_soc(int card_id, int device_id)
{
    return noted(__func__, card_id, device_id, vendor_dcmi_pre_reset_soc(card_id, device_id), -1);
}

int dcmi_rescan_soc(int card_id, int device_id)
{
    return noted(__func__, card_id, device_id, vendor_dcmi_rescan_soc(card_id, device_id), -1);
}

int dcmi_get_device_resource_info(int card_id, int device_id, struct dcmi_proc_mem_info *proc_info, int *proc_num)
{
    int answer = vendor_dcmi_get_device_resource_info(card_id, device_id, proc_info, proc_num);

    return noted(__func__, card_id, device_id, answer, answer == 0 ? *proc_num : -1);
}

int dcmi_get_device_boot_status(int card_id, int device_id, enum dcmi_boot_status *boot_status)
{
    int answer = vendor_dcmi_get_device_boot_status(card_id, device_id, boot_status);

    return noted(__func__, card_id, device_id, answer, answer == 0 ? (int)*boot_status : -1);
}

int dcmi_get_device_errorcode_v2(int card_id, int device_id, int *error_count, unsigned int *error_code_list,
                                 unsigned int list_len)
{
    int answer = vendor_dcmi_get_device_errorcode_v2(card_id, device_id, error_count, error_code_list, list_len);

    return noted(__func__, card_id, device_id, answer, answer == 0 ? *error_count : -1);
}

/* The same of a 950, whose chips have one number each. */
extern __typeof__(dcmiv2_reset_device) vendor_dcmiv2_reset_device;
extern __typeof__(dcmiv2_pre_reset_device) vendor_dcmiv2_pre_reset_device;
extern __typeof__(dcmiv2_rescan_device) vendor_dcmiv2_rescan_device;
extern __typeof__(dcmiv2_get_device_proc_mem_info) vendor_dcmiv2_get_device_proc_mem_info;
extern __typeof__(dcmiv2_get_device_boot_status) vendor_dcmiv2_get_device_boot_status;
extern __typeof__(dcmiv2_get_device_error_code_list) vendor_dcmiv2_get_device_error_code_list;

int dcmiv2_reset_device(int dev_id, enum dcmi_reset_channel channel_type)
{
    return noted(__func__, dev_id, 0, vendor_dcmiv2_reset_device(dev_id, channel_type), (int)channel_type);
}

int dcmiv2_pre_reset_device(int dev_id) { return noted(__func__, dev_id, 0, vendor_dcmiv2_pre_reset_device(dev_id), -1); }

int dcmiv2_rescan_device(int dev_id) { return noted(__func__, dev_id, 0, vendor_dcmiv2_rescan_device(dev_id), -1); }

int dcmiv2_get_device_proc_mem_info(int dev_id, struct dcmi_proc_mem_info *proc_info, int *proc_num)
{
    int answer = vendor_dcmiv2_get_device_proc_mem_info(dev_id, proc_info, proc_num);

    return noted(__func__, dev_id, 0, answer, answer == 0 ? *proc_num : -1);
}

int dcmiv2_get_device_boot_status(int dev_id, enum dcmi_boot_status *boot_status)
{
    int answer = vendor_dcmiv2_get_device_boot_status(dev_id, boot_status);

    return noted(__func__, dev_id, 0, answer, answer == 0 ? (int)*boot_status : -1);
}

int dcmiv2_get_device_error_code_list(int dev_id, int *error_count, unsigned int *error_code_list, unsigned int list_len)
{
    int answer = vendor_dcmiv2_get_device_error_code_list(dev_id, error_count, error_code_list, list_len);

    return noted(__func__, dev_id, 0, answer, answer == 0 ? *error_count : -1);
}
