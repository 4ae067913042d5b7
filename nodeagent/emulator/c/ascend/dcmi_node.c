/* Initialisation, versions, and the lists of cards and devices. */
#include "dcmi.h"

static int put_version(const char *version, char *buffer, unsigned int bytes)
{
    if (buffer == NULL || bytes == 0)
        return DCMI_ERR_INVALID_PARAMETER;
    put_text(buffer, bytes, version);
    return DCMI_OK;
}

#define EXPORTED_VERSION(name, generation, field)                                                                      \
    EXPORTED int name(char *buffer, unsigned int bytes);                                                               \
    EXPORTED int name(char *buffer, unsigned int bytes)                                                                \
    {                                                                                                                  \
        int answer = open_node(__func__, generation);                                                                  \
        return answer != 0 ? answer : put_version(state()->node.field, buffer, bytes);                                 \
    }

EXPORTED_VERSION(dcmi_get_dcmi_version, 1, dcmi_version)
EXPORTED_VERSION(dcmi_get_driver_version, 1, driver_version)
EXPORTED_VERSION(dcmiv2_get_dcmi_version, 2, dcmi_version)
EXPORTED_VERSION(dcmiv2_get_driver_version, 2, driver_version)

/* Of all chips that there are, so that there is one to ask for the board (dcmi_init_board_type, dcmi_check_is_init_in_950). */
static bool is_any_ready(void)
{
    int there = 0, ready = 0;

    for (int index = 0; index < state()->node.chip_count; index++) {
        const struct chip *chip = &state()->chips[index];
        there += chip->kind == KIND_NPU && chip->present;
        ready += chip->kind == KIND_NPU && is_ready(chip);
    }
    return ready > 0 || there == 0;
}

static int initialise(const char *function, int generation)
{
    bool taken[CHIPS] = {false};
    int answer = enter(function, -1);

    if (answer == 0 && !is_any_ready())
        answer = DCMI_ERR_DEVICE_NOT_READY;
    if (answer == 0 && state()->node.generation != generation)
        answer = DCMI_ERR_NOT_SUPPORT;
    if (answer == 0)
        answer = take_chips(taken);
    if (answer == 0)
        find_chips(taken);
    return answer;
}

EXPORTED int dcmi_init(void);
EXPORTED int dcmi_init(void) { return initialise(__func__, 1); }

EXPORTED int dcmiv2_init(void);
EXPORTED int dcmiv2_init(void) { return initialise(__func__, 2); }

/* So many entries are announced as there are, never more written than the caller has room for. */
static int put_list(const int *entries, int count, int lie, int *count_out, int *out, int room)
{
    if (count_out == NULL || out == NULL || room <= 0)
        return DCMI_ERR_INVALID_PARAMETER;
    int written = count < room ? count : room;
    for (int index = 0; index < written; index++)
        out[index] = entries[index];
    *count_out = lie == NO_LIE ? written : lie;
    return DCMI_OK;
}

/* A card is listed for as long as the process lives; one that had not started, without its id where it is a server's. */
static int present_cards(int cards[CHIPS])
{
    const struct state *node = state();
    int count = 0;

    for (int place = 0; place < node->node.card_count; place++) {
        bool present = false, listed = false;
        for (int index = 0; index < node->node.chip_count; index++) {
            const struct chip *chip = &node->chips[index];
            if (chip->kind != KIND_NPU || chip->card_id != node->node.cards[place])
                continue;
            present = present || (is_on_card(chip) ? is_listed(chip) : is_registered(chip));
            listed = listed || is_listed(chip);
        }
        if (present)
            cards[count++] = listed ? node->node.cards[place] : -1;
    }
    return count;
}

static int present_chips(int logic_ids[CHIPS])
{
    const struct state *node = state();
    int count = 0;

    for (int index = 0; index < node->node.chip_count; index++) {
        const struct chip *chip = &node->chips[index];
        if (is_listed(chip))
            logic_ids[count++] = chip->logic_id;
    }
    return count;
}

