/*
 * Whose the chips are. The kernel driver gives each to one mount namespace at a time, that of the first process which
 * opens it, until no process there lives; a process that it takes for the host's opens all of them and owns none (hicann/driver:
 * src/sdk_driver/pbl/uda/uda_access.c). The host here is where the emulator was started. A namespace lives as long as
 * a process of it that has initialised the library.
 *
 * Which processes may open them at all: if the node names a folder of device nodes, their owner and mode decide.
 */
#define _GNU_SOURCE
#include "dcmi.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t privileged = (UINT64_C(1) << (CAP_AUDIT_READ + 1)) - 1;
static const ino_t first_user_namespace = 0xEFFFFFFD;

static ino_t namespace_of(const char *kind)
{
    struct stat status;
    char path[32];

    snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static bool is_privileged(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

    if (syscall(SYS_capget, &header, data) != 0 || namespace_of("user") != first_user_namespace)
        return false;
    uint64_t effective = data[0].effective | (uint64_t)data[1].effective << 32;
    return (effective & privileged) == privileged;
}

static bool is_the_hosts(void)
{
    return namespace_of("mnt") == (ino_t)state()->node.host_namespace || is_privileged();
}

/* For as long as this process lives; other processes' locks are seen, also those of other pid namespaces. */
static bool mark(const struct chip *chip, short how)
{
    struct flock place = {.l_type = how, .l_whence = SEEK_SET, .l_start = chip - state()->chips, .l_len = 1};

    return fcntl(state_descriptor(), F_OFD_SETLK, &place) == 0;
}

/* The caller holds the lock of the node. */
static bool occupy(struct chip *chip)
{
    uint64_t own = namespace_of("mnt");

    if (chip->owner_namespace != own && !mark(chip, F_WRLCK))
        return false;
    chip->owner_namespace = own;
    return mark(chip, F_RDLCK);
}

static bool can_open(const char *name)
{
    char path[TEXT + NAME];

    if (state()->node.device_folder[0] == '\0')
        return true;
    snprintf(path, sizeof path, "%s/%s", state()->node.device_folder, name);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
}

static bool can_open_chip(const struct chip *chip)
{
    char name[NAME];

    snprintf(name, sizeof name, "davinci%d", chip->physical_id);
    return can_open(name);
}

int take_chips(bool taken[CHIPS])
{
    bool all = is_the_hosts();
    int count = 0, lost = 0;

    if (!can_open("davinci_manager"))
        return DCMI_ERR_INNER_ERR;
    lock_state();
    for (int index = 0; index < state()->node.chip_count; index++) {
        struct chip *chip = &state()->chips[index];
        taken[index] = chip->kind == KIND_NPU && can_open_chip(chip) && (all || occupy(chip));
        count += taken[index];
        lost += chip->kind == KIND_NPU && !taken[index];
    }
    unlock_state();
    return count == 0 && lost > 0 ? DCMI_ERR_RESOURCE_OCCUPIED : DCMI_OK;
}
