/*
 * The bounded copies of C11's annex K that the vendor's sources call and the C library lacks: what does not fit is
 * refused, and leaves an empty text. No more of the annex than those sources use.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int memmove_s(void *to, size_t room, const void *from, size_t bytes)
{
    if (to == NULL || from == NULL)
        return EINVAL;
    if (bytes > room)
        return ERANGE;
    memmove(to, from, bytes);
    return 0;
}

int memcpy_s(void *to, size_t room, const void *from, size_t bytes) { return memmove_s(to, room, from, bytes); }

int memset_s(void *to, size_t room, int value, size_t bytes)
{
    if (to == NULL || bytes > room)
        return EINVAL;
    memset(to, value, bytes);
    return 0;
}

/* At place of a text in so much room. */
static int put(char *to, size_t room, size_t place, const char *from, size_t most)
{
    if (to == NULL || from == NULL || room == 0)
        return EINVAL;
    size_t length = strnlen(from, most);
    if (place + length >= room) {
        to[0] = '\0';
        return ERANGE;
    }
    memmove(to + place, from, length);
    to[place + length] = '\0';
    return 0;
}

int strncpy_s(char *to, size_t room, const char *from, size_t most) { return put(to, room, 0, from, most); }

int strcpy_s(char *to, size_t room, const char *from) { return put(to, room, 0, from, room); }

int strncat_s(char *to, size_t room, const char *from, size_t most)
{
    return put(to, room, to == NULL ? 0 : strnlen(to, room), from, most);
}

int strcat_s(char *to, size_t room, const char *from) { return strncat_s(to, room, from, room); }

char *strtok_s(char *text, const char *ends, char **rest) { return strtok_r(text, ends, rest); }

int vsnprintf_s(char *to, size_t room, size_t most, const char *format, va_list values)
{
    if (to == NULL || room == 0)
        return -1;
    int length = vsnprintf(to, room, format, values);
    if (length >= 0 && (size_t)length < room && (size_t)length <= most)
        return length;
    to[0] = '\0';
    return -1;
}

int snprintf_s(char *to, size_t room, size_t most, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    int length = vsnprintf_s(to, room, most, format, values);
    va_end(values);
    return length;
}

int sprintf_s(char *to, size_t room, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    int length = vsnprintf_s(to, room, room, format, values);
    va_end(values);
    return length;
}

/* Of numbers alone: behind a text its room would be passed, and none is read in what is compared. */
int sscanf_s(const char *text, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    int count = strpbrk(format, "sc[") == NULL ? vsscanf(text, format, values) : -1;
    va_end(values);
    return count;
}