static int put_cards(const char *function, int *card_num, int *card_list, int list_len)
{
    int cards[CHIPS];
    int answer = open_node(function, 1);

    if (answer != 0)
        return answer;
    if (!has_initialised())
        return DCMI_ERR_INNER_ERR;
    return put_list(cards, present_cards(cards), state()->node.card_count_lie, card_num, card_list, list_len);
}

EXPORTED int dcmi_get_card_list(int *card_num, int *card_list, int list_len);
EXPORTED int dcmi_get_card_list(int *card_num, int *card_list, int list_len)
{
    return put_cards(__func__, card_num, card_list, list_len);
}

EXPORTED int dcmi_get_card_num_list(int *card_num, int *card_list, int list_len);
EXPORTED int dcmi_get_card_num_list(int *card_num, int *card_list, int list_len)
{
    return put_cards(__func__, card_num, card_list, list_len);
}

EXPORTED int dcmiv2_get_device_list(int *device_list, int *device_cnt, int list_len);
EXPORTED int dcmiv2_get_device_list(int *device_list, int *device_cnt, int list_len)
{
    int logic_ids[CHIPS];
    int answer = open_node(__func__, 2);

    if (answer != 0)
        return answer;
    return put_list(logic_ids, present_chips(logic_ids), state()->node.card_count_lie, device_cnt, device_list,
                    list_len);
}

static int put_chip_count(const char *function, int generation, int *count)
{
    int logic_ids[CHIPS];
    int answer = open_node(function, generation);

    if (answer != 0)
        return answer;
    if (count == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *count = present_chips(logic_ids);
    return DCMI_OK;
}

EXPORTED int dcmi_get_all_device_count(int *all_device_count);
EXPORTED int dcmi_get_all_device_count(int *all_device_count)
{
    return put_chip_count(__func__, 1, all_device_count);
}

EXPORTED int dcmiv2_get_all_device_count(int *all_device_count);
EXPORTED int dcmiv2_get_all_device_count(int *all_device_count)
{
    return put_chip_count(__func__, 2, all_device_count);
}

/* Chips of a card: all of them, or those that answer no more. -1: the card is not listed. */
static int count_in_card(int card_id, bool only_faulty)
{
    const struct state *node = state();
    int count = 0, listed = 0;

    for (int index = 0; index < node->node.chip_count; index++) {
        const struct chip *chip = &node->chips[index];
        if (!is_listed(chip) || chip->card_id != card_id)
            continue;
        listed++;
        count += !only_faulty || !is_ready(chip);
    }
    return listed == 0 ? -1 : count;
}

static int put_card_count(const char *function, int card_id, bool only_faulty, int *device_num)
{
    int answer = open_node(function, 1);

    if (answer != 0)
        return answer;
    int count = count_in_card(card_id, only_faulty);
    if (device_num == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    if (count < 0)
        return DCMI_ERR_INVALID_DEVICE_ID;
    *device_num = count;
    return DCMI_OK;
}

EXPORTED int dcmi_get_device_num_in_card(int card_id, int *device_num);
EXPORTED int dcmi_get_device_num_in_card(int card_id, int *device_num)
{
    return put_card_count(__func__, card_id, false, device_num);
}

EXPORTED int dcmi_get_fault_device_num_in_card(int card_id, int *device_num);
EXPORTED int dcmi_get_fault_device_num_in_card(int card_id, int *device_num)
{
    return put_card_count(__func__, card_id, true, device_num);
}

/* The largest device id of the card, and the ids of its MCU and CPU (-1 where it has none). */
EXPORTED int dcmi_get_device_id_in_card(int card_id, int *device_id_max, int *mcu_id, int *cpu_id);
EXPORTED int dcmi_get_device_id_in_card(int card_id, int *device_id_max, int *mcu_id, int *cpu_id)
{
    int answer = open_node(__func__, 1);

    if (answer != 0)
        return answer;
    if (device_id_max == NULL || mcu_id == NULL || cpu_id == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    int count = count_in_card(card_id, false);
    if (count < 0)
        return DCMI_ERR_INVALID_DEVICE_ID;
    *device_id_max = count - 1;
    *mcu_id = mcu_id_of(card_id);
    *cpu_id = -1;
    return DCMI_OK;
}
