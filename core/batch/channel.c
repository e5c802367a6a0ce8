#include "batch/channel.h"

#include "run/run.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MESSAGE_MAX = 1 << 28, /* bytes; more is no message of ours */
    USUAL_MAX = 8000,      /* bytes; few messages are longer */
};

static const uint32_t MARK = 0x9D1C02E7; /* in no text and no small number */

static const size_t DUMP_FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(17);

static bool send_bytes(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;

    while (size > 0) {
        const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* One buffer with room for the head before the text, so that a message is one system call; *size is the text's, 0
 * when it is no JSON. Writing JSON costs more than all else of a message: mostly once is enough. */
static char *write_frame(const json_t *message, uint32_t *size)
{
    size_t room = USUAL_MAX;
    char *frame = malloc(sizeof(struct frame_head) + room);

    *size = 0;
    while (frame != NULL) {
        const size_t needed =
            json_dumpb(message, frame + sizeof(struct frame_head), room, DUMP_FLAGS);

        if (needed <= room) {
            *size = (uint32_t)needed;
            return frame;
        }
        free(frame);
        room = needed;
        frame = malloc(sizeof(struct frame_head) + room);
    }
    return NULL;
}

bool channel_send(int fd, json_t *message)
{
    struct frame_head head = {MARK, 0};
    char *frame = write_frame(message, &head.size);
    bool sent = false;

    if (frame != NULL && head.size > 0) {
        memcpy(frame, &head, sizeof head);
        sent = send_bytes(fd, frame, sizeof head + head.size);
    }
    free(frame);
    json_decref(message);
    return sent;
}

/* Milliseconds to wait, at most a second at a time so that *stop is seen even when the signal came just
 * before the wait. */
static int wait_ms(double deadline)
{
    const double left = deadline > 0 ? (deadline - now_s()) * 1e3 : 1000;

    return left < 0 ? 0 : left > 1000 ? 1000 : (int)left + 1;
}

/* Without waiting: CHANNEL_TIMEOUT when less has arrived. */
static enum channel_event take_bytes(int fd, struct inbox *in, void *bytes, size_t size)
{
    while (in->got < size) {
        const ssize_t got = recv(fd, (char *)bytes + in->got, size - in->got, MSG_DONTWAIT);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return CHANNEL_TIMEOUT;
        if (got <= 0)
            return CHANNEL_ENDED;
        in->got += (size_t)got;
    }
    in->got = 0;
    return CHANNEL_MESSAGE;
}

void inbox_empty(struct inbox *in)
{
    free(in->text);
    *in = (struct inbox){.got = 0};
}

/* False as soon as the first bytes cannot become a head. */
static bool may_be_head(const struct inbox *in)
{
    const size_t seen = in->got < sizeof MARK ? in->got : sizeof MARK;

    return memcmp(&in->head.mark, &MARK, seen) == 0;
}

/* As take_bytes. */
static enum channel_event take_head(int fd, struct inbox *in)
{
    const enum channel_event event = take_bytes(fd, in, &in->head, sizeof in->head);

    if (event == CHANNEL_TIMEOUT && !may_be_head(in))
        return CHANNEL_ENDED;
    if (event != CHANNEL_MESSAGE)
        return event;
    if (in->head.mark != MARK || in->head.size == 0 || in->head.size > MESSAGE_MAX)
        return CHANNEL_ENDED;
    in->text = malloc(in->head.size);
    return in->text == NULL ? CHANNEL_ENDED : CHANNEL_MESSAGE;
}

enum channel_event channel_take(int fd, struct inbox *in, json_t **message)
{
    enum channel_event event;

    *message = NULL;
    if (in->text == NULL && (event = take_head(fd, in)) != CHANNEL_MESSAGE)
        return event;
    if ((event = take_bytes(fd, in, in->text, in->head.size)) != CHANNEL_MESSAGE)
        return event;
    *message = json_loadb(in->text, in->head.size, 0, NULL);
    inbox_empty(in);
    return *message == NULL ? CHANNEL_ENDED : CHANNEL_MESSAGE;
}

enum channel_event channel_receive(int fd, double deadline, const volatile int *stop,
                                   json_t **message)
{
    struct inbox in = {.got = 0};
    enum channel_event event = CHANNEL_TIMEOUT;

    *message = NULL;
    while (event == CHANNEL_TIMEOUT) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (stop != NULL && *stop)
            event = CHANNEL_INTERRUPTED;
        else if (deadline > 0 && now_s() > deadline)
            break;
        else if (poll(&p, 1, wait_ms(deadline)) > 0)
            event = channel_take(fd, &in, message);
    }
    inbox_empty(&in);
    return event;
}
