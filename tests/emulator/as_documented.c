/*
 * Uses libdcmi.so as its header says, and prints what it saw, one fact a line:
 *
 *   as_documented tour                 the cards and chips, what they are and how they feel
 *   as_documented list ROOM            the card list and the codes of card 0 with room for so many
 *   as_documented ecc                  the bytes of ecc_info that the library wrote
 *   as_documented boot                 a reset of card 0, each boot status that differs from the one before
 *   as_documented subscribe COUNT ID   so many events with this id (0: any), each as it came
 *   as_documented wait TIMEOUT         one event of card 3, waited for so many milliseconds
 *   as_documented tour_v2              the chips by the second generation of calls
 *   as_documented layout               sizes and offsets of the structures
 */
#define _GNU_SOURCE
#include "dcmi_interface_api.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CARDS = 64, CODES = 128, PROCESSES = 32 };

static int require(int answer, const char *call)
{
    if (answer != 0) {
        printf("%s answers %d\n", call, answer);
        exit(1);
    }
    return answer;
}

#define REQUIRE(call) require(call, #call)

static void print_device(int card, int device)
{
    enum dcmi_unit_type type = INVALID_TYPE;
    struct dcmi_chip_info_v2 chip;
    struct dcmi_die_id die;
    unsigned int physical = 99, health = 99, codes[CODES];
    int logic = 99, count = 99, back_card = 99, back_device = 99;

    REQUIRE(dcmi_get_device_type(card, device, &type));
    REQUIRE(dcmi_get_device_health(card, device, &health));
    REQUIRE(dcmi_get_device_errorcode_v2(card, device, &count, codes, CODES));
    if (type == MCU_TYPE) {
        printf("mcu %d/%d health %u codes %d\n", card, device, health, count);
        return;
    }
    REQUIRE(dcmi_get_device_logic_id(&logic, card, device));
    REQUIRE(dcmi_get_device_phyid_from_logicid((unsigned int)logic, &physical));
    REQUIRE(dcmi_get_card_id_device_id_from_logicid(&back_card, &back_device, (unsigned int)logic));
    REQUIRE(dcmi_get_device_chip_info_v2(card, device, &chip));
    REQUIRE(dcmi_get_device_die_v2(card, device, VDIE, &die));
    printf("npu %d/%d logic %d physical %u back %d/%d chip %s die %08x health %u codes %d\n", card, device, logic,
           physical, back_card, back_device, chip.chip_name, die.soc_die[0], health, count);
}

static void tour(void)
{
    int count = 0, cards[CARDS], devices, largest, mcu, cpu, brother;
    struct dcmi_elabel_info label;

    REQUIRE(dcmi_get_card_list(&count, cards, CARDS));
    for (int index = 0; index < count; index++) {
        int card = cards[index];
        REQUIRE(dcmi_get_device_num_in_card(card, &devices));
        REQUIRE(dcmi_get_device_id_in_card(card, &largest, &mcu, &cpu));
        REQUIRE(dcmi_get_card_elabel_v2(card, &label));
        int answer = dcmi_get_netdev_brother_device(card, 0, &brother);
        printf("card %d devices %d largest %d mcu %d cpu %d brother %d serial %s\n", card, devices, largest, mcu, cpu,
               answer == 0 ? brother : answer, label.serial_number);
        for (int device = 0; device < devices; device++)
            print_device(card, device);
        if (mcu >= 0)
            print_device(card, mcu);
    }
}

static void tour_v2(void)
{
    int count = 0, devices[CARDS];
    unsigned int health = 99;

    REQUIRE(dcmiv2_get_device_list(devices, &count, CARDS));
    for (int index = 0; index < count; index++) {
        REQUIRE(dcmiv2_get_device_health(devices[index], &health));
        printf("device %d health %u\n", devices[index], health);
    }
}

/* What lies behind the room that was given must stay as it was. */
static void list(int room)
{
    int count = -1, cards[CARDS];
    unsigned int codes[CODES];

    memset(cards, 0x55, sizeof cards);
    memset(codes, 0x55, sizeof codes);
    REQUIRE(dcmi_get_card_list(&count, cards, room));
    printf("cards %d behind %s\n", count, cards[room] == 0x55555555 ? "untouched" : "overwritten");
    int answer = dcmi_get_device_errorcode_v2(0, 0, &count, codes, (unsigned int)room);
    printf("codes %d answer %d first %08X behind %s\n", answer == 0 ? count : 0, answer, codes[0],
           codes[room] == 0x55555555 ? "untouched" : "overwritten");
}

