#include "batch/channel.h"

#include "run/run.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE_MAX = 1 << 28 }; /* bytes; more is no message of ours */

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

bool channel_send(int fd, json_t *message)
{
    uint32_t size = (uint32_t)json_dumpb(message, NULL, 0, DUMP_FLAGS);
    char *frame = malloc(sizeof size + size);
    bool sent = false;

    /* One buffer, so that a message is one system call at either end. */
    if (frame != NULL && size > 0) {
        memcpy(frame, &size, sizeof size);
        json_dumpb(message, frame + sizeof size, size, DUMP_FLAGS);
        sent = send_bytes(fd, frame, sizeof size + size);
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
    *in = (struct inbox){.size = 0};
}

enum channel_event channel_take(int fd, struct inbox *in, json_t **message)
{
    enum channel_event event;

    *message = NULL;
    if (in->text == NULL) {
        if ((event = take_bytes(fd, in, &in->size, sizeof in->size)) != CHANNEL_MESSAGE)
            return event;
        if (in->size == 0 || in->size > MESSAGE_MAX || (in->text = malloc(in->size)) == NULL)
            return CHANNEL_ENDED;
    }
    if ((event = take_bytes(fd, in, in->text, in->size)) != CHANNEL_MESSAGE)
        return event;
    *message = json_loadb(in->text, in->size, 0, NULL);
    inbox_empty(in);
    return *message == NULL ? CHANNEL_ENDED : CHANNEL_MESSAGE;
}

enum channel_event channel_receive(int fd, double deadline, const volatile int *stop,
                                   json_t **message)
{
    struct inbox in = {.size = 0};
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
