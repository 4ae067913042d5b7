/* The lines of the file: which there are, and what is wrong with any other. */
#include "front.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 10, LINE_BYTES = 256 };

struct words {
    int count;
    char *word[MAX_WORDS];
};

static const struct shape {
    const char *name;
    int argument, bytes;
} shapes[] = {
#define FUNCTION(name) {#name, -1, 0},
#define VALUE(name, argument, bytes) {#name, argument, bytes},
#include "functions.def"
#undef FUNCTION
#undef VALUE
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool fits(const char *pattern, const char *name)
{
    size_t length = strlen(pattern);

    if (length > 0 && pattern[length - 1] == '*')
        return strncmp(pattern, name, length - 1) == 0;
    return strcmp(pattern, name) == 0;
}

bool find_value(const char *name, int *argument, int *bytes)
{
    for (int place = 0; place < SHAPES; place++)
        if (strcmp(shapes[place].name, name) == 0) {
            *argument = shapes[place].argument;
            *bytes = shapes[place].bytes;
            return *argument >= 0;
        }
    return false;
}

bool is_passed_on(const char *pattern)
{
    for (int place = 0; place < SHAPES; place++)
        if (fits(pattern, shapes[place].name))
            return true;
    return false;
}

static bool read_number(const char *word, int64_t least, int64_t most, int64_t *number)
{
    char *end = NULL;

    errno = 0;
    *number = strtoll(word, &end, 0);
    return errno == 0 && end != word && *end == '\0' && *number >= least && *number <= most;
}

#define WANT(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            snprintf(error, ERROR_BYTES, __VA_ARGS__);                                                                 \
            return false;                                                                                              \
        }                                                                                                              \
    } while (0)

static bool read_gpu(const struct words *words, int place, int *gpu, char *error)
{
    int64_t number = ANY;

    if (place < words->count)
        WANT(read_number(words->word[place], ANY, MAX_GPUS - 1, &number),
             "GPU: its index, 0 to %d, or -1 for each, is right, not %s", MAX_GPUS - 1, words->word[place]);
    *gpu = (int)number;
    return true;
}

/* FUNCTION r CODE [GPU], FUNCTION v VALUE [GPU], FUNCTION d MILLISECONDS [GPU] */
static bool read_function(const struct words *words, struct line *line, char *error)
{
    const char *name = words->word[0];
    int argument, bytes;

    WANT(words->count >= 3 && words->count <= 4 && strlen(words->word[1]) == 1 && strchr("rvd", words->word[1][0]),
         "%s r CODE [GPU], %s v VALUE [GPU] or %s d MILLISECONDS [GPU] is right", name, name, name);
    WANT(strlen(name) < MAX_NAME && is_passed_on(name), "%s: NVML has no such function", name);
    snprintf(line->function, sizeof line->function, "%s", name);
    line->kind = words->word[1][0] == 'r' ? ANSWER : words->word[1][0] == 'v' ? PUT : DELAY;
    switch (line->kind) {
    case ANSWER:
        WANT(read_number(words->word[2], 0, INT32_MAX, &line->number),
             "CODE: the number of an nvmlReturn_t, such as 3, is right, not %s", words->word[2]);
        break;
    case PUT:
        WANT(find_value(name, &argument, &bytes), "%s has no single value that could be changed: r or d is right", name);
        WANT(read_number(words->word[2], INT64_MIN, INT64_MAX, &line->number),
             "VALUE: a whole number is right, not %s", words->word[2]);
        break;
    default:
        WANT(read_number(words->word[2], 0, 600000, &line->number),
             "MILLISECONDS: up to 600000 is right, not %s", words->word[2]);
    }
    return read_gpu(words, 3, &line->gpu, error);
}

static bool read_field_value(const struct words *words, struct line *line, char *error)
{
    int64_t number = ANY;

    line->type = ANY;
    if (words->count == 5)
        return true;
    WANT(line->number == SUCCESS, "field: a value is right only where RETURN is 0");
    WANT(read_number(words->word[5], 0, 6, &number),
         "TYPE: the number of an nvmlValueType_t, 0 (double) to 6, is right, not %s", words->word[5]);
    line->type = (int)number;
    if (line->type == 0) {
        char *end = NULL;
        double value = strtod(words->word[6], &end);
        WANT(end != words->word[6] && *end == '\0', "VALUE: a number is right, not %s", words->word[6]);
        memcpy(&line->value, &value, sizeof value);
        return true;
    }
    WANT(read_number(words->word[6], INT64_MIN, INT64_MAX, &number), "VALUE: a whole number is right, not %s",
         words->word[6]);
    line->value = (uint64_t)number;
    return true;
}

