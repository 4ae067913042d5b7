/*
 * What the files of libnvidia-ml.so.1 share: the session of this process, handles, the beginning of an exported
 * call, and the ways to answer a value. A value that a product does not have is all ones and answers NOT_SUPPORTED.
 */
#ifndef EMULATOR_NVML_H
#define EMULATOR_NVML_H

#include "nvml_abi.h"
#include "shared.h"

#define EXPORTED __attribute__((visibility("default")))

/* An exported function is declared and defined in one go: callers have the vendor's header, not this one. */
#define NVML_FUNCTION(name, ...)                                                                                       \
    EXPORTED nvmlReturn_t name(__VA_ARGS__);                                                                           \
    EXPORTED nvmlReturn_t name(__VA_ARGS__)

/*
 * The beginning of a call about one GPU: leaves the function with the answer when there is nothing to ask, else
 * declares `gpu`. ON_GPU refuses the handle of a MIG device; ON_GPU_OR_MIG also declares `mig`, 0 for the whole GPU.
 */
#define ON_GPU_OR_MIG(device)                                                                                          \
    struct chip *gpu = NULL;                                                                                           \
    int mig = 0;                                                                                                       \
    nvmlReturn_t refusal = open_gpu(__func__, device, &gpu, &mig);                                                     \
    if (refusal != NVML_SUCCESS)                                                                                       \
        return refusal
#define ON_GPU(device)                                                                                                 \
    ON_GPU_OR_MIG(device);                                                                                             \
    if (mig != 0)                                                                                                      \
        return NVML_ERROR_INVALID_ARGUMENT

/* The same for a call about no GPU. */
#define IN_SESSION()                                                                                                   \
    nvmlReturn_t refusal = open_session(__func__);                                                                     \
    if (refusal != NVML_SUCCESS)                                                                                       \
        return refusal

nvmlReturn_t open_gpu(const char *function, nvmlDevice_t device, struct chip **gpu, int *mig);
nvmlReturn_t open_session(const char *function);

/* Takes back one of its openings, if there is one; is_last: that was the only one. */
bool close_session(bool *is_last);

/* What every call answers now: UNINITIALIZED, an error since the driver was unloaded or loaded again, or 0. */
nvmlReturn_t session_answer(void);

/* What every call about this GPU answers: GPU_IS_LOST, RESET_REQUIRED, .., or 0. */
nvmlReturn_t gpu_answer(const struct chip *gpu);

/* The GPUs that were there when the session began, as indexes into state()->chips in NVML's order. */
int session_gpus(int slots[CHIPS]);
int slot_of_gpu(const struct chip *gpu);

/* Makes the handle of a GPU (mig 0) or MIG device (1..) and counts it as given out. */
nvmlReturn_t give_handle(int slot, int mig, nvmlDevice_t *device);

/* The handle of a GPU that was given out before, also when that GPU answers nothing any more. */
nvmlDevice_t handle_of(int slot, int mig);
bool read_handle(nvmlDevice_t device, int *slot, int *mig);

/* Event sets end with the session, and are counted like handles. */
void free_event_sets(void);
void count_event_sets(int change);

/* The driver's version that this library belongs to: the one of the day the process loaded it. */
const char *library_version(void);

nvmlReturn_t put_string(char *buffer, uint32_t bytes, const char *text);
void mig_uuid(const struct chip *gpu, int mig, char text[NVML_UUID_ASCII_SIZE]);

/* Whether a MIG mode is on that keeps questions about the whole GPU from being answered. */
static inline bool is_partitioned(const struct chip *gpu) { return gpu->gpu_mig_mode == 1; }

static inline nvmlReturn_t put_u32(uint32_t *out, uint32_t value)
{
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (value == UINT32_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = value;
    return NVML_SUCCESS;
}

static inline nvmlReturn_t put_u64(uint64_t *out, uint64_t value)
{
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (value == UINT64_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = value;
    return NVML_SUCCESS;
}

static inline nvmlReturn_t put_i32(int32_t *out, int32_t value)
{
    if (out == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (value == INT32_MIN)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = value;
    return NVML_SUCCESS;
}

#define PUT(out, value)                                                                                                \
    _Generic((out), uint32_t *: put_u32, uint64_t *: put_u64, int32_t *: put_i32)(out, value)

/* The rows of a table of values are asked for by number: one beyond its end is not a valid argument. */
#define PUT_ELEMENT(out, values, index)                                                                                \
    ((index) < sizeof(values) / sizeof(*(values)) ? PUT(out, (values)[index]) : NVML_ERROR_INVALID_ARGUMENT)

#endif
