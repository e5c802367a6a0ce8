/*
 * JSON messages over a socket between the parent and a worker: each is a mark and its length, 4 bytes each, then
 * the text. Either end may vanish at any byte, and what a plugin writes into the channel is told by its mark.
 */
#ifndef GPURUN_BATCH_CHANNEL_H
#define GPURUN_BATCH_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum channel_event {
    CHANNEL_MESSAGE,
    CHANNEL_ENDED,       /* the other end is gone, or sent what is no message */
    CHANNEL_TIMEOUT,     /* nothing whole arrived before the deadline */
    CHANNEL_INTERRUPTED, /* *stop became true */
};

/* Sends and releases `message`; false when the other end is gone. */
bool channel_send(int fd, json_t *message);

/* A message that is on its way. All zero before the first and after inbox_empty. */
struct inbox {
    struct frame_head {
        uint32_t mark, size; /* size: of the text, in bytes */
    } head;
    size_t got; /* bytes of the text, or of the head while there is no text */
    char *text;
};

/* Takes what has arrived, and waits for nothing: CHANNEL_TIMEOUT while no message is whole. The message is
 * the caller's. */
enum channel_event channel_take(int fd, struct inbox *in, json_t **message);

void inbox_empty(struct inbox *in);

/* Waits for a message until `deadline` (now_s seconds; 0: for ever) or until *stop (may be NULL). The
 * message is the caller's. */
enum channel_event channel_receive(int fd, double deadline, const volatile int *stop,
                                   json_t **message);

#endif