/* field ID SCOPE GPU RETURN [TYPE VALUE] */
static bool read_field(const struct words *words, struct line *line, char *error)
{
    int64_t number;

    WANT(words->count == 5 || words->count == 7, "field ID SCOPE GPU RETURN [TYPE VALUE] is right");
    line->kind = FIELD;
    WANT(read_number(words->word[1], 1, UINT16_MAX, &number),
         "ID: the number of a field, such as 165, is right, not %s", words->word[1]);
    line->field = (uint32_t)number;
    WANT(read_number(words->word[2], ANY, UINT16_MAX, &number),
         "SCOPE: the number of a link, 0 for a field without, or -1 for each, is right, not %s", words->word[2]);
    line->scope = (int)number;
    WANT(read_number(words->word[4], AS_IT_CAME, INT32_MAX, &line->number),
         "RETURN: the number of an nvmlReturn_t, or -1 to leave the field as it came, is right, not %s", words->word[4]);
    return read_gpu(words, 3, &line->gpu, error) && read_field_value(words, line, error);
}

/* unpopulated CODE [GPU] */
static bool read_unpopulated(const struct words *words, struct line *line, char *error)
{
    WANT(words->count == 2 || words->count == 3, "unpopulated CODE [GPU] is right");
    line->kind = UNPOPULATED;
    WANT(read_number(words->word[1], 1, INT32_MAX, &line->number),
         "CODE: the number of an nvmlReturn_t other than 0 is right, not %s", words->word[1]);
    return read_gpu(words, 2, &line->gpu, error);
}

/* xid NUMBER GPU XID [GI CI [SET]] */
static bool read_xid(const struct words *words, struct line *line, char *error)
{
    int64_t number;

    WANT(words->count == 4 || words->count == 6 || words->count == 7, "xid NUMBER GPU XID [GI CI [SET]] is right");
    line->kind = XID;
    line->instances[0] = line->instances[1] = UINT32_MAX;
    WANT(read_number(words->word[1], 1, INT64_MAX, &number),
         "NUMBER: greater than that of the Xid before is right, such as 1, not %s", words->word[1]);
    line->order = (uint64_t)number;
    if (!read_gpu(words, 2, &line->gpu, error))
        return false;
    WANT(line->gpu != ANY, "GPU: its index is right, for an Xid is of one GPU");
    WANT(read_number(words->word[3], 0, INT32_MAX, &line->number), "XID: its number, such as 79, is right, not %s",
         words->word[3]);
    for (int place = 0; place < 2 && words->count > 4; place++) {
        WANT(read_number(words->word[4 + place], ANY, UINT32_MAX, &number),
             "GI and CI: numbers of instances, or -1 for none, are right, not %s", words->word[4 + place]);
        line->instances[place] = (uint32_t)number;
    }
    line->has_set = words->count == 7;
    return !line->has_set || read_gpu(words, 6, &line->set, error);
}

static bool read_line(const struct words *words, struct line *line, char *error)
{
    if (strcmp(words->word[0], "field") == 0)
        return read_field(words, line, error);
    if (strcmp(words->word[0], "unpopulated") == 0)
        return read_unpopulated(words, line, error);
    if (strcmp(words->word[0], "xid") == 0)
        return read_xid(words, line, error);
    WANT(strncmp(words->word[0], "nvml", 4) == 0,
         "%s: the name of a function of NVML, field, unpopulated or xid is right", words->word[0]);
    return read_function(words, line, error);
}

static bool split(char *text, struct words *words)
{
    char *rest = NULL;

    words->count = 0;
    for (char *word = strtok_r(text, " \t\r", &rest); word != NULL; word = strtok_r(NULL, " \t\r", &rest)) {
        if (*word == '#')
            return true;
        if (words->count == MAX_WORDS)
            return false;
        words->word[words->count++] = word;
    }
    return true;
}

const char *parse_lines(const char *text, struct lines *lines, char error[ERROR_BYTES])
{
    char wrong[ERROR_BYTES];
    struct words words;

    lines->count = 0;
    for (int number = 1; *text != '\0'; number++) {
        char copy[LINE_BYTES];
        size_t length = strcspn(text, "\n");
        snprintf(wrong, sizeof wrong, "a line has at most %d bytes and %d words", LINE_BYTES - 1, MAX_WORDS);
        bool is_right = length < sizeof copy;
        if (is_right) {
            memcpy(copy, text, length);
            copy[length] = '\0';
            is_right = split(copy, &words);
        }
        if (is_right && words.count > 0) {
            struct line line = {.gpu = ANY, .scope = ANY, .type = ANY};
            snprintf(wrong, sizeof wrong, "at most %d lines are right", MAX_LINES);
            is_right = lines->count < MAX_LINES && read_line(&words, &line, wrong);
            if (is_right)
                lines->line[lines->count++] = line;
        }
        if (!is_right) {
            snprintf(error, ERROR_BYTES, "line %d: %.400s", number, wrong);
            return error;
        }
        text += length + (text[length] == '\n');
    }
    return "";
}
