/* Temperature, power, voltage, frequency, utilisation, memory, ECC, processes. */
#include "dcmi.h"

#include <string.h>

#define PUT(name, type, field)                                                                                         \
    static int name(const struct chip *chip, type *out)                                                                \
    {                                                                                                                  \
        if (out == NULL)                                                                                               \
            return DCMI_ERR_INVALID_PARAMETER;                                                                         \
        *out = (type)chip->field;                                                                                      \
        return DCMI_OK;                                                                                                \
    }

PUT(put_temperature, int, temperature_celsius)
PUT(put_power, int, power_deciwatts)
PUT(put_card_power, int, card_power_deciwatts)
PUT(put_voltage, unsigned int, voltage_centivolts)

/* One of the values that have a number of their own; those that a product does not measure are refused. */
static int put_numbered(const struct chip *chip, const uint32_t values[INPUT_TYPES], int input_type,
                        unsigned int *out)
{
    if (out == NULL || input_type < 0 || input_type >= INPUT_TYPES)
        return DCMI_ERR_INVALID_PARAMETER;
    if (values[input_type] == NO_VALUE)
        return DCMI_ERR_NOT_SUPPORT;
    if (!is_ready(chip))
        return unready(chip);
    *out = values[input_type];
    return DCMI_OK;
}

static int put_frequency(const struct chip *chip, enum dcmi_freq_type input_type, unsigned int *frequency)
{
    return put_numbered(chip, chip->frequency_mhz, (int)input_type, frequency);
}

/* Of profiled cores the driver reports 0xef, and the library then 0 (dcmi_get_npu_device_utilization_rate). */
static int put_utilization(const struct chip *chip, int input_type, unsigned int *utilization)
{
    enum { AI_CORE = 2, VECTOR_CORE = 12 };
    int answer = put_numbered(chip, chip->utilization_percent, input_type, utilization);

    if (answer == DCMI_OK && chip->profiling && (input_type == AI_CORE || input_type == VECTOR_CORE))
        *utilization = 0;
    return answer;
}

static int put_utilizations(const struct chip *chip, struct dcmi_multi_utilization_info *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *out = (struct dcmi_multi_utilization_info){
        .aic_util = chip->utilization_percent[14],
        .aiv_util = chip->utilization_percent[12],
        .aicore_util = chip->utilization_percent[2],
        .npu_util = chip->utilization_percent[13],
    };
    return DCMI_OK;
}

static int put_utilizations_of(const struct chip *chip, struct dcmi_multi_utilization_info *out, int period)
{
    return period <= 0 ? DCMI_ERR_INVALID_PARAMETER : put_utilizations(chip, out);
}

static int put_hbm(const struct chip *chip, struct dcmi_hbm_info *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *out = (struct dcmi_hbm_info){
        .memory_size = chip->hbm_size_mb,
        .freq = chip->hbm_frequency_mhz,
        .memory_usage = chip->hbm_used_mb,
        .temp = chip->hbm_temperature_celsius,
        .bandwith_util_rate = chip->hbm_bandwidth_percent,
    };
    return DCMI_OK;
}

static int put_memory(const struct chip *chip, struct dcmi_memory_info_stru *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *out = (struct dcmi_memory_info_stru){
        .memory_size = chip->memory_size_mb,
        .freq = chip->memory_frequency_mhz,
        .utiliza = chip->memory_utilization_percent,
    };
    return DCMI_OK;
}

static int put_memory_v3(const struct chip *chip, struct dcmi_get_memory_info_stru *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    *out = (struct dcmi_get_memory_info_stru){
        .memory_size = chip->memory_size_mb,
        .memory_available = chip->memory_available_mb,
        .freq = chip->memory_frequency_mhz,
        .utiliza = chip->memory_utilization_percent,
    };
    return DCMI_OK;
}

