#include "dcmi.h"

static struct chip mcu = {.present = 1, .ready = 1, .code_count_lie = NO_LIE, .health_lie = NO_LIE};

/*
 * What the driver answered this process when it asked first; it never asks again (uda_user_kernel_api.c, uda_init). And
 * what of that was healthy at the last initialisation: the library lists it from then on, whatever becomes of it.
 */
static bool is_initialised, registered[CHIPS], found[CHIPS];

/* Of what was found, its device id in this process. */
static int device_ids[CHIPS];

static bool is_there(const struct chip *chip) { return chip->kind == KIND_NPU && chip->present; }

/*
 * Of a server's card all chips must have started (dcmi_init_server_per_device of dcmi_init_for_server.c). Of others
 * each one is found that has, and numbered as it is found, so that the die of a 300I Duo that is left is device 0,
 * whichever it is (dcmi_get_bus_id_from_root_pcie_info and dcmi_init_card_info_for_new of dcmi_init_for_card.c).
 */
bool is_on_card(const struct chip *chip) { return chip->pci_product == PCI_DEVICE_310P; }

static bool has_started(const struct node *node, int card_id)
{
    for (int index = 0; index < node->chip_count; index++) {
        const struct chip *chip = &state()->chips[index];
        if (is_there(chip) && chip->card_id == card_id && !chip->ready)
            return false;
    }
    return true;
}

/* The board of each card is asked for of its MCU (dcmi_flush_card_info_board_id_pos). */
static void ask_boards(const struct node *node)
{
    for (int index = 0; index < node->chip_count; index++) {
        const struct chip *chip = &state()->chips[index];
        if (is_there(chip) && node->mcu_id >= 0 && chip->device_id == 0)
            sleep_ms(chip->mcu_silent_ms);
    }
}

void find_chips(const bool taken[CHIPS])
{
    const struct node *node = &state()->node;

    ask_boards(node);
    settle_all();
    for (int index = 0; index < node->chip_count; index++) {
        if (!is_initialised)
            registered[index] = taken[index] && is_there(&state()->chips[index]);
        const struct chip *chip = &state()->chips[index];
        found[index] = registered[index] && taken[index] && is_there(chip) &&
                       (is_on_card(chip) ? chip->ready : has_started(node, chip->card_id));
        device_ids[index] = chip->device_id;
        for (int before = 0; is_on_card(chip) && before < index; before++) {
            if (!found[before] && state()->chips[before].card_id == chip->card_id)
                device_ids[index]--;
        }
    }
    is_initialised = true;
}

int device_id_of(const struct chip *chip)
{
    return is_initialised ? device_ids[chip - state()->chips] : chip->device_id;
}

bool has_initialised(void) { return is_initialised; }

bool is_registered(const struct chip *chip) { return registered[chip - state()->chips]; }

bool is_listed(const struct chip *chip)
{
    return is_initialised ? found[chip - state()->chips] : is_there(chip);
}

int find_chip(int card_id, int device_id)
{
    const struct state *node = state();

    for (int index = 0; index < node->node.chip_count; index++) {
        const struct chip *chip = &node->chips[index];
        if (is_listed(chip) && chip->card_id == card_id && device_id_of(chip) == device_id)
            return index;
    }
    return -1;
}

/* It is numbered after the chips that were found. */
int mcu_id_of(int card_id)
{
    const struct node *node = &state()->node;
    int id = node->mcu_id;

    for (int index = 0; index < node->chip_count; index++) {
        const struct chip *chip = &state()->chips[index];
        if (chip->kind == KIND_NPU && chip->card_id == card_id && is_on_card(chip) && !is_listed(chip))
            id--;
    }
    return node->mcu_id < 0 ? node->mcu_id : id;
}

bool is_mcu(int card_id, int device_id)
{
    return device_id >= 0 && device_id == mcu_id_of(card_id) && find_chip(card_id, 0) >= 0;
}

int find_by_logic_id(int logic_id)
{
    const struct state *node = state();

    for (int index = 0; index < node->node.chip_count; index++) {
        if (is_listed(&node->chips[index]) && node->chips[index].logic_id == logic_id)
            return index;
    }
    return -1;
}

int find_by_physical_id(int physical_id)
{
    const struct state *node = state();

    for (int index = 0; index < node->node.chip_count; index++) {
        if (is_listed(&node->chips[index]) && node->chips[index].physical_id == physical_id)
            return index;
    }
    return -1;
}

bool is_ready(const struct chip *chip) { return chip->present && chip->ready; }

int unready(const struct chip *chip)
{
    return chip->present ? DCMI_ERR_DEVICE_NOT_READY : DCMI_ERR_INVALID_DEVICE_ID;
}

int open_node(const char *function, int generation)
{
    int answer = enter(function, -1);

    if (answer == 0 && state()->node.generation != generation)
        return DCMI_ERR_NOT_SUPPORT;
    return answer;
}

int open_chip(const char *function, int generation, int card_id, int device_id, enum readiness readiness,
              struct chip **chip)
{
    if (state() == NULL)
        return DCMI_ERR_INNER_ERR;
    int index = generation == 1 ? find_chip(card_id, device_id) : find_by_logic_id(device_id);
    int answer = enter(function, readiness == HOST_ANSWERS ? -1 : index);

    if (answer != 0)
        return answer;
    if (state()->node.generation != generation)
        return DCMI_ERR_NOT_SUPPORT;
    if (index < 0 && generation == 1 && is_mcu(card_id, device_id)) {
        *chip = &mcu;
        return readiness == READY_OR_MCU || readiness == LISTED_OR_MCU ? DCMI_OK : DCMI_ERR_NOT_SUPPORT;
    }
    if (index < 0)
        return DCMI_ERR_INVALID_PARAMETER;
    *chip = &state()->chips[index];
    settle(*chip);
    bool is_refused = readiness >= READY_ONLY ? !is_ready(*chip) : readiness == ANY_STATE && !(*chip)->present;
    return is_refused ? unready(*chip) : DCMI_OK;
}
