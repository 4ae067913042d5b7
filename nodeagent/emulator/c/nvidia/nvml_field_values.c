/*
 * nvmlDeviceGetFieldValues: many values in one call, each with its own return code. The meaning of an id is in
 * nvml_field_values.def. An override for a function named "field:230" is for that id alone, one for "field:165:3" for
 * that scope of it; one that answers AS_IT_CAME leaves the entry so.
 */
#include "nvml.h"

#include <stdio.h>

enum { LINK_BINS = 16, ALL_LINKS = -1, AS_IT_CAME = -1 };

enum find { ONE, SHARED, SUM, LANES, LANES_SHARED, LANES_SUM, LINK, LINK_SHARED, LINK_OR_ALL, LINK_BIN, C2C };
enum width { WIDTH_U32, WIDTH_I32, WIDTH_U64 };

struct row {
    uint16_t first, ids;
    enum find find;
    uint16_t start;
    enum width width;
    size_t offset, elements;
};

#define OF(field) (((struct chip *)0)->field)
#define WIDTH(value)                                                                                                   \
    _Generic((value), uint32_t: WIDTH_U32, uint32_t *: WIDTH_U32, int32_t: WIDTH_I32, int32_t *: WIDTH_I32,            \
             uint64_t: WIDTH_U64, uint64_t *: WIDTH_U64)
#define BYTES(value)                                                                                                   \
    _Generic((value), uint32_t: 4, uint32_t *: 4, int32_t: 4, int32_t *: 4, uint64_t: 8, uint64_t *: 8)

static const struct row rows[] = {
#define ROW(first, ids, find, field, start)                                                                            \
    {first, ids, find, start, WIDTH(OF(field)), offsetof(struct chip, field), sizeof OF(field) / BYTES(OF(field))},
#include "nvml_field_values.def"
};

static const struct row *row_of(uint32_t id)
{
    for (size_t place = 0; place < sizeof rows / sizeof *rows; place++)
        if (id >= rows[place].first && id < (uint32_t)rows[place].first + rows[place].ids)
            return &rows[place];
    return NULL;
}

/* A product that has no such links has all ones of them. */
static uint32_t known_links(uint32_t count) { return count > GPU_LINKS ? 0 : count; }

/* Where an id's element lies, and whether the link that it is about exists. */
static nvmlReturn_t find_element(const struct chip *gpu, const struct row *row, uint32_t id, uint32_t scope,
                                 size_t *element)
{
    uint32_t behind = id - row->first;
    uint32_t links = known_links(row->find == C2C ? gpu->gpu_c2c_link_count : gpu->gpu_nvlink_count);

    switch (row->find) {
    case ONE:
        *element = row->start + behind;
        return NVML_SUCCESS;
    case LANES:
    case LANES_SHARED:
        *element = row->find == LANES ? row->start + behind : 0;
        return row->start + behind < links ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case LINK:
    case LINK_OR_ALL:
    case C2C:
        *element = scope;
        break;
    case LINK_BIN:
        *element = (size_t)scope * LINK_BINS + behind;
        break;
    default:
        *element = 0;
        return row->find == LINK_SHARED && scope >= links ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
    }
    if (links == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return scope < links ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t put_sum(const uint64_t *values, size_t count, nvmlFieldValue_t *out)
{
    bool has_one = false;
    uint64_t sum = 0;

    for (size_t place = 0; place < count; place++) {
        if (values[place] == UINT64_MAX)
            continue;
        has_one = true;
        sum += values[place];
    }
    out->valueType = NVML_VALUE_UNSIGNED_LONG_LONG;
    return has_one ? put_u64(&out->value.ullVal, sum) : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t put_row(const struct chip *gpu, const struct row *row, nvmlFieldValue_t *out)
{
    const void *values = (const char *)gpu + row->offset;
    size_t element = 0;

    if (row->find == SUM)
        return put_sum(values, row->elements, out);
    if (row->find == LANES_SUM || (row->find == LINK_OR_ALL && out->scopeId == (uint32_t)ALL_LINKS))
        return put_sum(values, known_links(gpu->gpu_nvlink_count), out);
    nvmlReturn_t answer = find_element(gpu, row, out->fieldId, out->scopeId, &element);
    if (answer != NVML_SUCCESS)
        return answer;
    switch (row->width) {
    case WIDTH_U32:
        out->valueType = NVML_VALUE_UNSIGNED_INT;
        return put_u32(&out->value.uiVal, ((const uint32_t *)values)[element]);
    case WIDTH_I32:
        out->valueType = NVML_VALUE_SIGNED_INT;
        return put_i32(&out->value.siVal, ((const int32_t *)values)[element]);
    default:
        out->valueType = NVML_VALUE_UNSIGNED_LONG_LONG;
        return put_u64(&out->value.ullVal, ((const uint64_t *)values)[element]);
    }
}

/* What an override sets for the field, or for this scope of it. */
static nvmlReturn_t enter_field(const struct chip *gpu, const nvmlFieldValue_t *field)
{
    char name[NAME];

    snprintf(name, sizeof name, "field:%u", field->fieldId);
    nvmlReturn_t answer = enter(name, slot_of_gpu(gpu));
    if (answer != NVML_SUCCESS)
        return answer;
    snprintf(name, sizeof name, "field:%u:%u", field->fieldId, field->scopeId);
    return overridden(name, slot_of_gpu(gpu));
}

static nvmlReturn_t put_field(const struct chip *gpu, nvmlFieldValue_t *out)
{
    const struct row *row = row_of(out->fieldId);

    if (out->fieldId == 0 || out->fieldId >= state()->node.gpu_field_end)
        return NVML_ERROR_INVALID_ARGUMENT;
    return row == NULL ? NVML_ERROR_NOT_SUPPORTED : put_row(gpu, row, out);
}

NVML_FUNCTION(nvmlDeviceGetFieldValues, nvmlDevice_t device, int32_t count, nvmlFieldValue_t *values)
{
    ON_GPU(device);
    if (values == NULL || count < 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    int32_t populated = 0;
    for (int32_t place = 0; place < count; place++) {
        int answer = (int)enter_field(gpu, &values[place]);
        if (answer == AS_IT_CAME)
            continue;
        values[place].timestamp = (int64_t)(now_ms() * 1000u);
        values[place].latencyUsec = 0;
        values[place].value.ullVal = 0;
        values[place].nvmlReturn = answer != NVML_SUCCESS ? (uint32_t)answer : put_field(gpu, &values[place]);
        populated += values[place].nvmlReturn == NVML_SUCCESS;
    }
    return populated > 0 ? NVML_SUCCESS : (nvmlReturn_t)state()->node.gpu_unpopulated_answer;
}