static void ecc(void)
{
    union {
        struct dcmi_ecc_info info;
        unsigned char bytes[64];
    } answered;
    size_t written = sizeof answered;

    memset(&answered, 0x55, sizeof answered);
    REQUIRE(dcmi_get_device_ecc_info(0, 0, DCMI_DEVICE_TYPE_HBM, &answered.info));
    while (written > 0 && answered.bytes[written - 1] == 0x55)
        written--;
    printf("ecc %zu bytes, %u single, %u double\n", written, answered.info.total_single_bit_error_cnt,
           answered.info.total_double_bit_error_cnt);
}

static void boot(void)
{
    enum dcmi_boot_status status = DCMI_SYSTEM_START_FINISH, before = DCMI_SYSTEM_START_FINISH;
    unsigned int health;

    REQUIRE(dcmi_set_device_reset(0, 0, INBAND_CHANNEL));
    do {
        int answer = dcmi_get_device_health(0, 0, &health);
        REQUIRE(dcmi_get_device_boot_status(0, 0, &status));
        if (status != before)
            printf("boot %d health answers %d\n", status, status == DCMI_SYSTEM_START_FINISH ? 0 : answer);
        before = status;
        usleep(1000);
    } while (status != DCMI_SYSTEM_START_FINISH);
    printf("health answers %d\n", dcmi_get_device_health(0, 0, &health));
}

static pthread_t main_thread;
static int events_left;

static void print_event(struct dcmi_event *event)
{
    const struct dcmi_dms_fault_event *fault = &event->event_t.dms_event;
    const char *thread = pthread_equal(pthread_self(), main_thread) ? "own" : "other";

    printf("event %08X assertion %u severity %u device %u node %x name %.256s thread %s\n", fault->event_id,
           fault->assertion, fault->severity, fault->deviceid, fault->node_type_ex, fault->event_name, thread);
    if (--events_left == 0)
        exit(0);
}

static void subscribe(int count, unsigned int event_id)
{
    struct dcmi_event_filter filter = {.filter_flag = event_id == 0 ? 0 : 1, .event_id = event_id};

    events_left = count;
    main_thread = pthread_self();
    REQUIRE(dcmi_subscribe_fault_event(-1, -1, filter, print_event));
    printf("subscribed, once more %d\n", dcmi_subscribe_fault_event(-1, -1, filter, print_event));
    for (;;)
        pause();
}

static void wait_for_one(int timeout_ms)
{
    struct dcmi_event_filter filter = {.filter_flag = 0};
    struct dcmi_event event;

    printf("at once %d\n", dcmi_get_fault_event(3, 0, 0, filter, &event));
    REQUIRE(dcmi_get_fault_event(3, 0, timeout_ms, filter, &event));
    printf("waited %08X\n", event.event_t.dms_event.event_id);
}

#define SIZE(type) printf(#type " %zu\n", sizeof(struct type))
#define OFFSET(type, field) printf(#type "." #field " %zu\n", offsetof(struct type, field))

static void layout(void)
{
    SIZE(dcmi_chip_info_v2);
    SIZE(dcmi_pcie_info_all);
    SIZE(dcmi_die_id);
    SIZE(dcmi_board_info);
    SIZE(dcmi_elabel_info);
    SIZE(dcmi_event_filter);
    OFFSET(dcmi_event_filter, severity);
    OFFSET(dcmi_event_filter, node_type);
    OFFSET(dcmi_event_filter, resv);
    SIZE(dcmi_dms_fault_event);
    OFFSET(dcmi_dms_fault_event, severity);
    OFFSET(dcmi_dms_fault_event, assertion);
    OFFSET(dcmi_dms_fault_event, alarm_raised_time);
    OFFSET(dcmi_dms_fault_event, event_name);
    OFFSET(dcmi_dms_fault_event, node_type_ex);
    SIZE(dcmi_event);
    SIZE(dcmi_ecc_info);
    SIZE(dcmi_hbm_info);
    OFFSET(dcmi_hbm_info, temp);
    SIZE(dcmi_proc_mem_info);
    SIZE(dcmi_hccs_statues);
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(what, "layout") == 0) {
        layout();
        return 0;
    }
    if (strcmp(what, "tour_v2") == 0) {
        printf("v1 init %d\n", dcmi_init());
        REQUIRE(dcmiv2_init());
        tour_v2();
        return 0;
    }
    REQUIRE(dcmi_init());
    if (strcmp(what, "tour") == 0)
        tour();
    else if (strcmp(what, "list") == 0 && count == 3)
        list(atoi(words[2]));
    else if (strcmp(what, "wait") == 0 && count == 3)
        wait_for_one(atoi(words[2]));
    else if (strcmp(what, "ecc") == 0)
        ecc();
    else if (strcmp(what, "boot") == 0)
        boot();
    else if (strcmp(what, "subscribe") == 0 && count == 4)
        subscribe(atoi(words[2]), (unsigned int)strtoul(words[3], NULL, 16));
    else
        return 2;
    return 0;
}