/* Older callers have room for seven words, so no more is written than the library is set to know. */
static int put_ecc(const struct chip *chip, enum dcmi_device_type memory, struct dcmi_ecc_info *out)
{
    if (out == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    if ((int)memory < 0 || (int)memory >= ECC_MEMORIES || chip->ecc_enabled[memory] == NO_VALUE)
        return DCMI_ERR_NOT_SUPPORT;
    if (!is_ready(chip))
        return unready(chip);
    struct dcmi_ecc_info whole = {
        .enable_flag = chip->ecc_enabled[memory],
        .single_bit_error_cnt = chip->ecc_single[memory],
        .double_bit_error_cnt = chip->ecc_double[memory],
        .total_single_bit_error_cnt = chip->ecc_total_single[memory],
        .total_double_bit_error_cnt = chip->ecc_total_double[memory],
        .single_bit_isolated_pages_cnt = chip->ecc_isolated_single[memory],
        .double_bit_isolated_pages_cnt = chip->ecc_isolated_double[memory],
        .single_bit_next_isolated_pages_cnt = chip->ecc_next_isolated_single[memory],
        .double_bit_next_isolated_pages_cnt = chip->ecc_next_isolated_double[memory],
    };
    memcpy(out, &whole, state()->node.ecc_words == 9 ? sizeof whole : 7 * sizeof(int));
    return DCMI_OK;
}

/*
 * The host's driver knows the processes; their memory is asked for next, one by one. Of one that has ended since it was
 * listed the kernel answers that it is not supported (dms_get_process_memory of dms_process_info.c), and so does the
 * whole call; the next list is without it. The caller holds the lock.
 */
static bool has_one_just_ended(struct chip *chip)
{
    bool ended = false;

    for (int place = chip->process_count - 1; place >= 0; place--) {
        if (chip->process_memory_bytes[place] == PROCESS_ENDED) {
            remove_process(chip, place);
            ended = true;
        }
    }
    return ended;
}

static int copy_processes(struct chip *chip, struct dcmi_proc_mem_info *out, int *count)
{
    enum { ROOM = 64 };

    if (processes_on(chip) > 0 && !is_ready(chip))
        return DCMI_ERR_DEVICE_NOT_READY;
    if (has_one_just_ended(chip))
        return DCMI_ERR_NOT_SUPPORT;
    int written = chip->process_count < ROOM ? chip->process_count : ROOM;
    for (int index = 0; index < written; index++)
        out[index] = (struct dcmi_proc_mem_info){chip->process_ids[index], chip->process_memory_bytes[index]};
    *count = chip->process_count_lie == NO_LIE ? written : chip->process_count_lie;
    return DCMI_OK;
}

static int put_processes(struct chip *chip, struct dcmi_proc_mem_info *out, int *count)
{
    if (out == NULL || count == NULL)
        return DCMI_ERR_INVALID_PARAMETER;
    lock_state();
    int answer = copy_processes(chip, out, count);
    unlock_state();
    return answer;
}

EXPORTED_CALL(dcmi_get_device_temperature, dcmiv2_get_device_temperature, READY_ONLY, put_temperature,
              (int *temperature), (temperature))
EXPORTED_CALL(dcmi_get_device_power_info, dcmiv2_get_device_power_info, READY_ONLY, put_power, (int *power), (power))
EXPORTED_CALL(dcmi_get_device_voltage, dcmiv2_get_device_voltage, READY_ONLY, put_voltage, (unsigned int *voltage),
              (voltage))
EXPORTED_CALL(dcmi_get_device_frequency, dcmiv2_get_device_frequency, LISTED_OR_MCU, put_frequency,
              (enum dcmi_freq_type input_type, unsigned int *frequency), (input_type, frequency))
EXPORTED_CALL(dcmi_get_device_utilization_rate, dcmiv2_get_device_utilization_rate, LISTED_OR_MCU, put_utilization,
              (int input_type, unsigned int *utilization_rate), (input_type, utilization_rate))
EXPORTED_CALL(dcmi_get_device_multi_utilization_rate, dcmiv2_get_device_multi_utilization_rate, READY_ONLY,
              put_utilizations, (struct dcmi_multi_utilization_info *util_info), (util_info))
EXPORTED_CALL(dcmi_get_device_multi_utilization_rate_period, dcmiv2_get_device_multi_utilization_rate_period,
              READY_ONLY, put_utilizations_of, (struct dcmi_multi_utilization_info *util_info, int period),
              (util_info, period))
EXPORTED_CALL(dcmi_get_device_hbm_info, dcmiv2_get_device_hbm_info, READY_ONLY, put_hbm,
              (struct dcmi_hbm_info *hbm_info), (hbm_info))
EXPORTED_V1(dcmi_get_memory_info, READY_ONLY, put_memory, (struct dcmi_memory_info_stru *device_memory_info),
            (device_memory_info))
EXPORTED_V1(dcmi_get_device_memory_info_v3, READY_ONLY, put_memory_v3, (struct dcmi_get_memory_info_stru *memory_info),
            (memory_info))
EXPORTED_CALL(dcmi_get_device_ecc_info, dcmiv2_get_device_ecc_info, LISTED_OR_MCU, put_ecc,
              (enum dcmi_device_type input_type, struct dcmi_ecc_info *device_ecc_info), (input_type, device_ecc_info))
EXPORTED_CALL(dcmi_get_device_resource_info, dcmiv2_get_device_proc_mem_info, ANY_STATE, put_processes,
              (struct dcmi_proc_mem_info *proc_info, int *proc_num), (proc_info, proc_num))

EXPORTED int dcmi_mcu_get_power_info(int card_id, int *power);
EXPORTED int dcmi_mcu_get_power_info(int card_id, int *power)
{
    struct chip *chip;
    int answer = open_chip(__func__, 1, card_id, 0, READY_ONLY, &chip);

    return answer != 0 ? answer : put_card_power(chip, power);
}
