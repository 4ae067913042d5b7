/* The BMC itself, behind the kernel's device file: what it answers to a request. */
#ifndef EMULATOR_BMC_H
#define EMULATOR_BMC_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_MESSAGE_BYTES = 272 }; /* IPMI_MAX_MSG_LENGTH of include/linux/ipmi_msgdefs.h */

/* How the next request is answered: BMC_WELL and so on. */
int take_mode(void);

/* Writes the answer, its completion code first, and returns its length. */
size_t answer_request(int mode, uint8_t netfn, uint8_t command, const uint8_t *data, size_t length,
                      uint8_t answer[MAX_MESSAGE_BYTES]);

#endif
