/*
 * The end of a reset. No thread waits for it: the next caller, or the thread that serves subscribers, finds that its
 * time has come, and finishes it.
 */
#include "dcmi.h"

static bool is_over(const struct chip *chip, uint64_t now)
{
    return chip->boot_began_ns != 0 && chip->reset_ends && !chip->awaits_rescan &&
           now >= chip->boot_began_ns + (uint64_t)chip->reset_ms * 1000000u;
}

/* The caller holds the lock. */
static void finish(struct chip *chip)
{
    struct event event = {
        .library = LIBRARY_DCMI,
        .chip = (int32_t)(chip - state()->chips),
        .code = 0x80000000u | RESET_FINISHED,
        .assertion = DCMI_EVENT_ONCE,
        .device_id_lie = NO_LIE,
        .name = "reset finished",
    };

    chip->boot_began_ns = 0;
    chip->ready = 1;
    chip->outband_prepared = 0;
    if (chip->reset_heals)
        chip->code_count = 0;
    post_event(&event);
}

void settle(struct chip *chip)
{
    if (!is_over(chip, now_ns()))
        return;
    lock_state();
    if (is_over(chip, now_ns()))
        finish(chip);
    unlock_state();
}

long next_end_ms(void)
{
    struct state *node = state();
    uint64_t now = now_ns(), nearest = UINT64_MAX;

    for (int index = 0; index < node->node.chip_count; index++) {
        struct chip *chip = &node->chips[index];
        if (chip->boot_began_ns == 0 || !chip->reset_ends || chip->awaits_rescan)
            continue;
        uint64_t end = chip->boot_began_ns + (uint64_t)chip->reset_ms * 1000000u;
        if (end < nearest)
            nearest = end;
    }
    if (nearest == UINT64_MAX)
        return -1;
    return nearest <= now ? 0 : (long)((nearest - now) / 1000000u) + 1;
}

void settle_all(void)
{
    for (int index = 0; index < state()->node.chip_count; index++)
        settle(&state()->chips[index]);
}
