/* What a chip and its card are: names, die, board, PCI address, label. */
#include "dcmi.h"

#include <string.h>

static int put_chip_info(const struct chip *chip, struct dcmi_chip_info *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    put_text((char *)out->chip_type, sizeof out->chip_type, chip->chip_type);
    put_text((char *)out->chip_name, sizeof out->chip_name, chip->chip_name);
    put_text((char *)out->chip_ver, sizeof out->chip_ver, chip->chip_version);
    out->aicore_cnt = chip->aicore_count;
    return DCMI_OK;
}

static int put_chip_info_v2(const struct chip *chip, struct dcmi_chip_info_v2 *out)
{
    /* The older structure is the beginning of the newer one. */
    int answer = put_chip_info(chip, (struct dcmi_chip_info *)out);

    if (answer == DCMI_OK)
        put_text((char *)out->npu_name, sizeof out->npu_name, chip->npu_name);
    return answer;
}

/* What is joined to its host by UnifiedBus has none (dcmiv2_get_device_pcie_info). */
static int put_pcie_info(const struct chip *chip, struct dcmi_pcie_info_all *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    if (chip->pci_product == 0)
        return DCMI_ERR_NOT_SUPPORT;
    *out = (struct dcmi_pcie_info_all){
        .venderid = chip->pci_vendor,
        .subvenderid = chip->pci_subvendor,
        .deviceid = chip->pci_product,
        .subdeviceid = chip->pci_subproduct,
        .domain = (int)chip->pci_domain,
        .bdf_busid = chip->pci_bus,
        .bdf_deviceid = chip->pci_device,
        .bdf_funcid = chip->pci_function,
    };
    return DCMI_OK;
}

/*
 * None of the emulated chips has an NDIE; the others are one and the same, but that a 950 has no VDIE
 * (dcmi_get_npu_device_die of the vendor's dcmi_inner_info_get.c).
 */
static int put_die(const struct chip *chip, enum dcmi_die_type type, struct dcmi_die_id *out)
{
    if (out == NULL || type >= INVALID_DIE)
        return DCMI_ERR_INVALID_PARAMETER;
    if (type != DDIE && (type != VDIE || state()->node.generation == 2))
        return DCMI_ERR_NOT_SUPPORT;
    if (!is_ready(chip))
        return unready(chip);
    memcpy(out->soc_die, chip->vdie, sizeof out->soc_die);
    return DCMI_OK;
}

static int put_board(const struct chip *chip, struct dcmi_board_info *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *out = (struct dcmi_board_info){chip->board_id, chip->pcb_id, chip->bom_id, chip->slot_id};
    return DCMI_OK;
}

