/*
 * Processes that the library itself kills before a reset, as dcmi_clear_running_proc of the vendor's
 * dcmi_hot_reset_intf.c: those on root's list that hold any chip it has found. The vendor's list is
 * /etc/custom_process.cfg; here it is custom_process.cfg next to the emulated node, so that none of the machine's counts.
 */
#define _GNU_SOURCE
#include "dcmi.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LINES = 10, LINE = 256 };

static bool is_held(int process)
{
    for (int index = 0; index < state()->node.chip_count; index++) {
        const struct chip *chip = &state()->chips[index];
        for (int place = 0; is_listed(chip) && place < chip->process_count; place++) {
            if (chip->process_ids[place] == process)
                return true;
        }
    }
    return false;
}

static bool runs_as(int process, const char *name)
{
    char path[64], known[LINE] = "";

    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool found = fscanf(file, "Name: %255s", known) == 1 && strcmp(known, name) == 0;
    fclose(file);
    return found;
}

static FILE *open_list(void)
{
    static const char here;
    char path[PATH_MAX];
    Dl_info library;

    if (dladdr(&here, &library) == 0)
        return NULL;
    const char *slash = strrchr(library.dli_fname, '/');
    snprintf(path, sizeof path, "%.*s/custom_process.cfg", slash == NULL ? 1 : (int)(slash - library.dli_fname),
             slash == NULL ? "." : library.dli_fname);
    return fopen(path, "re");
}

void kill_listed(void)
{
    char line[LINE], name[LINE];
    int process;
    FILE *list = open_list();

    for (int count = 0; list != NULL && count < LINES && fgets(line, sizeof line, list) != NULL; count++) {
        if (sscanf(line, " AllowKilledWhenResetNPU : %255[^: ] : %d", name, &process) != 2 || process <= 1)
            continue;
        if (runs_as(process, name) && is_held(process))
            kill(process, SIGKILL);
    }
    if (list != NULL)
        fclose(list);
}
