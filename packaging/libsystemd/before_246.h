/* For systemd-python: one build runs with each libsystemd since 239.
 *
 * sd_journal_enumerate_available_data() and its sibling came with libsystemd 246 (sd_journal_get_data(3)). Before, a field
 * that the library cannot unpack ends the entry; there is no other way. Where a library has them they are taken.
 */
#define _GNU_SOURCE /* as Python.h does, which comes too late now */
#include <systemd/sd-journal.h>

#pragma weak sd_journal_enumerate_available_data
#pragma weak sd_journal_enumerate_available_unique

static inline int enumerate_data(sd_journal *journal, const void **data, size_t *length) {
    return sd_journal_enumerate_available_data ? sd_journal_enumerate_available_data(journal, data, length)
                                               : sd_journal_enumerate_data(journal, data, length);
}

static inline int enumerate_unique(sd_journal *journal, const void **data, size_t *length) {
    return sd_journal_enumerate_available_unique ? sd_journal_enumerate_available_unique(journal, data, length)
                                                 : sd_journal_enumerate_unique(journal, data, length);
}

#define sd_journal_enumerate_available_data enumerate_data
#define sd_journal_enumerate_available_unique enumerate_unique