static int put_mainboard(const struct chip *chip, unsigned int *mainboard_id)
{
    (void)chip;
    if (mainboard_id == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *mainboard_id = state()->node.mainboard_id;
    return DCMI_OK;
}

static int put_label(const struct chip *chip, struct dcmi_elabel_info *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    put_text(out->product_name, sizeof out->product_name, chip->product_name);
    put_text(out->model, sizeof out->model, chip->model);
    put_text(out->manufacturer, sizeof out->manufacturer, chip->manufacturer);
    put_text(out->manufacturer_date, sizeof out->manufacturer_date, chip->manufactured);
    put_text(out->serial_number, sizeof out->serial_number, chip->serial);
    return DCMI_OK;
}

static int put_chip_slot(const struct chip *chip, int *chip_slot)
{
    if (chip_slot == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *chip_slot = chip->chip_slot;
    return DCMI_OK;
}

/* length is the room of the caller, then the length of the text. */
static int put_affinity(const struct chip *chip, char *affinity_cpu, int *length)
{
    if (affinity_cpu == NULL || length == NULL || *length <= 0)
        return DCMI_ERR_INVALID_PARAMETER;
    put_text(affinity_cpu, (size_t)*length, chip->cpu_affinity);
    *length = (int)strlen(chip->cpu_affinity);
    return DCMI_OK;
}

EXPORTED_V1(dcmi_get_device_chip_info, READY_ONLY, put_chip_info, (struct dcmi_chip_info *chip_info), (chip_info))
EXPORTED_CALL(dcmi_get_device_chip_info_v2, dcmiv2_get_device_chip_info, READY_ONLY, put_chip_info_v2,
              (struct dcmi_chip_info_v2 *chip_info), (chip_info))
EXPORTED_CALL(dcmi_get_device_pcie_info_v2, dcmiv2_get_device_pcie_info, READY_ONLY, put_pcie_info,
              (struct dcmi_pcie_info_all *pcie_info), (pcie_info))
EXPORTED_CALL(dcmi_get_device_die_v2, dcmiv2_get_device_die_id, LISTED_OR_MCU, put_die,
              (enum dcmi_die_type input_type, struct dcmi_die_id *die_id), (input_type, die_id))
EXPORTED_CALL(dcmi_get_device_board_info, dcmiv2_get_device_board_info, READY_ONLY, put_board,
              (struct dcmi_board_info *board_info), (board_info))
EXPORTED_CALL(dcmi_get_mainboard_id, dcmiv2_get_mainboard_id, READY_ONLY, put_mainboard,
              (unsigned int *mainboard_id), (mainboard_id))
EXPORTED_V1(dcmi_get_device_chip_slot, READY_ONLY, put_chip_slot, (int *chip_pos_id), (chip_pos_id))
EXPORTED_CALL(dcmi_get_affinity_cpu_info_by_device_id, dcmiv2_get_affinity_cpu_info_by_dev_id, READY_ONLY,
              put_affinity, (char *affinity_cpu, int *length), (affinity_cpu, length))
EXPORTED_V2(dcmiv2_get_device_elabel_info, READY_ONLY, put_label, (struct dcmi_elabel_info *elabel_info),
            (elabel_info))

static int find_described(int card_id, int device_id)
{
    for (int index = 0; state() != NULL && index < state()->node.chip_count; index++) {
        const struct chip *chip = &state()->chips[index];
        if (chip->kind == KIND_NPU && chip->card_id == card_id && chip->device_id == device_id)
            return index;
    }
    return -1;
}

/* The library works it out of the card's number: also of a card that it has not found, whose chips do not answer. */
EXPORTED int dcmi_get_netdev_brother_device(int card_id, int device_id, int *brother_card_id);
EXPORTED int dcmi_get_netdev_brother_device(int card_id, int device_id, int *brother_card_id)
{
    int index = find_described(card_id, device_id);
    int answer = enter(__func__, index);

    if (answer != 0)
        return answer;
    if (state()->node.generation != 1)
        return DCMI_ERR_NOT_SUPPORT;
    if (brother_card_id == NULL || index < 0)
        return DCMI_ERR_INVALID_PARAMETER;
    *brother_card_id = state()->chips[index].brother_card_id;
    return DCMI_OK;
}

/*
 * The card's MCU is asked for each text, by way of the chip. Where none comes the library has waited for it, writes
 * "NA" and answers 0 (dcmi_mcu_get_device_elabel_info).
 */
static int put_no_label(const struct chip *chip, struct dcmi_elabel_info *out)
{
    enum { TEXTS = 4 };

    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    sleep_ms(TEXTS * (long)chip->mcu_silent_ms);
    put_text(out->product_name, sizeof out->product_name, "NA");
    put_text(out->model, sizeof out->model, "NA");
    put_text(out->manufacturer, sizeof out->manufacturer, "NA");
    put_text(out->serial_number, sizeof out->serial_number, "NA");
    return DCMI_OK;
}

EXPORTED int dcmi_get_card_elabel_v2(int card_id, struct dcmi_elabel_info *elabel_info);
EXPORTED int dcmi_get_card_elabel_v2(int card_id, struct dcmi_elabel_info *elabel_info)
{
    struct chip *chip;
    int answer = open_chip(__func__, 1, card_id, 0, LISTED_OR_MCU, &chip);

    if (answer != 0)
        return answer;
    return chip->mcu_silent_ms == 0 && is_ready(chip) ? put_label(chip, elabel_info)
                                                      : put_no_label(chip, elabel_info);
}
