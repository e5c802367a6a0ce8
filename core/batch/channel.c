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

bool channel_wait(int fd, double deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, wait_ms(deadline)) > 0;
}

static enum channel_event receive_bytes(int fd, double deadline, const volatile int *stop,
                                        void *bytes, size_t size)
{
    char *at = bytes;

    while (size > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got;

        if (stop != NULL && *stop)
            return CHANNEL_INTERRUPTED;
        if (deadline > 0 && now_s() > deadline)
            return CHANNEL_TIMEOUT;
        if (poll(&p, 1, wait_ms(deadline)) <= 0)
            continue;
        got = recv(fd, at, size, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return CHANNEL_ENDED;
        at += got;
        size -= (size_t)got;
    }
    return CHANNEL_MESSAGE;
}

enum channel_event channel_receive(int fd, double deadline, const volatile int *stop,
                                   json_t **message)
{
    uint32_t size = 0;
    char *text;
    enum channel_event event = receive_bytes(fd, deadline, stop, &size, sizeof size);

    *message = NULL;
    if (event != CHANNEL_MESSAGE)
        return event;
    if (size == 0 || size > MESSAGE_MAX || (text = malloc(size)) == NULL)
        return CHANNEL_ENDED;
    event = receive_bytes(fd, deadline, stop, text, size);
    if (event == CHANNEL_MESSAGE)
        *message = json_loadb(text, size, 0, NULL);
    free(text);
    return event == CHANNEL_MESSAGE && *message == NULL ? CHANNEL_ENDED : event;
}
