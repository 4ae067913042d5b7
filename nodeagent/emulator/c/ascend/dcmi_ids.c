/* Which number of one kind belongs to which of another. The host answers: a hung chip is still listed. */
#include "dcmi.h"

static int put_number(int number, int *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *out = number;
    return DCMI_OK;
}

static int put_type(enum dcmi_unit_type known, enum dcmi_unit_type *type)
{
    if (type == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *type = known;
    return DCMI_OK;
}

EXPORTED int dcmi_get_device_type(int card_id, int device_id, enum dcmi_unit_type *device_type);
EXPORTED int dcmi_get_device_type(int card_id, int device_id, enum dcmi_unit_type *device_type)
{
    int answer = open_node(__func__, 1);

    if (answer != 0)
        return answer;
    if (is_mcu(card_id, device_id))
        return put_type(MCU_TYPE, device_type);
    return find_chip(card_id, device_id) < 0 ? DCMI_ERR_INVALID_PARAMETER : put_type(NPU_TYPE, device_type);
}

EXPORTED int dcmiv2_get_device_type(int dev_id, enum dcmi_unit_type *device_type);
EXPORTED int dcmiv2_get_device_type(int dev_id, enum dcmi_unit_type *device_type)
{
    struct chip *chip;
    int answer = open_chip(__func__, 2, 0, dev_id, HOST_ANSWERS, &chip);

    return answer != 0 ? answer : put_type(NPU_TYPE, device_type);
}

EXPORTED int dcmi_get_device_logic_id(int *device_logic_id, int card_id, int device_id);
EXPORTED int dcmi_get_device_logic_id(int *device_logic_id, int card_id, int device_id)
{
    struct chip *chip;
    int answer = open_chip(__func__, 1, card_id, device_id, HOST_ANSWERS, &chip);

    return answer != 0 ? answer : put_number(chip->logic_id, device_logic_id);
}

/* The beginning of a call that finds a chip by a number of its own. */
static int open_found(const char *function, int generation, int index, const struct chip **chip)
{
    int answer = enter(function, -1);

    if (answer != 0)
        return answer;
    if (state()->node.generation != generation)
        return DCMI_ERR_NOT_SUPPORT;
    if (index < 0 || !state()->chips[index].present)
        return DCMI_ERR_INVALID_DEVICE_ID;
    *chip = &state()->chips[index];
    return DCMI_OK;
}

static int open_logic(const char *function, int generation, int logic_id, const struct chip **chip)
{
    return state() == NULL ? DCMI_ERR_INNER_ERR : open_found(function, generation, find_by_logic_id(logic_id), chip);
}

/* Of a 950 the driver answers, and it knows the chips that the library could not list, too. */
static int open_known(const char *function, int logic_id, const struct chip **chip)
{
    int index = 0;

    if (state() == NULL)
        return DCMI_ERR_INNER_ERR;
    while (index < state()->node.chip_count && state()->chips[index].logic_id != logic_id)
        index++;
    bool known = index < state()->node.chip_count && is_registered(&state()->chips[index]);
    return open_found(function, 2, known ? index : -1, chip);
}

static int open_physical(const char *function, int generation, int physical_id, const struct chip **chip)
{
    if (state() == NULL)
        return DCMI_ERR_INNER_ERR;
    return open_found(function, generation, find_by_physical_id(physical_id), chip);
}

EXPORTED int dcmi_get_device_logicid_from_phyid(unsigned int phyid, unsigned int *logicid);
EXPORTED int dcmi_get_device_logicid_from_phyid(unsigned int phyid, unsigned int *logicid)
{
    const struct chip *chip = NULL;
    int answer = open_physical(__func__, 1, (int)phyid, &chip);

    return answer != 0 ? answer : put_number(chip->logic_id, (int *)logicid);
}

EXPORTED int dcmi_get_device_phyid_from_logicid(unsigned int logicid, unsigned int *phyid);
EXPORTED int dcmi_get_device_phyid_from_logicid(unsigned int logicid, unsigned int *phyid)
{
    const struct chip *chip = NULL;
    int answer = open_logic(__func__, 1, (int)logicid, &chip);

    return answer != 0 ? answer : put_number(chip->physical_id, (int *)phyid);
}

EXPORTED int dcmiv2_get_chip_phy_id_by_dev_id(int dev_id, unsigned int *phyid);
EXPORTED int dcmiv2_get_chip_phy_id_by_dev_id(int dev_id, unsigned int *phyid)
{
    const struct chip *chip = NULL;
    int answer = open_known(__func__, dev_id, &chip);

    return answer != 0 ? answer : put_number(chip->physical_id, (int *)phyid);
}

EXPORTED int dcmiv2_get_dev_id_by_chip_phy_id(int phyid, unsigned int *dev_id);
EXPORTED int dcmiv2_get_dev_id_by_chip_phy_id(int phyid, unsigned int *dev_id)
{
    const struct chip *chip = NULL;
    int answer = open_physical(__func__, 2, phyid, &chip);

    return answer != 0 ? answer : put_number(chip->logic_id, (int *)dev_id);
}

static int put_pair(int first, int second, int *first_out, int *second_out)
{
    if (first_out == NULL || second_out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *first_out = first;
    *second_out = second;
    return DCMI_OK;
}

EXPORTED int dcmi_get_card_id_device_id_from_logicid(int *card_id, int *device_id, unsigned int device_logic_id);
EXPORTED int dcmi_get_card_id_device_id_from_logicid(int *card_id, int *device_id, unsigned int device_logic_id)
{
    const struct chip *chip = NULL;
    int answer = open_logic(__func__, 1, (int)device_logic_id, &chip);

    return answer != 0 ? answer : put_pair(chip->card_id, device_id_of(chip), card_id, device_id);
}

EXPORTED int dcmi_get_card_id_device_id_from_phyid(int *card_id, int *device_id, unsigned int device_phy_id);
EXPORTED int dcmi_get_card_id_device_id_from_phyid(int *card_id, int *device_id, unsigned int device_phy_id)
{
    const struct chip *chip = NULL;
    int answer = open_physical(__func__, 1, (int)device_phy_id, &chip);

    return answer != 0 ? answer : put_pair(chip->card_id, device_id_of(chip), card_id, device_id);
}

EXPORTED int dcmiv2_get_slot_id_and_chip_id_by_dev_id(int dev_id, unsigned int *slot_id, unsigned int *chip_id);
EXPORTED int dcmiv2_get_slot_id_and_chip_id_by_dev_id(int dev_id, unsigned int *slot_id, unsigned int *chip_id)
{
    const struct chip *chip = NULL;
    int answer = open_logic(__func__, 2, dev_id, &chip);

    return answer != 0 ? answer : put_pair((int)chip->slot_id, chip->device_id, (int *)slot_id, (int *)chip_id);
}
