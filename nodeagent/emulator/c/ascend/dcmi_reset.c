/* Resetting, and how far a chip has started since. What ends a reset is in dcmi_settle.c. */
#include "dcmi.h"


/* Through the first three stages in as many parts of its time, then there. */
static int put_boot_status(const struct chip *chip, enum dcmi_boot_status *status)
{
    if (status == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    if (chip->boot_began_ns == 0) {
        *status = DCMI_SYSTEM_START_FINISH;
        return chip->ready ? DCMI_OK : DCMI_ERR_DEVICE_NOT_READY;
    }
    uint64_t part_ns = (uint64_t)chip->reset_ms * 1000000u / 3 + 1;
    uint64_t parts = chip->awaits_rescan ? 0 : (now_ns() - chip->boot_began_ns) / part_ns;
    *status = parts == 0 ? DCMI_BOOT_STATUS_UNINIT : parts == 1 ? DCMI_BOOT_STATUS_BIOS : DCMI_BOOT_STATUS_OS;
    return DCMI_OK;
}

static void begin(struct chip *chip, bool awaits_rescan)
{
    chip->resets++;
    chip->ready = 0;
    chip->process_count = 0;
    chip->awaits_rescan = awaits_rescan;
    chip->boot_began_ns = now_ns();
}

/* The library looks for the users of every chip that it has found, and cannot look at one that has dropped. */
static bool is_anyone_unknown(void)
{
    bool found = false;

    lock_state();
    for (int index = 0; index < state()->node.chip_count && !found; index++) {
        struct chip *chip = &state()->chips[index];
        found = is_listed(chip) && !is_ready(chip) && processes_on(chip) > 0;
    }
    unlock_state();
    return found;
}

/* Both dies of the card and of the one that shares its network are addressed, so that both must have been found. */
static bool is_found(int card_id) { return find_chip(card_id, 0) >= 0 && find_chip(card_id, 1) >= 0; }

/* By the chip's PCI device, as dcmi_set_npu_device_reset_inband of the vendor's dcmi_hot_reset_intf.c. */
static int refuse_inband(const struct chip *chip)
{
    bool is_a3 = chip->pci_product == PCI_DEVICE_A3;

    if ((is_a3 || chip->pci_product == PCI_DEVICE_910B) && is_anyone_unknown())
        return DCMI_ERR_DEVICE_NOT_READY;
    if (is_a3 && (!is_found(chip->card_id) || (chip->brother_card_id >= 0 && !is_found(chip->brother_card_id))))
        return DCMI_ERR_INNER_ERR;
    return DCMI_OK;
}

static int refuse_outband(const struct chip *chip)
{
    if (chip->outband_state == NO_VALUE)
        return DCMI_ERR_NOT_SUPPORT;
    return chip->outband_state != 1 || !chip->outband_prepared ? DCMI_ERR_RESET_FAILED : DCMI_OK;
}

/*
 * The driver resets no chip while any process has a call under way on it ("Dms task_cnt not zero" of
 * dms_hotreset.c: EINVAL, which dcmi_convert_error_code makes an invalid parameter).
 */
static bool is_any_called(const struct chip *chip, bool everything)
{
    for (int index = 0; index < state()->node.chip_count; index++) {
        const struct chip *member = &state()->chips[index];
        bool is_member = everything || member->reset_group == chip->reset_group;
        if (member->kind == KIND_NPU && is_member && is_called(index))
            return true;
    }
    return false;
}

static int refuse(const struct chip *chip, bool everything, enum dcmi_reset_channel channel)
{
    if (!everything && chip->reset_first_die_only && device_id_of(chip) != 0)
        return DCMI_ERR_NOT_SUPPORT;
    if (channel == OUTBAND_CHANNEL)
        return refuse_outband(chip);
    if (channel != INBAND_CHANNEL)
        return DCMI_ERR_NOT_SUPPORT;
    if (is_any_called(chip, everything))
        return DCMI_ERR_INVALID_PARAMETER;
    return everything ? DCMI_OK : refuse_inband(chip);
}

/* Everything of the chip's group, or of the node. */
static int reset(const struct chip *chip, bool everything, enum dcmi_reset_channel channel)
{
    struct state *node = state();
    int answer = refuse(chip, everything, channel);

    if (answer != 0 || (answer = chip->reset_answer) != 0)
        return answer;
    if (chip->pci_product == PCI_DEVICE_910B || chip->pci_product == PCI_DEVICE_A3)
        kill_listed();
    lock_state();
    for (int index = 0; index < node->node.chip_count; index++) {
        struct chip *member = &node->chips[index];
        if (member->kind == KIND_NPU && (everything || member->reset_group == chip->reset_group))
            begin(member, channel == OUTBAND_CHANNEL);
    }
    __atomic_fetch_add(&node->node.event_signal, 1, __ATOMIC_SEQ_CST);
    unlock_state();
    wake(&node->node.event_signal);
    return DCMI_OK;
}

/* All cards at once can be reset of an A3 only, and in-band. */
static bool is_for_all(int card_id, enum dcmi_reset_channel channel)
{
    return card_id == DCMI_ALL_CARDS && channel == INBAND_CHANNEL && state() != NULL &&
           state()->chips[0].pci_product == PCI_DEVICE_A3;
}

EXPORTED int dcmi_set_device_reset(int card_id, int device_id, enum dcmi_reset_channel channel_type);
EXPORTED int dcmi_set_device_reset(int card_id, int device_id, enum dcmi_reset_channel channel_type)
{
    struct chip *chip;
    bool everything = is_for_all(card_id, channel_type);
    int first = everything ? state()->node.cards[0] : card_id;
    int answer = open_chip(__func__, 1, first, everything ? 0 : device_id, ANY_STATE, &chip);

    return answer != 0 ? answer : reset(chip, everything, channel_type);
}

EXPORTED int dcmiv2_reset_device(int dev_id, enum dcmi_reset_channel channel_type);
EXPORTED int dcmiv2_reset_device(int dev_id, enum dcmi_reset_channel channel_type)
{
    struct chip *chip;
    int answer = open_chip(__func__, 2, 0, dev_id, ANY_STATE, &chip);

    return answer != 0 ? answer : reset(chip, false, channel_type);
}

static int for_group(const struct chip *chip, void (*change)(struct chip *member))
{
    struct state *node = state();

    if (chip->outband_state == NO_VALUE || (chip->reset_first_die_only && device_id_of(chip) != 0))
        return DCMI_ERR_NOT_SUPPORT;
    lock_state();
    for (int index = 0; index < node->node.chip_count; index++) {
        if (node->chips[index].kind == KIND_NPU && node->chips[index].reset_group == chip->reset_group)
            change(&node->chips[index]);
    }
    __atomic_fetch_add(&node->node.event_signal, 1, __ATOMIC_SEQ_CST);
    unlock_state();
    wake(&node->node.event_signal);
    return DCMI_OK;
}

static void prepare(struct chip *member) { member->outband_prepared = 1; }

static void scan(struct chip *member)
{
    if (!member->awaits_rescan)
        return;
    member->awaits_rescan = 0;
    member->boot_began_ns = now_ns();
}

static int prepare_group(const struct chip *chip)
{
    return is_any_called(chip, false) ? DCMI_ERR_INVALID_PARAMETER : for_group(chip, prepare);
}

static int scan_group(const struct chip *chip) { return for_group(chip, scan); }

static int put_channel(const struct chip *chip, int *channel_state)
{
    if (channel_state == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    if (chip->outband_state == NO_VALUE)
        return DCMI_ERR_NOT_SUPPORT;
    *channel_state = chip->outband_state;
    return DCMI_OK;
}

EXPORTED_CALL(dcmi_get_device_boot_status, dcmiv2_get_device_boot_status, ANY_STATE, put_boot_status,
              (enum dcmi_boot_status *boot_status), (boot_status))
EXPORTED_CALL(dcmi_get_device_outband_channel_state, dcmiv2_get_device_outband_channel_state, ANY_STATE, put_channel,
              (int *channel_state), (channel_state))
EXPORTED_BARE(dcmi_pre_reset_soc, dcmiv2_pre_reset_device, ANY_STATE, prepare_group)
EXPORTED_BARE(dcmi_rescan_soc, dcmiv2_rescan_device, ANY_STATE, scan_group)
